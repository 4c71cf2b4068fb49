"""Content of any size, found by its SHA-256.

What belongs here: putting bytes, and getting exactly them back. What does not: who refers to them.

``artifacts/<first two digits>/<digest><suffix>``; the suffix follows the media type, so that a person can
open it.
"""

import hashlib
import re
import secrets
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench_pipeline.errors import CorruptPartError, NotFoundError, StoreError
from bench_pipeline.store.parts import Surroundings

_SUFFIXES: Final = MappingProxyType(
    {
        "text/plain": ".txt",
        "application/json": ".json",
        "application/jsonl": ".jsonl",
        "text/x-diff": ".patch",
        "application/zstd": ".zst",
    }
)
_KNOWN: Final = ("", *_SUFFIXES.values())
_CHUNK: Final = 1 << 20

is_digest = re.compile(r"[0-9a-f]{64}").fullmatch


class Artifacts:
    """The artifacts of a store."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._files = surroundings.files

    def put(self, data: bytes, media: str = "application/octet-stream") -> str:
        """Keep ``data`` for good and return its digest; content that is there is not written again."""
        digest = hashlib.sha256(data).hexdigest()
        self._around.refuse_read_only("keeping an artifact")
        path = self._to_write(digest, media)
        if path is not None:
            self._files.write(path, data)
        return digest

    def put_file(self, source: Path, media: str = "application/octet-stream") -> str:
        """As ``put``, from a file, without holding it in memory."""
        self._around.refuse_read_only("keeping an artifact")
        try:
            with tempfile.TemporaryDirectory(prefix="bench-artifact-") as folder:
                # A copy first: the file may still grow, and its digest must be of what is kept.
                copy = Path(folder) / secrets.token_hex(4)
                digest = _copy(source, copy)
                path = self._to_write(digest, media)
                if path is not None:
                    self._files.adopt(path, copy)
        except OSError as error:
            raise StoreError(
                f"keeping {source.name}", str(error), "check the file and the temporary folder"
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The content of ``digest``, verified.

        Raises NotFoundError when it is not kept, CorruptPartError when what is kept is not it any more (it is
        put aside), StoreError when it cannot be read.
        """
        path = self._find(digest) or _path(digest, "")
        try:
            data = self._files.read(path)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"opening the artifact {digest}", "it is not in the store", "it may have been forgotten"
            ) from error
        self._check(path, digest, data)
        return data

    def exists(self, digest: str) -> bool:
        """Whether there is a file for ``digest``; its content is not read."""
        return self._find(digest) is not None

    def path(self, digest: str) -> Path | None:
        """Where the file is on this machine; None when it is absent or on an object store. Not verified."""
        path = self._find(digest)
        return None if path is None else self._files.local(path)

    def digests(self) -> dict[str, str]:
        """Every kept digest with its path in the store."""
        found = {}
        for info in self._files.list("artifacts"):
            digest = info.path.rpartition("/")[2].partition(".")[0]
            if is_digest(digest):
                found[digest] = info.path
        return found

    def _find(self, digest: str) -> str | None:
        return self._files.one_of(_path(digest, ""), _KNOWN)

    def _to_write(self, digest: str, media: str) -> str | None:
        """Where the content has to be written; None where it is, whole.

        What is there is made young, so that no clean-up takes it meanwhile. An object store has to be sent the content
        again for that, so it is not asked for what it has.
        """
        path = self._find(digest)
        if path is None:
            return _path(digest, _SUFFIXES.get(media, ""))
        if self._files.local(path) is None:
            return path
        try:
            self._check(path, digest, self._files.read(path))
            self._files.touch(path)
        except (FileNotFoundError, CorruptPartError):
            return path
        return None

    def _check(self, path: str, digest: str, data: bytes) -> None:
        found = hashlib.sha256(data).hexdigest()
        if found != digest:
            wrong = f"its content has the digest {found}"
            error = CorruptPartError(f"reading {path}", wrong, "what refers to it has to be measured again")
            self._around.quarantine.put(path, error, data)
            raise error


def _path(digest: str, suffix: str) -> str:
    if not is_digest(digest):
        raise ValueError(f"{digest!r} is not a digest of 64 lower-case hex digits")
    return f"artifacts/{digest[:2]}/{digest}{suffix}"


def _copy(source: Path, target: Path) -> str:
    seen = hashlib.sha256()
    with source.open("rb") as file, target.open("xb") as out:
        while chunk := file.read(_CHUNK):
            seen.update(chunk)
            out.write(chunk)
    return seen.hexdigest()
