"""Content by its digest: exactly what was put, or an error; never something else."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import CorruptPartError, NotFoundError, StoreError
from bench_pipeline.store import Store


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(
        tmp_path / "store" if request.param == "local" else f"memory://artifacts-{tmp_path.name}"
    )


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=2000))
def test_what_was_put_is_got_by_its_digest(store: Store, data: bytes) -> None:
    digest = store.artifacts.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert store.artifacts.get(digest) == data
    assert store.artifacts.exists(digest)


def test_a_file_is_kept_without_its_name(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "-rf"
    source.write_bytes(b"x" * (3 << 20))
    digest = store.artifacts.put_file(source, "text/plain")
    assert store.artifacts.get(digest) == source.read_bytes()
    assert list(store.artifacts.digests().values()) == [f"artifacts/{digest[:2]}/{digest}.txt"]


def test_content_that_is_there_is_kept_once_whatever_its_media_type(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"same")
    digests = {store.artifacts.put(b"same", "text/plain"), store.artifacts.put(b"same", "application/json")}
    digests.add(store.artifacts.put_file(source))
    assert len(digests) == 1
    assert len(store.files.list("artifacts")) == 1


@pytest.mark.parametrize(
    ("media", "suffix"),
    [("text/plain", ".txt"), ("application/json", ".json"), ("text/x-diff", ".patch"), ("x/../../y", "")],
)
def test_the_suffix_follows_the_media_type_so_that_a_person_can_open_it(
    tmp_path: Path, media: str, suffix: str
) -> None:
    store = Store.open(tmp_path)
    digest = store.artifacts.put(b"text", media)
    path = store.artifacts.path(digest)
    assert path == tmp_path / "artifacts" / digest[:2] / f"{digest}{suffix}"
    assert path.read_bytes() == b"text"


def test_content_that_changed_on_disk_is_put_aside_and_never_returned(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    digest = store.artifacts.put(b"content")
    path = store.artifacts.path(digest)
    assert path is not None
    path.write_bytes(b"contenT")
    with pytest.raises(CorruptPartError, match="measured again"):
        store.artifacts.get(digest)
    assert [found.path for found in store.quarantined] == [f"artifacts/{digest[:2]}/{digest}"]
    assert not store.artifacts.exists(digest)
    assert store.artifacts.put(b"content") == digest
    assert store.artifacts.get(digest) == b"content"


def test_putting_content_again_mends_a_spoilt_file(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    digest = store.artifacts.put(b"content")
    path = store.artifacts.path(digest)
    assert path is not None
    path.write_bytes(b"")
    assert store.artifacts.put(b"content") == digest
    assert store.artifacts.get(digest) == b"content"
    assert len(store.quarantined) == 1


def test_putting_content_again_makes_it_young(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    path = store.artifacts.path(store.artifacts.put(b"content"))
    assert path is not None
    os.utime(path, (1, 1))
    store.artifacts.put(b"content")
    assert path.stat().st_mtime > 1


def test_what_is_not_kept_is_not_found(store: Store) -> None:
    digest = "ab" * 32
    assert not store.artifacts.exists(digest)
    assert store.artifacts.path(digest) is None
    with pytest.raises(NotFoundError, match=digest):
        store.artifacts.get(digest)


@pytest.mark.parametrize("digest", ["../../etc/passwd", "AB" * 32, "ab" * 31, "ab" * 32 + "\n", ""])
def test_only_a_digest_names_an_artifact(store: Store, digest: str) -> None:
    with pytest.raises(ValueError, match="hex"):
        store.artifacts.get(digest)


def test_a_read_only_store_keeps_nothing(store: Store) -> None:
    digest = store.artifacts.put(b"content")
    reader = Store.open(store.location, read_only=True)
    assert reader.artifacts.get(digest) == b"content"
    with pytest.raises(StoreError, match="read only"):
        reader.artifacts.put(b"more")


def test_a_source_that_cannot_be_read_is_a_clear_error(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(StoreError, match="Permission denied"):
        store.artifacts.put_file(tmp_path / "source")
