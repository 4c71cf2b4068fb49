"""``bench doctor``: what this machine and this project can and cannot do."""

import click

from bench_pipeline.cli.output import emit_json, emit_rows, format_options, project_option, project_root


@click.command(epilog="\b\nExamples:\n  bench doctor\n  bench doctor --json")
@project_option
@format_options
def doctor(project_dir: str | None, as_json: bool, plain: bool) -> int:
    """Say what this machine can and cannot do, by trying it.

    Looks at versions, sandboxes (a command is run in each), limits that cannot be enforced, the store, Dagster's
    home and the tools' programs and credentials. Exit status 1 when something that the project asks for will
    not work; it changes nothing.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.diagnosing import diagnose

    found = diagnose(Bench(project_root(project_dir)))
    document = found.document()
    if as_json:
        emit_json(document)
    else:
        rows = document["checks"]
        assert isinstance(rows, list)
        emit_rows(rows, ["check", "status", "found", "advice"], plain=plain, title="bench doctor")
    return 0 if found.ok else 1
