"""``bench init``: write a new project into a folder, and say what to do next."""

import shlex
from pathlib import Path

import click

from bench_pipeline.cli.output import emit_json
from bench_pipeline.reports.escaping import plain_text


@click.command(epilog="\b\nExamples:\n  bench init my-benchmark\n  bench init . --json")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def init(folder: Path, as_json: bool) -> None:
    """Write a new project into DIR, which is made when it is not there.

    Writes config.yaml with every setting in comments, folders for evaluations, tools, tasks and predictions, a
    first evaluation, and a line in .gitignore. A file that is there is never replaced, so running it again is
    harmless: it adds what is missing.
    """
    from bench_pipeline.pipeline.initialising import NEXT_STEPS, initialise

    result = initialise(folder)
    written, left = (
        [_shown(path, result.project) for path in paths] for paths in (result.written, result.left_alone)
    )
    if as_json:
        steps = [command for command, _ in NEXT_STEPS]
        emit_json({"project": result.project, "written": written, "left_alone": left, "next_steps": steps})
        return
    for name in written:
        click.echo(f"wrote {name}")
    for name in left:
        click.echo(f"left alone {name}, which was there")
    click.echo("\nNext:")
    if folder.absolute() != Path.cwd():
        click.echo(f"  cd {plain_text(shlex.quote(str(folder)))}")
    width = max(len(command) for command, _ in NEXT_STEPS)
    for command, reason in NEXT_STEPS:
        click.echo(f"  {command:<{width}}  # {reason}")


def _shown(path: Path, root: Path) -> str:
    return plain_text(path.relative_to(root).as_posix())
