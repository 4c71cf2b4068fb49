"""``bench rank``: which setup is better, and how sure are we."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import (
    LARGEST,
    emit_json,
    emit_rows,
    format_options,
    notice,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.ranking import EvaluationRanking
    from bench_pipeline.reports.text import Note


@click.command()
@click.argument("evaluation", required=False)
@click.option("--all", "everything", is_flag=True, help="Every evaluation of the project.")
@click.option(
    "--seed", type=click.IntRange(0, LARGEST), metavar="N", help="Of the bootstrap behind the rank bands."
)
@project_option
@format_options
def rank(
    evaluation: str | None,
    *,
    everything: bool,
    seed: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Rank the setups of EVALUATION by pass rate over the tasks that all ranked ones measured.

    \b
    bench rank models            one evaluation
    bench rank --all             every evaluation of the project
    bench rank models --json     rows of the table evaluation_rankings

    Equal rates share a rank; the band is where the rank lies when the tasks are drawn anew. A setup that
    measured too little is listed below with what is missing and the command that fills it.
    Exit status 3 when no setup can be ranked, 5 when nothing was planned.
    """
    if (evaluation is None) is not everything:
        raise click.UsageError("name one EVALUATION, or use --all")
    from bench_pipeline.errors import NothingToEvaluateError
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.comparing import compare_all
    from bench_pipeline.pipeline.querying import json_rows
    from bench_pipeline.pipeline.ranking import rank_evaluations
    from bench_pipeline.pipeline.reading import evaluation_outcomes, repositories
    from bench_pipeline.pipeline.unpriced import unknown_costs
    from bench_pipeline.pipeline.validating import unfit_tasks
    from bench_pipeline.statistics.bootstrap import SEED

    bench = Bench(project_root(project_dir))
    bench.on_notice = notice
    cells, verdicts = evaluation_outcomes(bench, evaluation)
    coverage = bench.project.config.ranking.min_coverage
    rankings = rank_evaluations(cells, verdicts, min_coverage=coverage, seed=SEED if seed is None else seed)
    if not rankings:
        command = "bench run" if evaluation is None else f"bench run {evaluation}"
        raise NothingToEvaluateError("ranking setups", "no cell is planned yet", command)
    if as_json:
        emit_json([row for ranking in rankings for row in json_rows(ranking.table())])
    else:
        pairs = compare_all(cells, verdicts, clusters=repositories(bench)).to_pylist()
        unfit = unfit_tasks(bench.tasks.tasks)
        for why in unknown_costs(cells, verdicts, bench.prices):
            notice(why)
        for ranking in rankings:
            own = [pair for pair in pairs if pair["evaluation"] == ranking.evaluation]
            _show(ranking, own, unfit, plain=plain)
    return 0 if any(row["ranked"] for ranking in rankings for row in ranking.rows) else 3


def _show(
    ranking: "EvaluationRanking", pairs: list[dict[str, object]], unfit: Mapping[str, str], *, plain: bool
) -> None:
    from bench_pipeline.reports.text import UNKNOWN, ranking_display, ranking_notes
    from bench_pipeline.tables import table_schema

    notes = ranking_notes(ranking.rows, pairs, ranking.left_out, ranking.commands, unfit)
    if wants_plain(plain):
        emit_rows(ranking.rows, table_schema("evaluation_rankings").schema.names, plain=True)
        emit_rows(
            [{"evaluation": ranking.evaluation, "note": note.kind, "text": note.text} for note in notes],
            ("evaluation", "note", "text"),
            plain=True,
        )
        return
    shown = [ranking_display(row) for row in ranking.rows]
    columns = [name for name in shown[0] if any(row[name] != UNKNOWN for row in shown)]
    optional = ("patch lines", "tokens", "time", "cost", "band")
    emit_rows(shown, columns, plain=False, title=plain_text(ranking.evaluation), optional=optional)
    for note in notes:
        click.echo(_line(note))


def _line(note: "Note") -> str:
    return plain_text(f"{note.kind}: {note.text}").replace("\n", "\\n")
