"""``bench table``: print a table of the store."""

import click

from bench_pipeline.cli.output import LARGEST, format_options, project_option, project_root


@click.command()
@click.argument("name")
@click.option("--where", metavar="SQL", help="Only rows for which this condition holds.")
@click.option("--columns", metavar="A,B", default="", help="Only these columns, in this order.")
@click.option("--limit", type=click.IntRange(0, LARGEST), metavar="N", help="At most N rows.")
@project_option
@format_options
def table(
    name: str,
    *,
    where: str | None,
    columns: str,
    limit: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Print the table NAME.

    \b
    bench table verdicts --columns setup,task_id,outcome
    bench table verdicts --where "outcome = 'timeout'" --json
    """
    from bench_pipeline.cli.rows import emit_table
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.querying import read_table

    names = [column.strip() for column in columns.split(",") if column.strip()]
    store = Bench(project_root(project_dir)).store
    rows = read_table(store, name, where=where, columns=names, limit=limit)
    emit_table(rows, as_json=as_json, plain=plain, title=name)
