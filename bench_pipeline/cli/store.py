"""``bench store``: verify, compact, migrate, clean the store, and forget a cell."""

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import (
    Amount,
    emit_json,
    emit_rows,
    format_options,
    is_terminal,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.errors import UsageError
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    from bench_pipeline.store import Store


@click.group()
def store() -> None:
    """Verify, compact, migrate, clean the store."""


@store.command()
@click.option(
    "--put-aside", is_flag=True, help="Move what is corrupt to quarantine, so that it is measured again."
)
@project_option
@format_options
def verify(*, put_aside: bool, project_dir: str | None, as_json: bool, plain: bool) -> int:
    """Read every file whole and check it; exit 1 when something is broken.

    \b
    bench store verify
    bench store verify --put-aside
    """
    from bench_pipeline.pipeline.store_maintenance import verify_store

    document = verify_store(_open(project_dir, read_only=not put_aside), put_aside=put_aside)
    _print(document, as_json=as_json, plain=plain)
    return 0 if document["whole"] else 1


@store.command()
@project_option
@format_options
def compact(*, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Merge small parts into large ones; every answer stays the same.

    \b
    bench store compact
    """
    from bench_pipeline.pipeline.store_maintenance import compact_store

    _print(compact_store(_open(project_dir)), as_json=as_json, plain=plain)


@store.command()
@project_option
@format_options
def migrate(*, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Rewrite files of older versions in the current one (they are read either way).

    \b
    bench store migrate
    """
    from bench_pipeline.pipeline.store_maintenance import migrate_store

    _print(migrate_store(_open(project_dir)), as_json=as_json, plain=plain)


@store.command()
@click.option("--dry-run", is_flag=True, help="Count what would go; remove nothing.")
@click.option(
    "--older-than",
    "hours",
    type=Amount(),
    metavar="HOURS",
    help="Spare what is younger (default: 24). Keep it above the length of a cell while runs are going on.",
)
@project_option
@format_options
def gc(*, dry_run: bool, hours: float | None, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Remove artifacts that nothing refers to, unfinished files and free locks.

    \b
    bench store gc --dry-run
    bench store gc --older-than 48
    """
    from bench_pipeline.pipeline.store_maintenance import clean_store

    grace_s = None if hours is None else hours * 3600
    document = clean_store(_open(project_dir, read_only=dry_run), dry_run=dry_run, grace_s=grace_s)
    _print(document, as_json=as_json, plain=plain)


@store.command()
@click.argument("identity")
@click.option("--yes", is_flag=True, help="Do not ask.")
@project_option
@format_options
def forget(identity: str, *, yes: bool, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Remove everything stored about one cell; IDENTITY is its 64 hex digits, or the first six or more.

    A candidate or evidence that other cells share stays. On a terminal it asks first; elsewhere the start of an
    identity needs --yes.

    \b
    bench store forget 3f9ac2
    bench store forget 3f9ac2 --yes
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.explaining import find_identity
    from bench_pipeline.pipeline.store_maintenance import forget_cell

    whole = re.fullmatch("[0-9a-f]{64}", identity) is not None
    found = identity if whole else find_identity(Bench(project_root(project_dir)), identity)
    if not yes and is_terminal(sys.stdin):
        click.confirm(f"Forget all that was measured of the cell {found}?", abort=True, err=True)
    elif not yes and not whole:
        raise UsageError(
            "forgetting a cell", f"{identity} is the start of an identity", f"give all of {found}, or --yes"
        )
    _print(forget_cell(_open(project_dir), found), as_json=as_json, plain=plain)


def _open(project_dir: str | None, *, read_only: bool = False) -> "Store":
    from bench_pipeline.project import find_project
    from bench_pipeline.store import Store

    return Store.open(find_project(project_root(project_dir)).store_url, read_only=read_only)


def _print(document: Mapping[str, object], *, as_json: bool, plain: bool) -> None:
    """The document as JSON, as one key=value line with a line per finding, or as words."""
    if as_json:
        emit_json(document)
        return
    counts = {key: value for key, value in document.items() if not isinstance(value, list)}
    broken = [row for key in ("findings", "quarantined") for row in _rows(document.get(key))]
    if wants_plain(plain):
        emit_rows([counts], counts, plain=True)
        emit_rows(broken, ["path", "reason", "moved_to"], plain=True)
        return
    for key, value in counts.items():
        click.echo(f"{key.replace('_', ' ')}: {plain_text(str(value))}")
    if broken:
        emit_rows(broken, ["path", "reason", "moved_to"], plain=False, title="Corrupt")


def _rows(value: object) -> list[Mapping[str, object]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
