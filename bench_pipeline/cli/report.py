"""``bench report``: one page over everything, for the morning, a mail or a pull request."""

from pathlib import Path
from typing import Any

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    project_option,
    project_root,
)

_MARKDOWN_SUFFIXES = {".md", ".markdown"}


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the page to this file (default: pages in the store's reports folder).",
)
@click.option(
    "--since",
    metavar="RUN",
    help="Compare with what was known before this run, or with this report (default: the last one that differs).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    help="Of the page (default: by the name of FILE, else HTML); without --out it is printed.",
)
@project_option
@format_options
def report(
    *,
    out: Path | None,
    since: str | None,
    form: str | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Say what changed, what every lane holds and what is missing, on one page.

    \b
    bench report                                     pages in the store, for a browser
    bench report --out report.html                   one file that needs no network and no script
    bench report --format markdown > comment.md      for a comment on a pull request
    bench report --since 3f2a --json                 everything that the page says, since a run

    Read is what the tables hold: `bench run` brings them up to date. Each state of them is kept once, so the same
    state gives the same report. Exit status 5 when there is nothing to report.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.reporting import counts, make_report, refuse_empty, write_report

    bench = Bench(project_root(project_dir))
    document = make_report(bench, since)
    refuse_empty(document)
    if out is not None:
        _write(document, out, form)
    if as_json:
        emit_json(document)
    elif out is not None:
        _tell({**counts(document), "out": str(out)}, plain=plain)
    elif form is not None:
        click.echo(_page(document, form), nl=False)
    else:
        pages = write_report(bench, document)
        _tell({**pages.counts, "html": pages.html, "markdown": pages.markdown}, plain=plain)


def _write(document: dict[str, Any], out: Path, form: str | None) -> None:
    from bench_pipeline.store.files import LocalFiles

    by_name = "markdown" if out.suffix.lower() in _MARKDOWN_SUFFIXES else "html"
    LocalFiles(out.absolute().parent).write(out.name, _page(document, form or by_name).encode())


def _page(document: dict[str, Any], form: str) -> str:
    from bench_pipeline.reports.page import html_page, markdown_page

    return markdown_page(document) if form == "markdown" else html_page(document)


def _tell(facts: dict[str, object], *, plain: bool) -> None:
    """The numbers of the report, and where it is."""
    emit_rows([facts], facts, plain=plain, title="Report")
