"""Writing the tables of judgements: every pair of a comparison's cells, by the rubric and by the model that it names.

What belongs here: which judges a comparison has, rows. What does not: judging (``judging``), the results that are
judged (``scenario_results``). A model's replies are kept in the store as they come, one question is never asked twice,
and what could not be asked is a problem and no vote.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import BenchError
from bench_pipeline.judging import Folder, Report, folder_of, judge_by_rubric
from bench_pipeline.judging.judgements import Judgements
from bench_pipeline.judging.live import LiveJudge
from bench_pipeline.judging.report import RUBRIC
from bench_pipeline.pipeline.judge_replies import StoredReplies
from bench_pipeline.pipeline.judges import PAIR_SETTINGS, Asking, Caps, Purse, named_judge, pace_of, purse_of
from bench_pipeline.pipeline.scenario_results import look_at_comparisons, scenarios_of
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.scenarios.cell_result import CellResult
from bench_pipeline.scenarios.comparison import AskedJudge, Comparison
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

Judging = Callable[[Folder, Folder], Report]


def write_judgements(bench: "Bench", attempts: Sequence[int]) -> tuple[dict[int, Written], tuple[str, ...]]:
    """Judge the pairs of every comparison from the results that are written; returns what went wrong too.

    Two processes do not ask a judge at the same time: what one has bought the other finds.
    """
    comparisons = look_at_comparisons(bench).comparisons
    purse = purse_of(bench)
    problems: list[str] = []
    written: dict[int, Written] = {}
    with ExitStack() as held:
        if any(comparison.model.judge for comparison in comparisons):
            held.enter_context(bench.store.lock("judging"))
        judges = {each.name: _judges(bench, each, purse, held, problems) for each in comparisons}
        for attempt in attempts:
            reports: list[tuple[str, Report]] = []
            for comparison in comparisons:
                try:
                    for left, right in _pairs(bench, comparison, attempt):
                        reports += [
                            (comparison.name, judge(left, right)) for judge in judges[comparison.name]
                        ]
                except BenchError as error:
                    problems.append(f"{comparison.name}: {error}")
            _write(
                bench, "judge_pairs", [row for one in reports for row in _pair_rows(*one, attempt)], attempt
            )
            rows = [_report_row(*one, attempt) for one in reports]
            written[attempt] = _write(bench, "judge_reports", rows, attempt)
    bench.left_usd = purse.left_usd
    return written, tuple(problems)


def questions_to_ask(bench: "Bench") -> dict[str, int]:
    """The comparisons whose judge would be asked, and the most questions of each; what it has answered is not asked."""
    found: dict[str, int] = {}
    for comparison in look_at_comparisons(bench).comparisons:
        asked = comparison.model.judge
        if asked is None:
            continue
        try:
            live, _ = _live(bench, comparison, asked, Purse(None))
        except BenchError:
            # Told by the check of the comparisons.
            continue
        # Each pair of cells in both orders, whether their results are known yet or not.
        every = 2 * len(comparison.model.scenarios) * len(_pairs_of_labels(comparison))
        known = (
            2 * len(left.cells.keys() & right.cells.keys()) - live.open_questions(left, right)
            for attempt in range(1, comparison.model.attempts + 1)
            for left, right in _pairs(bench, comparison, attempt)
        )
        if questions := every * comparison.model.attempts - sum(known):
            found[comparison.name] = questions
    return found


def poorly_judged(bench: "Bench") -> list[str]:
    """The stored reports of a model that gave fewer votes than its comparison asks for."""
    quorums = {
        comparison.name: comparison.model.judge.quorum
        for comparison in look_at_comparisons(bench).comparisons
        if comparison.model.judge is not None
    }
    return [
        f"{row['comparison']}, attempt {row['attempt']}: {row['judge']} voted on {row['pairs'] - row['no_votes']} of "
        f"{row['pairs']} pairs of {row['left']} and {row['right']}, which is below the quorum; "
        + "; ".join(row["notes"] or ())
        for row in bench.store.tables.read("judge_reports").to_pylist()
        if row["judge"] != RUBRIC and row["pairs"] and _is_poor(row, quorums.get(row["comparison"]))
    ]


def _is_poor(row: Mapping[str, Any], quorum: float | None) -> bool:
    votes = row["pairs"] - row["no_votes"]
    return quorum is not None and (votes == 0 or votes / row["pairs"] < quorum)


def _write(bench: "Bench", name: str, rows: Sequence[dict[str, object]], attempt: int) -> Written:
    return write_table(bench.store, name, table_schema(name).from_rows(rows), attempt=attempt)


def _judges(
    bench: "Bench", comparison: Comparison, purse: Purse, held: ExitStack, problems: list[str]
) -> list[Judging]:
    """The judges of a comparison; ``problems`` receives why one cannot be used and, when ``held`` ends, be asked."""
    asked, seed = comparison.model.judge, comparison.model.seed
    judges: list[Judging] = [partial(judge_by_rubric, seed=seed)]
    try:
        if comparison.model.judgements is not None:
            recorded = Judgements(comparison.folder / comparison.model.judgements)
            judges.append(LiveJudge(recorded, None, _goals(comparison), seed).judge)
        if asked is not None:
            live, asking = _live(bench, comparison, asked, purse)
            held.enter_context(asking)
            held.callback(lambda: problems.extend(_said(comparison, asking)))
            judges.append(live.judge)
    except BenchError as error:
        problems.append(f"{comparison.name}: {error}")
    return judges


def _said(comparison: Comparison, asking: Asking) -> Iterator[str]:
    if asking.problem is not None:
        yield f"{comparison.name}: {asking.problem}"


def _live(
    bench: "Bench", comparison: Comparison, asked: AskedJudge, purse: Purse
) -> tuple[LiveJudge, Asking]:
    """The model that a comparison names, with what it has said before, and the way to ask it."""
    judge = named_judge(bench.project.config, asked.upstream, asked.model)
    caps = Caps(purse, bench.prices.price(judge.model), asked.max_calls)
    asking = Asking(judge, caps, PAIR_SETTINGS, asked.timeout, pace_of(bench, judge))
    replies = StoredReplies(bench.store, judge.endpoint.url, judge.model, PAIR_SETTINGS)
    live = LiveJudge(
        replies,
        asking,
        _goals(comparison),
        comparison.model.seed,
        judge.concurrency,
        stop=asking.stop,
    )
    return live, asking


def _goals(comparison: Comparison) -> dict[str, str]:
    return {scenario.name: scenario.goal for scenario in scenarios_of(comparison)}


def _pairs(bench: "Bench", comparison: Comparison, attempt: int) -> Iterator[tuple[Folder, Folder]]:
    """The cells of an attempt that have results, two by two."""
    table = bench.store.tables.read("scenario_results", attempt=attempt)
    rows = [row for row in table.to_pylist() if row["comparison"] == comparison.name]
    folders = {label: _folder(label, rows) for label in comparison.model.cells}
    for left, right in _pairs_of_labels(comparison):
        if folders[left].cells and folders[right].cells:
            yield folders[left], folders[right]


def _pairs_of_labels(comparison: Comparison) -> Sequence[tuple[str, str]]:
    pairs = comparison.model.judge_pairs
    return list(combinations(sorted(comparison.model.cells), 2)) if pairs is None else pairs


def _folder(label: str, rows: Sequence[Mapping[str, Any]]) -> Folder:
    """The rows of one cell as a side of a comparison."""
    cells = [
        CellResult._make(row[name] for name in CellResult._fields)._replace(
            missing_evidence=tuple(row["missing_evidence"])
        )
        for row in rows
        if row["cell"] == label
    ]
    return folder_of(label, [(cell.scenario, cell) for cell in cells], label)


def _report_row(comparison: str, report: Report, attempt: int) -> dict[str, object]:
    document = report.document()
    return {"comparison": comparison, "attempt": attempt} | {
        name: document[name] for name in table_schema("judge_reports").schema.names[2:]
    }


def _pair_rows(comparison: str, report: Report, attempt: int) -> Iterator[dict[str, object]]:
    where = {"comparison": comparison, "attempt": attempt}
    for item in report.verdicts:
        yield where | {"left": report.left, "right": report.right, "judge": report.judge} | vars(item)
