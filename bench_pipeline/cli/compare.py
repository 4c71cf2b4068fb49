"""``bench compare``: two setups over the tasks that both measured."""

from typing import Any

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


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--evaluation", metavar="NAME", help="Only within this evaluation.")
@click.option("--seed", type=click.IntRange(0, LARGEST), metavar="N", help="Of the permutation test.")
@project_option
@format_options
def compare(
    a: str,
    b: str,
    *,
    evaluation: str | None,
    seed: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Compare setup A with setup B over the tasks that both measured; the difference is A - B.

    \b
    bench compare codex/gpt/high codex/gpt/low    by label
    bench compare 3fa9c1 77e0b2                   by the start of their digests
    bench compare A B --json                      rows of the table paired_comparisons

    One comparison per evaluation that has both; when none has, over the tasks that both measured anywhere.
    Exit status 3 when no task was measured by both.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.comparing import compare_setups
    from bench_pipeline.pipeline.reading import evaluation_outcomes, repositories
    from bench_pipeline.statistics.bootstrap import SEED

    bench = Bench(project_root(project_dir))
    bench.on_notice = notice
    cells, verdicts = evaluation_outcomes(bench, evaluation)
    chosen = SEED if seed is None else seed
    found = compare_setups(cells, verdicts, a, b, clusters=repositories(bench), seed=chosen)
    documents = [comparison.document() for comparison in found]
    if as_json:
        emit_json(documents)
    else:
        for document in documents:
            _show(document, plain=plain)
    return 0 if any(document["shared_tasks"] for document in documents) else 3


def _show(document: dict[str, Any], *, plain: bool) -> None:
    from bench_pipeline.reports.text import comparison_display, comparison_lines, flip_display
    from bench_pipeline.tables import table_schema

    if wants_plain(plain):
        emit_rows([document], table_schema("paired_comparisons").schema.names, plain=True)
        emit_rows(document["sums"], ("quantity", "a", "b", "cells", "of"), plain=True)
        emit_rows(document["flips"], ("task_id", "a", "b"), plain=True)
        return
    for line in comparison_lines(document):
        click.echo(plain_text(line).replace("\n", "\\n"))
    emit_rows(comparison_display(document), ("", "a", "b"), plain=False)
    flips = flip_display(document)
    if flips:
        emit_rows(flips, ("task", "a", "b"), plain=False, title="tasks that differ")
