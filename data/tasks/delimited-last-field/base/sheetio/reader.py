"""From text to rows."""

from sheetio.dialect import COMMA


class FormatError(ValueError):
    """Text that is not in the agreed format."""


def read(text, dialect=COMMA):
    """The rows of a text, each a list of fields."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            rows.append(_fields(line, number, dialect))
    return rows


def _fields(line, number, dialect):
    fields = []
    field = ""
    quoted = False
    closed = False
    position = 0
    while position < len(line):
        char = line[position]
        following = line[position + 1 : position + 2]
        if quoted:
            if char != dialect.quote:
                field += char
            elif following == dialect.quote:
                field += char
                position += 1
            else:
                quoted = False
                closed = True
        elif char == dialect.delimiter:
            fields.append(field)
            field = ""
            closed = False
        elif closed:
            raise FormatError(f"line {number}: {char!r} after a closing quote")
        elif char == dialect.quote and not field:
            quoted = True
        else:
            field += char
        position += 1
    if quoted:
        raise FormatError(f"line {number}: a quoted field does not end")
    if field:
        fields.append(field)
    return fields
