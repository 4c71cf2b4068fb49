"""Coverage, and what is missing with the command that fills it."""

from bench_pipeline.reports.blocks import Block, Column, Paragraph, Section
from bench_pipeline.reports.sections.parts import Row, number, share, table


def gap_section(document: Row) -> Section:
    """How much of each plan is measured, and every gap."""
    blocks: list[Block] = []
    if document["coverage"]:
        blocks.append(_coverage(document["coverage"]))
    if document["gaps"]:
        rows = [(row["where"], row["what"], row["command"]) for row in document["gaps"]]
        columns = ("where", "what is missing", Column("command", "code"))
        blocks.append(table("What is missing, and what fills it", columns, rows, more="bench report --json"))
    else:
        blocks.append(
            Paragraph("Nothing is missing: every planned cell has a verdict, every score its telemetry.")
        )
    return Section("Coverage and what is missing", "gaps", blocks)


def _coverage(coverage: list[Row]) -> Block:
    rows = [
        (
            row["evaluation"],
            str(row["setups"]),
            str(row["tasks"]),
            share(row["attempted"], row["cells"]),
            share(row["measured"], row["cells"]),
            f"{row['failures']} of {row['attempted']}",
        )
        for row in coverage
    ]
    columns = (
        *(
            "evaluation",
            number("setups"),
            number("tasks"),
            number("cells attempted"),
            number("cells measured"),
        ),
        number("execution failures"),
    )
    return table("Coverage of each plan", columns, rows, more="bench rank --all")
