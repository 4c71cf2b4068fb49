"""``bench doctor``: what this machine and this project can and cannot do."""

from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import emit_json, emit_rows, format_options, project_option, project_root

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.diagnosing import Check


@click.command(epilog="\b\nExamples:\n  bench doctor\n  bench doctor --json")
@project_option
@format_options
def doctor(project_dir: str | None, as_json: bool, plain: bool) -> int:
    """Say what this machine can and cannot do, by trying it.

    Looks at versions, sandboxes (a command is run in each), limits that cannot be enforced, the store, Dagster's
    home, the tools' programs and credentials, and partitions that runs left failed. Exit status 1 when something
    that the project asks for will not work; it changes nothing.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.diagnosing import diagnose

    bench = Bench(project_root(project_dir))
    found = diagnose(bench)
    found.checks += _runs(bench)
    document = found.document()
    if as_json:
        emit_json(document)
    else:
        rows = document["checks"]
        assert isinstance(rows, list)
        emit_rows(rows, ["check", "status", "found", "advice"], plain=plain, title="bench doctor")
    return 0 if found.ok else 1


def _runs(bench: "Bench") -> list["Check"]:
    """What the newest runs left failed, where there were any runs."""
    from bench_pipeline.cli.launching import failed_partitions
    from bench_pipeline.errors import BenchError
    from bench_pipeline.pipeline.diagnosing import Check

    try:
        lines = failed_partitions(bench)
    except BenchError as error:
        return [Check("runs", "note", str(error))]
    if lines == []:
        return [Check("runs", "ok", "no partition was left failed")]
    advice = "`bench ui` shows why; `bench run` makes them again"
    return [Check("runs", "note", f"left failed: {line}", advice) for line in lines or ()]
