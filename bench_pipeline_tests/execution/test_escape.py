"""What a hostile command tries against a real bubblewrap sandbox, one attempt per test.

Every attempt aims at something that the test made and that may break: should one succeed, nothing of the
machine is harmed.
"""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bench_pipeline.execution.sandbox import Command, Limits, Mount, Place, ProcessEnd, Sandbox, open_sandbox
from bench_pipeline.execution.sandbox.keyring import join_new_session_keyring
from bench_pipeline.execution.workspace import Workspaces

pytestmark = pytest.mark.services


class Cell:
    """A workspace in which a command can be tried."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self.root = root
        self.sandbox = sandbox
        self.place = Place(root / "tree", root / "home", root / "tmp")
        for folder in (self.place.tree, self.place.home, self.place.tmp):
            folder.mkdir(parents=True)

    def sh(self, script: str, place: Place | None = None, **limits: object) -> ProcessEnd:
        return self.run("sh", "-c", script, place=place, **limits)

    def python(self, script: str, **limits: object) -> ProcessEnd:
        return self.run("python3", "-c", script, **limits)

    def run(self, *argv: str, place: Place | None = None, **limits: object) -> ProcessEnd:
        return self.sandbox.run(
            Command(argv),
            place or self.place,
            Limits(**{"wall_s": 60.0, "grace_s": 2.0, **limits}),  # type: ignore[arg-type]
            stdout=self.root / "stdout",
            stderr=self.root / "stderr",
        )


def said(end: ProcessEnd) -> str:
    return end.stdout.read_text(errors="replace")


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return Cell(tmp_path / "cell", open_sandbox("bubblewrap", allow_process=False))


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[str]:
    """A word that lies in a file and in the environment of this process, and nowhere inside."""
    word = f"secret-{uuid.uuid4().hex}"
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text(word)
    os.environ["BENCH_TEST_SECRET"] = word
    yield word
    del os.environ["BENCH_TEST_SECRET"]


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


def test_it_is_an_ordinary_user_without_any_capability(cell: Cell) -> None:
    text = said(cell.sh("id -u; id -g; grep -E '^(Cap|NoNewPrivs)' /proc/self/status"))
    lines = text.split()
    assert lines[:2] == ["1000", "1000"]
    assert [lines[n + 1] for n, word in enumerate(lines) if word.startswith("Cap")] == [
        "0000000000000000"
    ] * 5
    assert lines[-1] == "1"


def test_only_its_own_folders_can_be_written(cell: Cell) -> None:
    find = "find / -path /proc -prune -o -path '/dev/*' -prune -o -writable ! -type l -print 2>/dev/null"
    assert said(cell.sh(find)).split() == ["/tmp", "/home/agent", "/workspace"] or set(
        said(cell.sh(find)).split()
    ) == {"/tmp", "/home/agent", "/workspace"}


def test_no_setting_of_the_kernel_can_be_written(cell: Cell) -> None:
    """Started by root, a process without any capability can still write root's own files below /proc/sys.

    A pattern for core dumps that starts with a pipe is a program that the kernel runs as root on the host.
    """
    script = """
import os
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
        except OSError:
            continue
        print("opened for writing:", folder, name)
for name in ("sysrq-trigger", "kcore", "kmsg", "mtrr", "self/uid_map", "1/oom_score_adj"):
    try:
        os.close(os.open("/proc/" + name, os.O_RDWR))
        print("opened:", name)
    except OSError:
        pass
"""
    end = cell.python(script)
    assert (end.exit_code, said(end)) == (0, "")


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -o remount,rw /opt/tool",
        "mount -o remount,bind,rw /opt/tool",
        "mount --bind /tmp /opt/tool",
        "mount -t tmpfs none /opt/tool",
        "umount /opt/tool; umount -l /opt/tool; false",
        "unshare -U true",
        "unshare -Ur mount -o remount,bind,rw /opt/tool",
        "unshare -m true",
        "mknod /tmp/disk b 254 0",
        "chroot /tmp true",
        "hostname elsewhere",
        "nsenter -t 1 -m true",
    ],
)
def test_nothing_is_mounted_and_no_namespace_is_made(cell: Cell, tmp_path: Path, attempt: str) -> None:
    """Run by root without an own user namespace, the tool could remount the host's folders writable."""
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("untouched")
    place = Place(cell.place.tree, cell.place.home, cell.place.tmp, mounts=(Mount(shown, "/opt/tool"),))
    end = cell.sh(
        f"{attempt}; code=$?; echo changed > /opt/tool/file; touch /opt/tool/new; exit $code", place
    )
    assert end.exit_code != 0
    assert (shown / "file").read_text() == "untouched"
    assert os.listdir(shown) == ["file"]


def test_a_writable_mount_can_be_written_and_a_read_only_one_cannot(cell: Cell, tmp_path: Path) -> None:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
    mounts = (Mount(tmp_path / "open", "/opt/open", writable=True), Mount(tmp_path / "closed", "/opt/closed"))
    place = Place(cell.place.tree, cell.place.home, cell.place.tmp, mounts=mounts)
    cell.sh("touch /opt/open/f; touch /opt/closed/f", place)
    assert os.listdir(tmp_path / "open") == ["f"]
    assert os.listdir(tmp_path / "closed") == []


def test_nothing_of_the_host_can_be_read(cell: Cell, secret: str, tmp_path: Path) -> None:
    script = f"""
        cat {tmp_path}/project/file {tmp_path}/project/../project/file /proc/1/root{tmp_path}/project/file
        ls -a {tmp_path} /root /var /srv /sys /boot /mnt /home/agent/.. /workspace/..
        cat /etc/shadow /etc/ssh/* /etc/sudoers /etc/gitconfig /etc/pip.conf /etc/resolv.conf /etc/hostname
        grep -rs {secret} / --exclude-dir=usr --exclude-dir=proc
        cat /proc/*/environ /proc/*/cmdline
    """
    text = said(cell.sh(script)).replace(f"grep -rs {secret}", "")
    assert f"{secret}\n" not in text
    assert secret not in said(cell.sh("cat /proc/*/environ; env"))
    assert "root:" not in text
    assert "project" not in said(cell.sh("ls -a / /home /home/agent /tmp /workspace /workspace/.. /opt"))


def test_the_host_folders_of_a_cell_are_not_on_any_command_line(cell: Cell) -> None:
    text = said(cell.sh("cat /proc/*/cmdline /proc/*/environ | tr '\\0' ' '"))
    assert str(cell.root) not in text


def test_no_descriptor_of_bench_leaks_in(cell: Cell, tmp_path: Path) -> None:
    with (tmp_path / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        text = said(
            cell.python("import os; print(sorted(os.listdir('/proc/1/fd') + os.listdir('/proc/self/fd')))")
        )
        assert "held" not in said(cell.sh("ls -l /proc/*/fd"))
    assert set(text) <= set("[]', 0123456789\n")


@pytest.mark.parametrize("kind", ["tree", "home", "tmp"])
def test_another_cell_cannot_be_reached(cell: Cell, tmp_path: Path, kind: str) -> None:
    other = Cell(tmp_path / "other", cell.sandbox)
    for folder in (other.place.tree, other.place.home, other.place.tmp):
        (folder / "mine").write_text("untouched")
    target = getattr(other.place, kind)
    cell.sh(
        f"cat {target}/mine; echo x > {target}/mine; cd ..; ls -R . | head -c 0; echo x > ../../other/{kind}/mine"
    )
    assert said(cell.sh(f"cat {target}/mine ../*/{kind}/mine ../../other/{kind}/mine")) == ""
    assert (target / "mine").read_text() == "untouched"


def test_the_parent_of_its_tree_cannot_be_written(cell: Cell) -> None:
    before = sorted(os.listdir(cell.root))
    end = cell.sh(
        "echo x > ../evil; mkdir ../evil2; mv /workspace ../gone; rmdir /workspace; rm -rf /workspace; true"
    )
    assert end.exit_code == 0
    assert sorted({*os.listdir(cell.root)} - {"stdout", "stderr"}) == sorted({*before} - {"stdout", "stderr"})
    assert cell.place.tree.is_dir()


def test_a_link_to_the_host_leads_nowhere(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("untouched")
    (cell.place.tree / "made-outside").symlink_to(tmp_path / "victim")
    script = f"echo evil > made-outside; ln -s {tmp_path}/victim made-inside; echo evil > made-inside; cat made-inside"
    assert "untouched" not in said(cell.sh(script))
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_file_of_another_mount_gets_no_second_name(cell: Cell) -> None:
    assert cell.sh("ln /usr/bin/env /workspace/env; ln /etc/passwd /tmp/passwd").exit_code != 0
    assert os.listdir(cell.place.tree) == []


def test_no_server_of_the_host_can_be_reached(cell: Cell) -> None:
    met: list[str] = []
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(("127.0.0.1", 0))
        name = f"bench-{uuid.uuid4().hex}"
        abstract.bind(f"\0{name}")
        for listening in (server, abstract):
            listening.listen()
            listening.settimeout(0.1)
        port = server.getsockname()[1]
        script = f"""
import socket
for family, address in (
    (socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_INET6, ("::1", {port})), (socket.AF_UNIX, "\\0{name}"),
):
    with socket.socket(family) as client:
        client.settimeout(5)
        try:
            client.connect(address)
            print("connected", address)
        except OSError as error:
            print(type(error).__name__)
"""
        end = cell.python(script)
        for listening in (server, abstract):
            try:
                listening.accept()
                met.append("a visitor")
            except TimeoutError:
                continue
    assert (said(end).split(), met) == (["ConnectionRefusedError"] * 3, [])


def test_there_is_no_way_out_and_no_name_service(cell: Cell) -> None:
    # 192.0.2.0/24 is set aside for documentation: no packet to it reaches anybody.
    script = """
import socket
print([name for _, name in socket.if_nameindex()])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    try:
        client.sendto(b"x", ("192.0.2.1", 53))
        print("sent")
    except OSError as error:
        print(error.strerror)
try:
    socket.getaddrinfo("name.invalid", 80)
    print("resolved")
except OSError:
    print("not resolved")
"""
    assert said(cell.python(script)).splitlines() == ["['lo']", "Network is unreachable", "not resolved"]


def test_a_process_of_the_host_is_neither_seen_nor_signalled_nor_traced(cell: Cell, beacon: str) -> None:
    with subprocess.Popen(["sleep", beacon]) as target:
        script = f"""
            kill -9 {target.pid}; kill -9 -1 2>/dev/null
            ls -d /proc/[0-9]*
        """
        end = cell.sh(
            f"(setsid sh -c 'kill -9 {target.pid}'); cat /proc/{target.pid}/cmdline; cat /proc/*/cmdline; {script}"
        )
        trace = f"import ctypes; print(ctypes.CDLL(None).ptrace(16, {target.pid}, 0, 0))"
        traced = said(cell.python(trace))
        alive = target.poll() is None
        target.kill()
    assert alive
    assert beacon.encode() not in end.stdout.read_bytes()
    assert traced == "-1\n"


def test_what_holds_the_command_can_be_attacked_and_gives_no_false_success(cell: Cell, beacon: str) -> None:
    """The process that holds the command runs inside; killing or waking it must never read as exit status 0."""
    for attack in ("kill -9 2", "kill -CONT 2", "kill -9 1", "kill -STOP 1", "kill -TERM 1 2"):
        end = cell.sh(f"{attack}; sleep 0.05; sleep {beacon} & exit 3")
        assert end.exit_code != 0
        assert end.exit_code == 3 or end.signal is not None
        assert not carrying(beacon)


def test_waking_its_process_group_changes_nothing_about_how_a_command_ended(cell: Cell) -> None:
    """Shells and `timeout` send SIGCONT to a whole group, in which the process that holds the command is."""
    assert cell.sh("kill -CONT 0; exit 3").exit_code == 3
    assert cell.sh("kill -CONT 0; exit 0").exit_code == 0
    assert cell.sh("kill -CONT 0; kill -TERM $$").signal == 15


def test_survivors_of_every_kind_are_ended(cell: Cell, beacon: str) -> None:
    script = f"""
import os, signal, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            os.execvp("sleep", ["sleep", "{beacon}"])
        os._exit(0)
time.sleep(0.3)
"""
    end = cell.python(script)
    assert end.orphans == 3
    assert not carrying(beacon)


def test_ignoring_every_signal_does_not_outlive_the_grace(cell: Cell, beacon: str) -> None:
    end = cell.sh(f"trap '' TERM INT HUP; sleep {beacon} & sleep {beacon}", wall_s=0.3, grace_s=0.3)
    assert end.timed_out
    assert not carrying(beacon)


def test_forking_without_end_is_bounded(cell: Cell, beacon: str) -> None:
    # Bounded by itself as well: 2000 forks in all, whatever the limit does.
    script = f"""
import os, time
for _ in range(2000):
    try:
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "{beacon}"])
    except OSError:
        break
time.sleep(30)
"""
    end = cell.python(script, pids=64, wall_s=20.0)
    assert end.killed_for == "processes" or end.timed_out
    assert not carrying(beacon)


def test_filling_the_disk_is_bounded(cell: Cell) -> None:
    # Bounded by itself as well, at 256 MiB.
    script = "for n in 1 2 3 4; do head -c 67108864 /dev/zero > ~/big$n; sync; sleep 2; done"
    end = cell.sh(script, disk_bytes=32 << 20)
    written = sum(file.stat().st_size for file in cell.place.home.iterdir())
    assert end.killed_for == "disk" or written <= 256 << 20
    shutil.rmtree(cell.place.home)


def test_shared_memory_is_bounded(cell: Cell) -> None:
    end = cell.sh(
        "head -c 400000000 /dev/zero > /dev/shm/big; echo full; touch /dev/file /dev/shm/../file2; ls /dev"
    )
    assert "full" in said(end)
    assert b"No space left" in end.stderr.read_bytes()
    assert "file" not in said(end).split()


def test_printing_without_end_is_bounded(cell: Cell) -> None:
    end = cell.sh("yes & yes >&2", wall_s=0.5, grace_s=0.5, output_bytes=100_000)
    assert end.timed_out
    assert end.stdout_cut > 0
    assert end.stdout.stat().st_size < 101_000
    assert end.stderr.stat().st_size < 101_000


def test_a_cell_is_not_touched_by_what_another_one_does_at_the_same_time(tmp_path: Path, beacon: str) -> None:
    sandbox = open_sandbox("bubblewrap", allow_process=False)
    hostile, quiet = Cell(tmp_path / "hostile", sandbox), Cell(tmp_path / "quiet", sandbox)
    ends: list[ProcessEnd] = []
    script = f"(setsid sleep {beacon} &); kill -9 -1; rm -rf /workspace/* ../* /tmp/* ~/* 2>/dev/null; yes"
    thread = threading.Thread(target=lambda: ends.append(hostile.sh(script, wall_s=1.0, grace_s=0.2)))
    thread.start()
    end = quiet.sh("echo 1 > f; sleep 0.5; cat f; ls /proc | grep -c '^[0-9]'")
    thread.join()
    assert end.exit_code == 0
    assert said(end).split()[0] == "1"
    assert len(ends) == 1
    assert not carrying(beacon)


def spoil() -> str:
    return """
        rm -rf /workspace/* ; echo evil > a.txt; ln -s / root; mkfifo pipe; mkdir -p x/.git/hooks
        echo evil > ~/.bashrc; echo evil > /tmp/evil; echo evil > /dev/shm/evil
        chmod 000 x; chmod 000 ~ ; (setsid sh -c 'while :; do echo evil >> /workspace/later; done' &)
    """


def test_the_next_cell_in_the_same_workspace_sees_nothing(tmp_path: Path) -> None:
    sandbox = open_sandbox("bubblewrap", allow_process=False)
    base = tmp_path / "base"
    base.mkdir()
    (base / "a.txt").write_text("one\n")
    look: Callable[[Place], ProcessEnd] = lambda place: sandbox.run(  # noqa: E731
        Command(("sh", "-c", "cat a.txt; ls -A . ~ /tmp /dev/shm; set -- /proc/[0-9]*; echo $#")),
        place,
        Limits(60),
        stdout=tmp_path / "stdout",
        stderr=tmp_path / "stderr",
    )
    with Workspaces(tmp_path / "pool") as pool:
        with pool.open(base) as workspace:
            before = said(look(workspace.place))
            first = workspace.place.tree
            hostile = sandbox.run(
                Command(("sh", "-c", spoil())),
                workspace.place,
                Limits(60),
                stdout=tmp_path / "hostile",
                stderr=tmp_path / "hostile.err",
            )
        with pool.open(base) as workspace:
            assert workspace.place.tree == first
            assert said(look(workspace.place)) == before
    assert hostile.orphans >= 1


KEY = """
import ctypes, sys
libc = ctypes.CDLL(None)
name = b"bench:" + sys.argv[1].encode()
found = libc.syscall({search}, 10, -3, b"user", name, 0)
added = libc.syscall({add}, b"user", name, b"note", 4, -3)
print(found > 0, added)
"""
NUMBERS = {"x86_64": {"search": 250, "add": 248}, "aarch64": {"search": 219, "add": 217}}


def test_no_key_of_a_session_is_seen_and_none_is_left_for_the_next_command(cell: Cell) -> None:
    """Keyrings are no part of any namespace: a login's keys were readable, and cells could pass notes."""
    numbers = NUMBERS[os.uname().machine]
    name, libc = uuid.uuid4().hex, ctypes.CDLL(None)
    assert join_new_session_keyring()
    assert libc.syscall(numbers["add"], b"user", b"bench:" + name.encode(), b"word", 4, -3) > 0
    assert libc.syscall(numbers["search"], 10, -3, b"user", b"bench:" + name.encode(), 0) > 0
    for _ in range(2):
        words = said(cell.run("/usr/bin/python3", "-c", KEY.format(**numbers), name)).split()
        assert words[0] == "False"
