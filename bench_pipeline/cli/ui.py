"""``bench ui``: the Dagster web server and daemon of the project, on loopback, as two children.

What belongs here: that there is one of them, that both start, and that nothing is left when they end. What does
not: the instance they use (``launching``) and what they show (``defs``).
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import psutil

from bench_pipeline.cli.output import project_option, project_root
from bench_pipeline.errors import BenchError, RefusedError

_HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A cell that is told to end has 10 s before it is killed, and a run then writes what it has.
_GRACE_S = 25.0
_LOOK_S = 0.1


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help=f"Port on {_HOST}."
)
@project_option
def ui(port: int, project_dir: str | None) -> int:
    """Start the Dagster web server and daemon for the project; Ctrl-C ends both.

    Runs that were started in the UI end with it: their cells are stopped, what is done is saved.

    \b
    bench ui                 on http://127.0.0.1:3000
    bench ui --port 3001     beside the UI of another project
    """
    from bench_pipeline.cli.launching import dagster_home, instance_in
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.initialising import write_workspace

    project = Bench(project_root(project_dir))
    home = dagster_home(project)
    root = project.project.root
    url = f"http://{_HOST}:{port}"
    with _the_only_one(home, url) as lock:
        _refuse_busy(port)
        workspace = write_workspace(project.project)
        # The databases are made here, so that the two children do not race to make them.
        with instance_in(home):
            pass
        environment = {
            # How long a code server waits for calls of a web server that is ending too; its default is 60 s.
            "DAGSTER_GRPC_SHUTDOWN_GRACE_PERIOD": "2",
            **os.environ,
            "DAGSTER_HOME": str(home),
            "BENCH_PROJECT": str(root),
        }
        click.echo(f"starting the web server and the daemon of {root}", err=True)
        commands = [
            [sys.executable, "-m", "dagster_webserver", "-w", str(workspace), "-h", _HOST, "-p", str(port)],
            [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace)],
        ]
        return _serve(commands, environment, root, lock, url)


@contextmanager
def _the_only_one(home: Path, url: str) -> Iterator[int]:
    """A lock on the instance, for the children to hold too; RefusedError while another ``bench ui`` has it.

    Two daemons on one instance would start everything twice.
    """
    handle = os.open(home / "ui.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _running_already(home, handle) from None
        _note(handle, url, [os.getpid()])
        yield handle
    finally:
        os.close(handle)


def _note(handle: int, url: str, processes: Sequence[int]) -> None:
    """Leave in the lock's file what a second ``bench ui`` has to tell."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps({"url": url, "processes": processes}).encode(), 0)


def _running_already(home: Path, handle: int) -> RefusedError:
    try:
        note = json.loads(os.pread(handle, 4096, 0))
        where = str(note["url"])
        living = " ".join(str(int(number)) for number in note["processes"] if psutil.pid_exists(int(number)))
    except (ValueError, KeyError, TypeError):
        where, living = "an unknown address", ""
    return RefusedError(
        "starting the web server and the daemon",
        f"those of {home} run already, at {where}",
        f"open that address, or end them first{f': kill {living}' if living else ''}",
    )


def _refuse_busy(port: int) -> None:
    with socket.socket() as probe:
        # As the web server does it: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise RefusedError(
                f"listening on {_HOST}:{port}", f"{error.strerror}", "choose another port with --port"
            ) from None


def _serve(commands: list[list[str]], environment: dict[str, str], cwd: Path, lock: int, url: str) -> int:
    """Run the commands until one ends or a signal comes, then end everything; 130 after a signal."""
    stops: list[int] = []
    before = {number: signal.signal(number, lambda number, _: stops.append(number)) for number in _SIGNALS}
    children: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            # A session of its own: Ctrl-C reaches this process alone, which then ends the children in order.
            child = subprocess.Popen(
                command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=(lock,)
            )  # fmt: skip
            children.append(child)
        _note(lock, url, [os.getpid(), *(child.pid for child in children)])
        ready = False
        while not stops and all(child.poll() is None for child in children):
            if not ready and _answers(url):
                ready = True
                click.echo(f"{url} is ready; Ctrl-C ends it")
            time.sleep(_LOOK_S)
        ended = next((child for child in children if child.poll() is not None), None)
    finally:
        _end(children, stops)
        for number, handler in before.items():
            signal.signal(number, handler)
    if ended is None or stops:
        return 128 + signal.SIGINT
    name = " ".join(str(word) for word in ended.args[1:3])  # type: ignore[index]
    raise BenchError(f"running {name}", f"it ended with status {ended.returncode}", "its messages are above")


def _answers(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def _end(children: Sequence["subprocess.Popen[bytes]"], stops: Sequence[int]) -> None:
    """End the children with all that they started; at once when a second signal comes."""
    asked = len(stops)
    family = [process for child in children for process in _generations(child.pid, 3)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + _GRACE_S
    while any(map(_lives, family)) and time.monotonic() < deadline and len(stops) <= max(asked, 1):
        for child in children:
            child.poll()
        time.sleep(_LOOK_S)
    for process in [*family, *(grown for member in family for grown in _generations(member.pid))]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    for child in children:
        child.wait()


def _generations(pid: int, depth: int | None = None) -> list[psutil.Process]:
    """A process and its descendants down to ``depth``, itself first.

    Three are the children, their code servers, and the runs of these. What a run has started is the run's to
    end: it knows which cells these processes belong to.
    """
    found: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        found.append(psutil.Process(pid))
        generation = found[:]
        while generation and depth != 1:
            depth = None if depth is None else depth - 1
            generation = [child for process in generation for child in _children(process)]
            found += generation
    return found


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children()
    return []


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
