"""``bench clean-run``: evidence that an agent never saw the answer: seal, scan, verify, measure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from bench_pipeline.attestation import Examination, Finding
    from bench_pipeline.pipeline.attesting import AttestedCell
    from bench_pipeline.pipeline.bench import Bench

_STATUS = {"CLEAN": 0, "INCONCLUSIVE": 3, "DIRTY": 4}

_reference_option = click.option(
    "--reference",
    "references",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A further text of the answer (repeatable); it adds to what the task says.",
)


@click.group("clean-run")
def clean_run() -> None:
    """Attest that an agent never saw the answer.

    A cell is named by its identity, or by the first six or more digits of it; an attestation by its hash. The
    exit status is 0 for CLEAN, 3 for INCONCLUSIVE, 4 for DIRTY, 1 when something does not verify or there is
    no key.
    """


@clean_run.command("init-key")
@format_options
def init_key(*, as_json: bool, plain: bool) -> None:
    """Make the audit key of this user; there is none before, and it is never replaced.

    The file is the one that BENCH_AUDIT_KEY_FILE names, else one in the user's state folder. Give others the
    public key that is printed: with it they can verify without the secret.
    """
    from bench_pipeline.attestation import create_key

    path, key = create_key()
    if as_json:
        emit_json({"file": path, "key_id": key.id, "public_key": key.public})
    elif wants_plain(plain):
        row = {"file": str(path), "key_id": key.id, "public_key": key.public}
        emit_rows([row], ["file", "key_id", "public_key"], plain=True)
    else:
        click.echo(f"The audit key is in {plain_text(str(path))}; keep it, and keep it secret.")
        click.echo(f"key id      {key.id}\npublic key  {key.public}")


@clean_run.command()
@click.argument("cell")
@_reference_option
@project_option
@format_options
def seal(
    cell: str, *, references: tuple[Path, ...], project_dir: str | None, as_json: bool, plain: bool
) -> int:
    """Scan a cell and keep what was found as an attestation.

    \b
    bench clean-run seal 3f9ac2
    bench clean-run seal 3f9ac2 --reference answer.py

    Cells of golden tasks are sealed by themselves as they run, when there is a key.
    """
    from bench_pipeline.pipeline.attesting import seal_stored

    bench, found = _cell(cell, references, project_dir)
    sealed = seal_stored(bench, found)
    _emit(sealed.attestation.examination, {"attestation": sealed.hash}, as_json=as_json, plain=plain)
    return _STATUS[sealed.attestation.verdict]


@clean_run.command("scan")
@click.argument("cell")
@_reference_option
@project_option
@format_options
def scan_(
    cell: str, *, references: tuple[Path, ...], project_dir: str | None, as_json: bool, plain: bool
) -> int:
    """Scan a cell and keep nothing; it needs no key.

    \b
    bench clean-run scan 3f9ac2 --json
    """
    from bench_pipeline.pipeline.attesting import scan_stored

    bench, found = _cell(cell, references, project_dir)
    scanned = scan_stored(bench, found)
    coverage = vars(scanned.commitment.coverage)
    _emit(scanned.examination, {"coverage": coverage}, as_json=as_json, plain=plain)
    return _STATUS[scanned.examination.verdict]


@clean_run.command()
@click.argument("attestation", metavar="HASH")
@_reference_option
@click.option(
    "--public-key", metavar="HEX", help="Verify by this Ed25519 key where the secret is not at hand."
)
@project_option
@format_options
def verify(
    attestation: str,
    *,
    references: tuple[Path, ...],
    public_key: str | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Verify an attestation offline, by deriving again whatever can be derived.

    \b
    bench clean-run verify 09c1...e4
    bench clean-run verify 09c1...e4 --public-key 5d20...77

    The verdict that is printed is the one that was derived again. Exit status 0 verified and CLEAN, 1 not
    verified or no key, 3 INCONCLUSIVE, 4 verified but DIRTY.
    """
    from bench_pipeline.pipeline.attesting import proven_findings, verify_stored
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_root(project_dir))
    checked = verify_stored(bench, attestation.lower(), references, public_key)
    steps = [vars(step) for step in checked.steps]
    more = {"attestation": checked.name, "verified": checked.verified, "problem": checked.problem}
    if not checked.verified or checked.examination is None:
        if as_json:
            emit_json({**more, "verdict": None, "findings": [], "reasons": [], "steps": steps})
        else:
            emit_rows(
                [{**more, "verdict": None}], ["attestation", "verified", "verdict", "problem"], plain=plain
            )
        return 1
    if as_json:
        found = {"verdict": checked.examination.verdict, "reasons": list(checked.examination.reasons)}
        emit_json({**more, **found, "findings": proven_findings(bench, checked), "steps": steps})
    else:
        _emit(
            checked.examination, {"attestation": checked.name, "verified": True}, as_json=False, plain=plain
        )
        for step in checked.steps:
            if step.state != "ok":
                notice(f"{step.name}: {step.state}: {step.reason}")
    return _STATUS[checked.examination.verdict]


@clean_run.command()
@click.argument("cell")
@_reference_option
@project_option
@format_options
def power(
    cell: str, *, references: tuple[Path, ...], project_dir: str | None, as_json: bool, plain: bool
) -> int:
    """Measure what the scan finds: plant the answer in a copy of the journal, in several encodings.

    \b
    bench clean-run power 3f9ac2

    Also counts false findings in the files of Python's standard library, which hold no answer. Exit status 3 when
    the task has nothing that could be planted.
    """
    from bench_pipeline.pipeline.attesting import power_of

    bench, found = _cell(cell, references, project_dir)
    measured = power_of(bench, found)
    rows: list[dict[str, Any]] = [
        {**vars(each), "share": each.detected / each.planted if each.planted else None}
        for each in measured.by_encoding
    ]
    null = {
        "files": measured.null_files,
        "windows": measured.null_windows,
        "findings": measured.null_findings,
        "rate": measured.null_findings / measured.null_windows if measured.null_windows else None,
    }
    if as_json:
        emit_json({"share": measured.share, "encodings": rows, "null_corpus": null})
    else:
        emit_rows(rows, ["encoding", "planted", "detected", "share"], plain=plain, title="Planted answers")
        emit_rows([null], ["files", "windows", "findings", "rate"], plain=plain, title="Standard library")
    return 0 if measured.share is not None else 3


def _cell(prefix: str, references: tuple[Path, ...], project_dir: str | None) -> "tuple[Bench, AttestedCell]":
    from bench_pipeline.pipeline.attesting import attested_cell
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.explaining import find_identity

    bench = Bench(project_root(project_dir))
    return bench, attested_cell(bench, find_identity(bench, prefix), references)


def _emit(found: "Examination", more: dict[str, Any], *, as_json: bool, plain: bool) -> None:
    findings = [_finding(each) for each in found.findings]
    if as_json:
        emit_json({**more, "verdict": found.verdict, "findings": findings, "reasons": list(found.reasons)})
        return
    row = {**more, "verdict": found.verdict, "findings": len(findings), "reasons": list(found.reasons)}
    emit_rows([row], list(row), plain=plain)
    if findings:
        emit_rows(findings, ["row", "kind"], plain=plain, title="Findings")


def _finding(finding: "Finding") -> dict[str, object]:
    return {"row": finding.row, "kind": finding.kind}
