"""What every local backend promises about running a command, whether it isolates or not."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import Command, Limits, Place, ProcessEnd, Sandbox, open_sandbox

BACKENDS = [pytest.param("process"), pytest.param("bubblewrap", marks=pytest.mark.services)]
Run = Callable[..., ProcessEnd]


@pytest.fixture(params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return open_sandbox(request.param, allow_process=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")
    for folder in (place.tree, place.home, place.tmp):
        folder.mkdir()
    return place


@pytest.fixture
def run(sandbox: Sandbox, place: Place, tmp_path: Path) -> Run:
    def run(
        *argv: str, stdin: bytes = b"", env: dict[str, str] | None = None, **limits: object
    ) -> ProcessEnd:
        cancel = limits.pop("cancel", None)
        bounds = Limits(**{"wall_s": 60.0, "grace_s": 5.0, **limits})  # type: ignore[arg-type]
        return sandbox.run(
            Command(argv, env or {}, stdin),
            place,
            bounds,
            stdout=tmp_path / "stdout",
            stderr=tmp_path / "stderr",
            cancel=cancel,  # type: ignore[arg-type]
        )

    return run


@pytest.fixture
def beacon() -> Iterator[str]:
    """An argument for ``sleep`` that tells this test's processes from all others."""
    seconds = f"3{uuid.uuid4().int % 10**12:012d}"
    yield seconds
    for process in carrying(seconds):
        process.kill()


def carrying(beacon: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if beacon in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def when(condition: Callable[[], bool]) -> threading.Event:
    """An event that is set as soon as ``condition`` holds."""
    event = threading.Event()
    threading.Thread(target=lambda: eventually(condition) and event.set(), daemon=True).start()
    return event


def test_output_and_exit_status_are_what_the_command_gave(run: Run) -> None:
    end = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (end.exit_code, end.signal) == (3, None)
    assert (end.stdout.read_bytes(), end.stderr.read_bytes()) == (b"out\n", b"err\n")
    assert (end.timed_out, end.cancelled, end.memory_killed) == (False, False, False)
    assert end.killed_for is None
    assert end.orphans == 0


def test_the_environment_of_the_host_is_not_inherited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    end = run("env", env={"GIVEN": "a b\nc"})
    text = end.stdout.read_text()
    assert "SECRET_OF_THE_HOST" not in text
    assert "GIVEN=a b\nc\n" in text
    assert "PATH=/usr/local/bin:/usr/bin:/bin\n" in text
    assert "LANG=C.UTF-8\n" in text
    assert "TZ=UTC\n" in text


def test_the_command_starts_in_its_tree_with_its_own_home_and_temporary_folder(
    run: Run, sandbox: Sandbox, place: Place
) -> None:
    end = run(
        "sh",
        "-c",
        'pwd; echo "$HOME"; echo "$TMPDIR"; echo t > in-tree; echo h > ~/in-home; echo m > "$TMPDIR/in-tmp"',
    )
    paths = sandbox.view(place)
    assert end.stdout.read_text().split() == [paths.tree, paths.home, paths.tmp]
    assert (place.tree / "in-tree").read_text() == "t\n"
    assert (place.home / "in-home").read_text() == "h\n"
    assert (place.tmp / "in-tmp").read_text() == "m\n"


def test_input_arrives_whole_and_is_closed(run: Run) -> None:
    data = os.urandom(3 << 20)
    end = run("cat", stdin=data, output_bytes=8 << 20)
    assert end.stdout.read_bytes() == data


def test_input_that_nobody_reads_holds_nothing_up(run: Run) -> None:
    assert run("sh", "-c", "exec <&-; exit 0", stdin=bytes(1 << 20)).exit_code == 0


def test_input_is_at_its_end_when_none_is_given(run: Run) -> None:
    assert run("cat").stdout.read_bytes() == b""


def test_dying_of_a_signal_is_told_from_exiting_with_its_number(run: Run) -> None:
    exited = run("sh", "-c", "exit 143")
    killed = run("sh", "-c", "kill -TERM $$")
    assert (exited.exit_code, exited.signal) == (143, None)
    assert (killed.exit_code, killed.signal) == (None, signal.SIGTERM)


def test_a_program_that_is_not_there_ends_with_127(run: Run) -> None:
    end = run("no-such-program-anywhere")
    assert end.exit_code == 127
    assert b"not found" in end.stderr.read_bytes() or b"No such file" in end.stderr.read_bytes()


def test_signals_have_their_usual_meaning_for_the_command(run: Run) -> None:
    """A shell that starts something in the background would make it deaf to Ctrl-C."""
    end = run(
        "python3",
        "-c",
        "import signal; print([signal.getsignal(n) == signal.SIG_IGN for n in (2, 3, 13, 15)])",
    )
    # Python itself ignores SIGPIPE (13).
    assert end.stdout.read_text() == "[False, False, True, False]\n"
    name, ignored = run("sh", "-c", "grep SigIgn /proc/self/status").stdout.read_text().split()
    # The C library keeps 32 and 33 for its threads: no program can set them, some start others without them.
    own = sum(1 << (number - 1) for number in (32, 33))
    assert (name, int(ignored, 16) & ~own) == ("SigIgn:", 0)


def test_nohup_around_bench_does_not_reach_the_command_of_the_process_backend(
    place: Place, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        end = open_sandbox("process", allow_process=True).run(
            Command(("sh", "-c", "kill -HUP $$"), {}, b""),
            place,
            Limits(wall_s=60.0, grace_s=5.0),
            stdout=tmp_path / "stdout",
            stderr=tmp_path / "stderr",
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (end.exit_code, end.signal) == (None, signal.SIGHUP)


def test_a_command_out_of_time_is_ended(run: Run, beacon: str) -> None:
    end = run("sleep", beacon, wall_s=0.2)
    assert end.timed_out
    assert not end.cancelled
    assert end.signal == signal.SIGTERM
    assert not carrying(beacon)


def test_a_command_that_has_to_stop_is_asked_first_and_its_last_words_are_kept(
    run: Run, place: Place
) -> None:
    end = run(
        "sh",
        "-c",
        "trap 'echo bye; exit 7' TERM; touch ready; while :; do sleep 0.01; done",
        cancel=when((place.tree / "ready").exists),
    )
    assert end.cancelled
    assert end.exit_code == 7
    assert end.stdout.read_text() == "bye\n"


def test_every_process_of_a_command_that_has_to_stop_is_asked(run: Run, place: Place) -> None:
    child = "trap 'echo stopped > child; exit' TERM; touch ready; while :; do sleep 0.01; done"
    end = run("sh", "-c", f'setsid sh -c "{child}" & wait', cancel=when((place.tree / "ready").exists))
    assert end.cancelled
    assert (place.tree / "child").read_text() == "stopped\n"


def test_a_command_that_ignores_being_asked_is_killed_after_the_grace(run: Run, beacon: str) -> None:
    script = f"trap '' TERM; sleep {beacon} & sleep {beacon}"
    end = run("sh", "-c", script, wall_s=0.3, grace_s=0.3)
    assert end.timed_out
    assert end.signal == signal.SIGKILL
    assert end.duration_s >= 0.6
    assert not carrying(beacon)


def test_cancelling_is_no_time_out(run: Run, beacon: str) -> None:
    end = run("sleep", beacon, cancel=when(lambda: bool(carrying(beacon))))
    assert end.cancelled
    assert not end.timed_out
    assert not carrying(beacon)


def test_what_a_command_leaves_running_is_counted_and_ended(run: Run, beacon: str) -> None:
    script = f"""
        sleep {beacon} >/dev/null 2>&1 &
        setsid sleep {beacon} >/dev/null 2>&1 </dev/null &
        (setsid sh -c 'trap "" TERM HUP; sleep {beacon}; :' >/dev/null 2>&1 </dev/null &)
        exit 0
    """
    end = run("sh", "-c", script)
    assert end.exit_code == 0
    assert end.orphans == 4  # three sleeps and the shell around the last
    assert not carrying(beacon)


def test_a_daemon_that_drops_its_environment_is_found(run: Run, beacon: str) -> None:
    end = run("sh", "-c", f"(env -i setsid sh -c 'cd /; sleep {beacon} & exit 0' &); sleep 0.2")
    assert end.orphans == 1
    assert not carrying(beacon)


def test_a_daemon_that_keeps_the_output_open_holds_nothing_up(run: Run, beacon: str) -> None:
    started = time.monotonic()
    end = run("sh", "-c", f"sleep {beacon} & echo done")
    assert end.stdout.read_text() == "done\n"
    assert end.orphans == 1
    assert time.monotonic() - started < 30


def test_endless_output_is_cut_in_the_middle_and_the_cut_is_noted(run: Run) -> None:
    end = run("sh", "-c", "echo first; head -c 200000000 /dev/zero; echo last", output_bytes=10_000)
    kept = end.stdout.read_bytes()
    assert kept.startswith(b"first\n\0")
    assert kept.endswith(b"\0last\n")
    assert end.stdout_cut == 200_000_011 - 10_000
    assert b"[bench: 199990011 bytes were cut here]" in kept
    assert len(kept) < 10_100
    assert end.stderr_cut == 0


def test_output_within_the_limit_is_kept_as_it_is(run: Run) -> None:
    end = run("head", "-c", "10000", "/dev/zero", output_bytes=10_000)
    assert end.stdout.read_bytes() == bytes(10_000)
    assert end.stdout_cut == 0


def test_printing_for_ever_ends_with_the_time(run: Run) -> None:
    end = run("yes", wall_s=0.5, output_bytes=1000)
    assert end.timed_out
    assert end.stdout_cut > 0


def test_a_command_that_takes_too_much_memory_is_ended(run: Run) -> None:
    end = run("python3", "-c", "x = b'x' * (256 << 20); import time; time.sleep(60)", memory_bytes=96 << 20)
    assert end.memory_killed
    assert end.killed_for == "memory"
    assert not end.timed_out


def test_a_command_with_too_many_processes_gets_no_more_or_is_ended(run: Run) -> None:
    # Bounded by itself: at most 200 sleeps, whatever the limit does.
    end = run("sh", "-c", "for i in $(seq 200); do sleep 30 & done; wait", pids=40)
    assert end.killed_for == "processes" or b"fork" in end.stderr.read_bytes()
    assert end.duration_s < 25


def test_memory_that_processes_share_counts_once(run: Run) -> None:
    script = """
import os, time
block = bytearray(b"x" * (48 << 20))
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for _ in range(4):
    os.wait()
"""
    end = run("python3", "-c", script, memory_bytes=160 << 20)
    assert end.exit_code == 0


def test_a_command_that_fills_the_disk_is_ended(sandbox: Sandbox) -> None:
    # On a quiet file system, because free space is what is looked at first.
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        place = Place(*(Path(name, part) for part in ("tree", "home", "tmp")))
        for folder in (place.tree, place.home, place.tmp):
            folder.mkdir()
        end = sandbox.run(
            Command(("sh", "-c", "head -c 67108864 /dev/zero > big; sleep 50")),
            place,
            Limits(60, disk_bytes=16 << 20, grace_s=1),
            stdout=Path(name, "stdout"),
            stderr=Path(name, "stderr"),
        )
    assert end.killed_for == "disk"


def test_runs_in_several_threads_do_not_meet(sandbox: Sandbox, tmp_path: Path) -> None:
    ends: dict[int, ProcessEnd] = {}

    def one(number: int) -> None:
        folder = tmp_path / str(number)
        place = Place(folder / "tree", folder / "home", folder / "tmp")
        for part in (place.tree, place.home, place.tmp):
            part.mkdir(parents=True)
        command = Command(("sh", "-c", f"sleep 0.2 & cat; exit {number}"), stdin=str(number).encode())
        ends[number] = sandbox.run(
            command, place, Limits(60), stdout=folder / "stdout", stderr=folder / "stderr"
        )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: (end.exit_code, end.stdout.read_text()) for n, end in ends.items()} == {
        n: (n, str(n)) for n in range(8)
    }


def test_no_descriptor_and_no_child_is_left_in_bench(run: Run) -> None:
    run("true")
    before = (len(os.listdir("/proc/self/fd")), len(psutil.Process().children()))
    for _ in range(5):
        run("sh", "-c", "sleep 30 & exit 1")
    assert (len(os.listdir("/proc/self/fd")), len(psutil.Process().children())) == before


def test_what_cannot_be_started_is_an_error_that_says_so(run: Run, place: Place) -> None:
    with pytest.raises(SandboxError, match=r"NUL|null"):
        run("true", env={"NAME": "a\0b"})
    with pytest.raises(SandboxError):
        run("true", "x" * 300_000)
    shutil.rmtree(place.tree)
    with pytest.raises(SandboxError):
        run("true")


def test_limits_that_the_kernel_does_not_keep_are_named_once(run: Run) -> None:
    end = run("true", memory_bytes=1 << 30, pids=100)
    said = end.limits_not_enforced
    assert len(said) == len(set(said))
    assert all(word.split()[0] in {"memory", "processes", "processors", "disk"} for word in said)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_runs_on_when_bench_itself_is_killed(backend: str, tmp_path: Path, beacon: str) -> None:
    script = f"""
from pathlib import Path
from bench_pipeline.execution.sandbox import Command, Limits, Place, open_sandbox
folder = Path({str(tmp_path)!r})
place = Place(folder / "tree", folder / "home", folder / "tmp")
for part in (place.tree, place.home, place.tmp):
    part.mkdir()
command = Command(("sh", "-c", "setsid sleep {beacon} & sleep {beacon}"))
open_sandbox({backend!r}, True).run(command, place, Limits(600), stdout=folder / "o", stderr=folder / "e")
"""
    bench = subprocess.Popen([sys.executable, "-c", script])
    try:
        assert eventually(lambda: len(carrying(beacon)) == 2)
    finally:
        bench.kill()
        bench.wait()
    assert eventually(lambda: not carrying(beacon))


def test_a_command_has_a_program() -> None:
    with pytest.raises(ValueError, match="program"):
        Command(())
