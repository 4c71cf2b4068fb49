"""``bench gate``: may the candidate replace the baseline."""

from typing import Any

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    notice,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text

_FIELDS = (
    "gate",
    "passed",
    "reason",
    "detail",
    "shared_tasks",
    "difference",
    "diff_low",
    "diff_high",
    "method",
)


@click.command()
@click.argument("evaluation")
@click.option("--baseline", required=True, metavar="SETUP", help="Label, or the start of the digest.")
@click.option("--candidate", required=True, metavar="SETUP", help="Label, or the start of the digest.")
@click.option(
    "--margin", type=float, metavar="X", help="The loss in pass rate that is bearable (default 0.05)."
)
@click.option("--alpha", type=float, metavar="X", help="The interval is two-sided at 1 - X (default 0.05).")
@click.option(
    "--min-tasks", type=int, metavar="N", help="Shared tasks below which nothing is concluded (default 10)."
)
@click.option(
    "--min-rate", type=float, metavar="X", help="The candidate's pass rate must reach this, 0 to 1."
)
@click.option("--max-cost", type=float, metavar="USD", help="The candidate's cells must not have cost more.")
@project_option
@format_options
def gate(
    evaluation: str,
    *,
    baseline: str,
    candidate: str,
    margin: float | None,
    alpha: float | None,
    min_tasks: int | None,
    min_rate: float | None,
    max_cost: float | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Decide whether CANDIDATE is not worse than BASELINE in EVALUATION by more than a margin.

    \b
    bench gate models --baseline codex/gpt/low --candidate codex/gpt/high
    bench gate models --baseline A --candidate B --margin 0.03 --max-cost 20

    Passes when the lower end of the interval of candidate - baseline lies above -margin and every other check
    that was asked for holds. Exit status 0 passed; 4 failed; 3 incomplete, mixed or insufficient evidence; 5
    nothing evaluated.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.gating import ALPHA, MARGIN, GateTerms
    from bench_pipeline.pipeline.gating import gate as decide
    from bench_pipeline.pipeline.reading import evaluation_outcomes, repositories
    from bench_pipeline.statistics.paired import MIN_TASKS

    terms = GateTerms(
        margin=MARGIN if margin is None else margin,
        alpha=ALPHA if alpha is None else alpha,
        min_tasks=MIN_TASKS if min_tasks is None else min_tasks,
        min_rate=min_rate,
        max_cost=max_cost,
    )
    bench = Bench(project_root(project_dir))
    bench.on_notice = notice
    cells, verdicts = evaluation_outcomes(bench, evaluation)
    decision = decide(
        cells,
        verdicts,
        evaluation=evaluation,
        baseline=baseline,
        candidate=candidate,
        terms=terms,
        clusters=repositories(bench),
    )
    _show(dict(decision.document), as_json=as_json, plain=plain)
    return decision.exit_code


def _show(document: dict[str, Any], *, as_json: bool, plain: bool) -> None:
    from bench_pipeline.reports.text import gate_lines

    if as_json:
        emit_json(document)
    elif wants_plain(plain):
        emit_rows([document], _FIELDS, plain=True)
        emit_rows(document["checks"], ("name", "value", "limit", "passed"), plain=True)
    else:
        for line in gate_lines(document):
            click.echo(plain_text(line).replace("\n", "\\n"))
