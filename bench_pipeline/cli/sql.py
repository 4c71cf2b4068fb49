"""``bench sql``: query the tables of the store."""

import sys

import click

from bench_pipeline.cli.output import format_options, project_option, project_root


@click.command()
@click.argument("query")
@project_option
@format_options
def sql(query: str, *, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Print the result of one SELECT over the tables (``-`` reads it from standard input).

    \b
    bench sql "select setup, avg(passed::int) from verdicts where outcome_class = 'verdict' group by setup"
    bench sql "show tables"
    bench sql "describe verdicts" --json

    The query can read the tables and nothing else: no files, no network, no writing.
    """
    from bench_pipeline.cli.rows import emit_table
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.querying import query_store

    text = sys.stdin.read() if query == "-" else query
    result = query_store(Bench(project_root(project_dir)).store, text)
    emit_table(result, as_json=as_json, plain=plain)
