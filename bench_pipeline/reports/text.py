"""Rankings, comparisons and gates as short texts for a terminal.

What belongs here: wording. What does not: printing, and escaping what comes from documents (``cli`` does
both). Unknown is ``-``; a rate stands beside its interval, a count beside what it is out of.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN = "-"
# The level below which a difference is called one.
_ALPHA = 0.05
# Names in a sentence before the rest is only counted.
_NAMED = 5

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Note:
    """A sentence beside a table: ``kind`` is what it is about, such as ``warning`` or ``fill``."""

    kind: str
    text: str


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal."""
    return UNKNOWN if value is None else f"{100 * value:.1f}%"


def rate_text(rate: float | None, low: float | None, high: float | None) -> str:
    """A rate with its interval: ``70.0% (39.7 to 89.2)``."""
    if rate is None:
        return UNKNOWN
    span = "no interval" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{percent(rate)} ({span})"


def counts_text(row: Row) -> str:
    """``7/10 measured, 10 attempted``: passes with both denominators, and the plan where it is larger."""
    text = f"{row['passed']}/{row['measured']} measured, {row['attempted']} attempted"
    return text if row["attempted"] == row["total"] else f"{text} of {row['total']}"


def cost_text(usd: float | None, known: int, unknown: int) -> str:
    """``1.00 USD over 1 of 2 cells``; ``-`` when no cell's cost is known."""
    if usd is None:
        return UNKNOWN
    return f"{_money(usd)} over {known} of {known + unknown} cells"


def seconds_text(seconds: float | None) -> str:
    """A duration as ``9.5s``, ``2m05s`` or ``1h02m``."""
    if seconds is None:
        return UNKNOWN
    if round(seconds, 1) < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def size_text(size: int | None) -> str:
    """A number of bytes as ``0 bytes``, ``1.5 KiB`` or ``64.0 MiB``."""
    if size is None:
        return UNKNOWN
    if size < 1024:
        return plural(size, "byte")
    kib = size / 1024
    return f"{kib:.1f} KiB" if kib < 1024 else f"{kib / 1024:.1f} MiB"


def ranking_display(row: Row) -> dict[str, str]:
    """A row of evaluation_rankings as the columns of a table for people."""
    low, high = row["band_low"], row["band_high"]
    return {
        "rank": UNKNOWN if row["rank"] is None else str(row["rank"]),
        "band": UNKNOWN if low is None else str(low) if low == high else f"{low} to {high}",
        "setup": row["setup"],
        "pass rate": rate_text(row["pass_rate"], row["rate_low"], row["rate_high"]),
        "passed": counts_text(row),
        "cost": cost_text(row["cost_usd"], row["cost_known"], row["cost_unknown"]),
        "tokens": _count(row["tokens"]),
        "patch lines": _count(row["patch_lines"]),
        "time": seconds_text(row["duration_s"]),
    }


def ranking_notes(
    rows: Sequence[Row],
    pairs: Iterable[Row],
    left_out: Mapping[str, str],
    commands: Mapping[str, str],
    unfit: Mapping[str, str] | None = None,
) -> list[Note]:
    """What has to be said beside a ranking: how firm the lead is, who is not ranked and how to complete it.

    Args:
        rows: the evaluation's rows of evaluation_rankings, in display order.
        pairs: its rows of paired_comparisons.
        left_out: why, by task, for tasks that the ranking is not over.
        commands: by setup digest, the command that measures what is missing.
        unfit: why, by task, for tasks of the project that may not be measured with as they are.
    """
    ranked = [row for row in rows if row["ranked"]]
    notes = []
    if ranked:
        notes.append(
            Note("over", f"{plural(ranked[0]['shared_tasks'], 'task')} that all ranked setups measured")
        )
        notes.append(Note("method", str(ranked[0]["method"])))
    else:
        notes.append(Note("warning", "no setup can be ranked: too few cells are measured"))
    notes += _lead_notes(ranked, list(pairs))
    for row in rows:
        command = commands.get(row["setup_digest"])
        if command is None:
            continue
        place = "" if row["ranked"] else "not ranked, "
        gaps = f"{plural(len(row['missing']), 'cell')} missing ({some(row['missing'])})"
        notes.append(Note("missing", f"{row['setup']}: {place}{gaps}; run: {command}"))
    for kind, tasks in (("left out", left_out), ("not measured with", unfit or {})):
        reasons: dict[str, list[str]] = {}
        for task, reason in tasks.items():
            reasons.setdefault(reason, []).append(task)
        notes += [Note(kind, f"{some(names)}: {reason}") for reason, names in reasons.items()]
    if unfit:
        notes.append(Note("not measured with", "bench task validate checks them again"))
    return notes


def _lead_notes(ranked: Sequence[Row], pairs: Sequence[Row]) -> list[Note]:
    """Whether the first is told apart from the others after Holm's correction, and which pairs are."""
    names = {row["setup"] for row in ranked}
    notes = [
        Note(
            "told apart",
            f"{_ordered(pair)}, difference {_points(abs(pair['difference']))}, p {pair['p_holm']:.3g} after Holm",
        )
        for pair in pairs
        if {pair["setup_a"], pair["setup_b"]} <= names and told_apart(pair)
    ]
    if not ranked:
        return notes
    leader, of_leader = ranked[0], _pairs_of(ranked[0]["setup"], pairs)
    close = {
        row["setup"]: of_leader.get(row["setup"])
        for row in ranked[1:]
        if not told_apart(of_leader.get(row["setup"], _NO_TEST))
    }
    if not close:
        return notes
    whom = [
        f"{setup} (p {_p(pair['p_value'])}, {_p(pair['p_holm'])} after Holm)" if pair else setup
        for setup, pair in close.items()
    ]
    tests = dict.fromkeys(str(pair["method"]).rpartition("; ")[2] for pair in close.values() if pair)
    by = f"; {', '.join(tests)}, Holm over {plural(len(pairs), 'pair')}" if tests else ""
    notes.append(
        Note("warning", f"the lead of {leader['setup']} is not distinguishable from {some(whom)}{by}")
    )
    apart = [row["setup"] for row in ranked if row["setup"] in close and _bands_apart(leader, row)]
    if apart:
        notes.append(Note("bands", f"{leader['setup']} and {some(apart)}: {_BANDS}"))
    return notes


_NO_TEST: Row = {"p_holm": None}
_BANDS = (
    "the bands lie apart although the test does not tell the setups apart. Both hold: a band says where one setup's "
    "rank lies when these tasks are drawn anew, without correction; the test says whether chance alone could make a "
    "pair differ so, corrected for all pairs. Claim a difference by the test"
)


def _pairs_of(setup: str, pairs: Iterable[Row]) -> dict[str, Row]:
    """The pairs that a setup is in, by the other setup."""
    return {
        pair["setup_b"] if pair["setup_a"] == setup else pair["setup_a"]: pair
        for pair in pairs
        if setup in {pair["setup_a"], pair["setup_b"]}
    }


def _bands_apart(one: Row, other: Row) -> bool:
    bands = one["band_low"], one["band_high"], other["band_low"], other["band_high"]
    return None not in bands and (
        one["band_high"] < other["band_low"] or other["band_high"] < one["band_low"]
    )


def told_apart(pair: Row) -> bool:
    """Whether a row of paired_comparisons shows a difference that is unlikely to be chance, after Holm."""
    return pair["p_holm"] is not None and pair["p_holm"] < _ALPHA and bool(pair["difference"])


def comparison_lines(document: Row) -> list[str]:
    """A comparison as sentences: the difference, its certainty, and what it is over."""
    lines = [
        f"a: {document['setup_a']}",
        f"b: {document['setup_b']}",
        f"evaluation: {document['evaluation']}",
        f"difference a - b: {difference_text(document)}",
        f"p: {_p(document['p_value'])}, after Holm over all pairs {_p(document['p_holm'])}",
        f"method: {document['method']}",
    ]
    lines += [
        f"only {side} measured {plural(document[f'only_{side}'], 'task')}: {some(document[f'tasks_only_{side}'])}"
        for side in ("a", "b")
        if document[f"only_{side}"]
    ]
    if document["tasks_mixed"]:
        lines.append(f"not comparable, the task changed in between: {some(document['tasks_mixed'])}")
    low, high = document["diff_low"], document["diff_high"]
    if not document["shared_tasks"]:
        lines.append("warning: no task was measured by both")
    elif low is None or low <= 0 <= high:
        lines.append("warning: the difference is not distinguishable from none")
    return lines


def comparison_display(document: Row) -> list[dict[str, str]]:
    """The two setups side by side as rows of (what, a, b)."""
    rows = [
        {"": "pass rate", "a": percent(document["rate_a"]), "b": percent(document["rate_b"])},
        {
            "": "passed",
            **{
                side: f"{document[f'passed_{side}']}/{document[f'measured_{side}']} measured"
                for side in ("a", "b")
            },
        },
    ]
    forms = {"cost_usd": ("cost", _money), "duration_s": ("time", seconds_text)}
    for item in document["sums"]:
        name, form = forms.get(item["quantity"], (item["quantity"].replace("_", " "), _count))
        label = f"{name} over {item['cells']} of {plural(item['of'], 'cell')}"
        rows.append({"": label, "a": form(item["a"]), "b": form(item["b"])})
    return rows


def flip_display(document: Row) -> list[dict[str, str]]:
    """The tasks whose scores differ, as rows of (task, a, b)."""
    return [
        {"task": flip["task_id"], "a": _score(flip["a"]), "b": _score(flip["b"])}
        for flip in document["flips"]
    ]


def gate_lines(document: Row) -> list[str]:
    """A gate's decision and its checks as sentences."""
    lines = [
        f"gate {document['gate']}: {document['reason']}: {document['detail']}",
        f"baseline: {document['baseline']}",
        f"candidate: {document['candidate']}",
        f"difference candidate - baseline: {difference_text(document)}",
        f"method: {document['method'] or UNKNOWN}",
    ]
    for check in document["checks"]:
        value = UNKNOWN if check["value"] is None else f"{check['value']:.4g}"
        mark = "ok" if check["passed"] else "not met"
        lines.append(f"check {check['name']}: {value}, limit {check['limit']:.4g}: {mark}")
    return lines


def _ordered(pair: Row) -> str:
    better, worse = ("setup_a", "setup_b") if pair["difference"] > 0 else ("setup_b", "setup_a")
    return f"{pair[better]} above {pair[worse]}"


def difference_text(document: Row) -> str:
    """A difference of pass rates with its interval and the tasks that it is over."""
    low, high = document["diff_low"], document["diff_high"]
    span = "no interval" if low is None else f"{100 * low:+.1f} to {100 * high:+.1f}"
    return (
        f"{_points(document['difference'])} ({span}) over {plural(document['shared_tasks'], 'shared task')}"
    )


def _points(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:+.1f} points"


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}"


def _money(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f} USD"


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _score(value: float) -> str:
    return {0.0: "failed", 1.0: "passed"}.get(value, f"{value:.2f}")


def plural(count: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
