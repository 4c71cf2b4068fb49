"""What changed since the report before: numbers at a glance, flips, pass rates, other numbers that moved."""

from collections.abc import Iterator
from typing import Any

from bench_pipeline.reports.blocks import Block, Fact, Notes, Paragraph, Section
from bench_pipeline.reports.sections.parts import Row, fixed, number, points, table
from bench_pipeline.reports.text import UNKNOWN, percent, plural

_MEASURES = {
    "pass_rate": "pass rate",
    "score": "composite score",
    "correct_rate": "correct answers",
    "win_rate": "win rate",
    "ledger_rows": "rows of a ledger",
}
_ALL_CELLS = "bench table verdicts"


def facts(document: Row) -> list[Fact]:
    """The numbers at the top of a page."""
    changes, coverage, scores = document["changes"], document["coverage"], document["scores"]
    found = []
    if changes is not None:
        new = sum(row["new_verdicts"] for row in changes["evaluations"])
        failed, flips = changes["flips_to_failed"], changes["flips_total"]
        found = [
            Fact("new verdicts", str(new), f"of {plural(sum(row['cells'] for row in coverage), 'cell')}"),
            Fact("flips", str(flips), f"{failed} passed before and fail now", alarming=failed > 0),
        ]
    if coverage:
        cells, measured = (sum(row[name] for row in coverage) for name in ("cells", "measured"))
        beside = f"{measured} of {plural(cells, 'cell')}, {plural(len(coverage), 'evaluation')}"
        found.append(Fact("measured", percent(measured / cells), beside, alarming=measured < cells))
    if scores:
        closed = sum(_closed(row) for row in scores)
        found.append(
            Fact(
                "closed gates",
                str(closed),
                f"of {plural(len(scores), 'composite score')}",
                alarming=closed > 0,
            )
        )
    gaps = document["gaps"]
    found.append(Fact("gaps", str(len(gaps)), "each with its command", alarming=bool(gaps)))
    return found


def change_section(document: Row) -> Section:
    """What changed; of a first report, that it is the first."""
    changes = document["changes"]
    if changes is None:
        text = (
            "No earlier report is kept, so there is nothing to compare with. The next one says what changed."
        )
        return Section("What changed", "changes", [Paragraph(text)])
    blocks: list[Block] = [Notes(list(_sentences(changes)))]
    if changes["flips"]:
        blocks.append(_flips(changes))
    if changes["rates"]:
        blocks.append(_rates(changes["rates"]))
    if changes["measures"]:
        blocks.append(_measures(changes))
    return Section("What changed", "changes", blocks)


def _sentences(changes: Row) -> Iterator[str]:
    for row in changes["evaluations"]:
        said = _of_evaluation(row)
        if said:
            yield f"{row['evaluation']}: {', '.join(said)}"
    if not any(_of_evaluation(row) for row in changes["evaluations"]):
        yield "No verdict is new, and none has left."
    if not changes["flips_total"]:
        yield "No task flipped: whatever passed before and was measured again passes, whatever failed fails."


def _of_evaluation(row: Row) -> list[str]:
    said = []
    if row["new_verdicts"]:
        new = plural(row["new_verdicts"], "new verdict")
        said.append(
            f"{new}, {row['new_passed']} passed; {row['measured']} of {plural(row['cells'], 'cell')} measured"
        )
    if row["new_failures"]:
        said.append(f"{plural(row['new_failures'], 'new execution failure')}, which measured nothing")
    if row["gone_verdicts"]:
        said.append(f"{plural(row['gone_verdicts'], 'verdict')} that left: the plan has other cells now")
    return said


def _flips(changes: Row) -> Block:
    words = {True: "passed", False: "failed"}
    rows = [
        (
            row["task_id"],
            row["setup"],
            row["evaluation"],
            str(row["attempt"]),
            f"{words[row['before']]} → {words[row['after']]}",
            "the cell was measured again" if row["same_cell"] else "task, setup or environment changed",
        )
        for row in changes["flips"]
    ]
    columns = ("task", "setup", "evaluation", number("attempt"), "flip", "what changed")
    caption = f"Flips: {plural(changes['flips_total'], 'task')} came out differently, failures first"
    return table(caption, columns, rows, total=changes["flips_total"], more=_ALL_CELLS)


def _rates(rates: list[dict[str, Any]]) -> Block:
    rows = [
        (
            row["setup"],
            row["evaluation"],
            f"{row['tasks']}, {row['anew']} of them anew",
            percent(row["before"]),
            percent(row["after"]),
            points(row["difference"], row["diff_low"], row["diff_high"]),
            row["method"],
        )
        for row in rates
    ]
    columns = (
        *("setup", "evaluation", number("tasks measured both times"), number("before"), number("now")),
        *(number("difference, 95 % interval"), "method"),
    )
    return table(
        "Pass rates, over the tasks that were measured both times", columns, rows, more="bench rank --all"
    )


def _measures(changes: Row) -> Block:
    rows = [
        (
            row["name"] or UNKNOWN,
            _MEASURES.get(row["measure"], row["measure"]),
            row["scope"],
            str(row["attempt"]) if row["attempt"] else "all",
            _value(row, "before"),
            _value(row, "after"),
            _interval(row),
        )
        for row in changes["measures"]
    ]
    columns = ("of", "number", "in", "attempt", number("before"), number("now"), number("interval now"))
    caption = "Numbers that moved, are new or are gone"
    return table(caption, columns, rows, total=changes["measures_total"], more="bench table report_measures")


def _value(row: Row, side: str) -> str:
    if (side == "before" and row["new"]) or (side == "after" and row["gone"]):
        return "not there"
    value, over = row[side], row[f"{side}_n"]
    if value is None:
        return UNKNOWN
    if row["measure"] == "ledger_rows":
        return f"{value:.0f}"
    return f"{fixed(value)} over {over}"


def _interval(row: Row) -> str:
    if row["low"] is None or row["high"] is None:
        return "no interval"
    return f"{fixed(row['low'])} to {fixed(row['high'])}"


def _closed(row: Row) -> bool:
    return bool(row["safety"] == 0)
