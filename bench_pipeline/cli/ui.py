"""``bench ui``: the Dagster web server and daemon of the project, on loopback, as two children."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

from bench_pipeline.cli.output import project_option, project_root
from bench_pipeline.errors import BenchError

# A child that has not ended this long after SIGTERM is killed.
_GRACE_S = 10.0


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Port on 127.0.0.1."
)
@project_option
def ui(port: int, project_dir: str | None) -> int:
    """Start the Dagster web server and daemon for the project; Ctrl-C ends both."""
    from bench_pipeline.cli.launching import dagster_home, instance_of
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.initialising import write_workspace

    bench = Bench(project_root(project_dir))
    workspace = write_workspace(bench.project)
    with instance_of(bench):
        pass
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(dagster_home(bench)),
        "BENCH_PROJECT": str(bench.project.root),
    }
    click.echo(f"http://127.0.0.1:{port}  (project {bench.project.root})")
    commands = [
        [sys.executable, "-m", "dagster_webserver", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(port)],
        [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace)],
    ]
    return _run_together(commands, environment, bench.project.root)


def _run_together(commands: list[list[str]], environment: dict[str, str], cwd: Path) -> int:
    """Run the commands until one ends or a signal comes, then end the others; 130 after a signal."""
    stopped: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: stopped.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    # Sessions of their own: Ctrl-C reaches this process alone, which then ends the children once each.
    children = [
        subprocess.Popen(command, env=environment, cwd=cwd, start_new_session=True, restore_signals=True)
        for command in commands
    ]
    try:
        while not stopped and all(child.poll() is None for child in children):
            time.sleep(0.2)
        ended = [child for child in children if child.poll() is not None]
    finally:
        _end(children)
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped:
        return 130
    name = " ".join(str(part) for part in ended[0].args[1:3])  # type: ignore[index]
    raise BenchError(
        f"running {name}", f"it ended with status {ended[0].returncode}", "its messages are above"
    )


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + _GRACE_S
    for child in children:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
