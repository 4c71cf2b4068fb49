"""Whole files or none: local writes under a full disk, a killed writer, and the same promises behind a URL."""

import errno
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.errors import StoreError
from bench_pipeline.store import Store
from bench_pipeline.store.files import Files, LocalFiles, RemoteFiles, open_files


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return open_files(tmp_path / "store" if request.param == "local" else f"memory://files-{tmp_path.name}")


def test_what_was_written_is_read_back_and_listed(files: Files, tmp_path: Path) -> None:
    files.write("a/b/one.bin", b"1")
    files.write("a/b/one.bin", b"22")
    source = tmp_path / "source"
    source.write_bytes(b"333")
    files.adopt("a/two.bin", source)
    assert files.read("a/b/one.bin") == b"22"
    assert [(info.path, info.size) for info in files.list("a")] == [("a/b/one.bin", 2), ("a/two.bin", 3)]
    assert [info.path for info in files.list("")] == ["a/b/one.bin", "a/two.bin"]
    assert files.list("nowhere") == []
    info = files.info("a/two.bin")
    assert info is not None
    assert info.size == 3
    assert files.info("a/three.bin") is None


def test_a_file_is_created_once(files: Files) -> None:
    assert files.create("locks/one", b"first")
    assert not files.create("locks/one", b"second")
    assert files.read("locks/one") == b"first"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBUSY])
def test_an_object_store_may_name_a_conflict_as_it_likes(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = RemoteFiles(f"memory://conflict-{tmp_path.name}")
    fs, _ = files._at("")
    pipe = fs.pipe_file

    def conflict(place: str, data: bytes, mode: str = "overwrite") -> None:
        if mode == "create" and fs.exists(place):
            raise OSError(number, "PreconditionFailed")
        pipe(place, data, mode=mode)

    monkeypatch.setattr(fs, "pipe_file", conflict)
    assert files.create("locks/one", b"first")
    assert not files.create("locks/one", b"second")
    assert files.create("locks/one", b"first"), "a put whose answer was lost is our own"


def test_moving_and_deleting(files: Files) -> None:
    files.write("a", b"1")
    files.move("a", "quarantine/a")
    assert files.read("quarantine/a") == b"1"
    with pytest.raises(FileNotFoundError):
        files.read("a")
    with pytest.raises(FileNotFoundError):
        files.move("a", "b")
    files.delete("quarantine/a")
    files.delete("quarantine/a")
    assert files.list("") == []


@pytest.mark.parametrize("text", ["{}", "file://{}"])
def test_a_path_and_a_file_url_are_one_place(tmp_path: Path, text: str) -> None:
    place = tmp_path / "a store"
    files = open_files(text.format(str(place).replace(" ", "%20") if "://" in text else place))
    files.write("x", b"1")
    assert isinstance(files, LocalFiles)
    assert (place / "x").read_bytes() == b"1"


def test_a_url_that_nothing_here_opens_says_what_to_install() -> None:
    with pytest.raises(StoreError, match=r"bench-pipeline\[s3\]"):
        open_files("nosuchscheme://bucket/x").read("a")


def test_opening_a_store_touches_nothing_and_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from bench_pipeline.store import Store\n"
        "Store.open(sys.argv[1]).quarantined\n"
        "heavy = {'pyarrow', 'pandas', 'duckdb', 'fsspec', 'dagster', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "store")], check=True)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_is_a_clear_error_and_leaves_nothing(
    tmp_path: Path, number: int, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path / "store")
    files.write("a/file", b"before")

    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StoreError, match="writing a/file") as caught:
            files.write("a/file", b"after")
    assert os.strerror(number) in str(caught.value)
    if number == errno.ENOSPC:
        assert "free some space" in caught.value.remedy
    assert [info.path for info in files.list("")] == ["a/file"]
    assert files.list("", unfinished=True) == []
    assert files.read("a/file") == b"before"


def test_a_disk_that_fills_up_in_the_middle_of_a_write_leaves_no_half_written_file(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from bench_pipeline.errors import StoreError\n"
        "from bench_pipeline.store import Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))\n"
        "store = Store.open(sys.argv[1])\n"
        "store.artifacts.put(b'x' * 1000)\n"
        "try:\n"
        "    store.artifacts.put(b'y' * (3 << 20))\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")], check=True, capture_output=True, text=True
    )
    assert "nothing was half-written" in done.stdout
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [1000]


def test_running_out_of_descriptors_is_a_clear_error_and_puts_nothing_aside(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    digest = store.artifacts.put(b"content")
    store.verdicts.newest([bytes(32)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(StoreError, match=r"Too many open files.*ulimit -n"):
            store.artifacts.get(digest)
        with pytest.raises(StoreError, match="Too many open files"):
            store.verdicts.newest([bytes(32)])
    finally:
        for handle in taken:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.quarantined == []
    assert store.artifacts.get(digest) == b"content"


def test_a_folder_that_may_not_be_read_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path)
    files.write("a/x", b"1")

    def fail(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(StoreError, match=r"Permission denied.*who owns the store"):
        files.list("a")


def test_unfinished_files_of_a_killed_writer_are_not_listed_as_files(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.write("a/x", b"1")
    (tmp_path / "a" / ".0123456789abcdef.tmp").write_bytes(b"half")
    assert [info.path for info in files.list("a")] == ["a/x"]
    assert [info.path for info in files.list("a", unfinished=True)] == ["a/.0123456789abcdef.tmp"]


def test_an_object_store_has_no_local_paths(tmp_path: Path) -> None:
    files = RemoteFiles(f"memory://{tmp_path.name}/")
    assert files.local("a") is None
    assert files.url("a/b") == f"memory://{tmp_path.name}/a/b"
