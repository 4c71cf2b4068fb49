"""From an invoice to text."""

from till.money import cents, show


def render(invoice):
    """The invoice as printed: lines, VAT groups, total."""
    rows = [f"Invoice {invoice.number}", ""]
    for line in invoice.lines:
        rows.append(f"{line.article:<28}{show(cents(line.amount)):>12}")
    rows.append("")
    for group in invoice.groups():
        rows.append(f"{f'net at {group.rate:g} %':<28}{show(group.net):>12}")
        rows.append(f"{f'VAT at {group.rate:g} %':<28}{show(group.vat):>12}")
    rows.append(f"{'total':<28}{show(invoice.total):>12}")
    return "\n".join(rows) + "\n"
