"""``bench sql``: query the tables of the store."""

import sys

import click

from bench_pipeline.cli.output import format_options, project_option, project_root
from bench_pipeline.errors import UsageError


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

    text = _utf8(_standard_input() if query == "-" else query.encode("utf-8", "surrogateescape"))
    result = query_store(Bench(project_root(project_dir)).store, text)
    emit_table(result, as_json=as_json, plain=plain)


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UsageError("reading the query", "standard input is closed", "pipe it in, or give it as a word")
    return sys.stdin.buffer.read()


def _utf8(query: bytes) -> str:
    try:
        return query.decode("utf-8")
    except UnicodeDecodeError as error:
        line = query.count(b"\n", 0, error.start) + 1
        wrong = f"line {line} holds the byte 0x{query[error.start]:02x}, which is not UTF-8"
        raise UsageError("reading the query", wrong, "write it in UTF-8") from error
