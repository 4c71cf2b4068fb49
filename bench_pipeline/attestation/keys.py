"""The project's audit key: where it is, how it is made, and the keys that are derived from it.

What belongs here: the one secret of attestations. What does not: what is sealed with it. The key is 32 random
bytes in a file of mode 0600. Only ``create`` makes one; nothing here ever says what is in it.
"""

import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench_pipeline.errors import BenchError, NotFoundError, RefusedError
from bench_pipeline.identity import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_VARIABLE: Final = "BENCH_AUDIT_KEY_FILE"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 32
_MAKE_ONE: Final = "run `bench clean-run init-key`"


@dataclass(frozen=True)
class AuditKey:
    """The key of a project's attestations."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"an audit key is {KEY_BYTES} bytes")

    @cached_property
    def id(self) -> str:
        """A name for the key that tells nothing of it."""
        return self._derive(b"key id", 16).hex()

    def attestation_key(self, nonce: bytes, task: str, run: str) -> bytes:
        """The key of one attestation: of another nonce, task or run it is another, and the two are unlinkable."""
        return self._derive(canonical_json({"use": "commitment", "task": task, "run": run}), 32, nonce)

    def mac(self, use: str, document: object) -> str:
        """The HMAC-SHA256 of a document's canonical JSON, for one use."""
        return hmac.digest(self._derive(b"mac " + use.encode(), 32), canonical_json(document), "sha256").hex()

    def sign(self, message: bytes) -> str:
        """The Ed25519 signature, as hex digits."""
        return self._signer.sign(message).hex()

    @cached_property
    def public(self) -> str:
        """The Ed25519 public key, as hex digits, by which others verify without the secret."""
        return self._signer.public_key().public_bytes_raw().hex()

    @cached_property
    def _signer(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._derive(b"ed25519", 32))

    def _derive(self, info: bytes, length: int, salt: bytes | None = None) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived: bytes = HKDF(SHA256(), length, salt, b"bench attestation 1\n" + info).derive(self.secret)
        return derived


def is_signed(public: str, signature: str, message: bytes) -> bool:
    """Whether ``signature`` is the Ed25519 signature of ``message`` by the key ``public``, both hex digits."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the key is: the file that BENCH_AUDIT_KEY_FILE names, else one in the user's state folder."""
    named = environment.get(KEY_VARIABLE)
    if named:
        return Path(named).expanduser()
    state = environment.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return base / "ber" / "bench" / "audit.key"


def find_key(path: Path | None = None) -> AuditKey | None:
    """The key, or None where there is no file; raises RefusedError for a file that cannot be a secret key."""
    return load_key(path) if os.path.lexists(path or key_file()) else None


def load_key(path: Path | None = None) -> AuditKey:
    """The key; raises NotFoundError where there is none, RefusedError when others can read it or it is no key."""
    path = path or key_file()
    tried = f"reading the audit key {path}"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFoundError(tried, "there is none", _MAKE_ONE) from None
    except OSError as error:
        raise RefusedError(
            tried, error.strerror or "it cannot be opened", "name a plain file of yours"
        ) from None
    try:
        _check(os.fstat(handle), path, tried)
        secret = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    if len(secret) != KEY_BYTES:
        raise RefusedError(tried, f"it does not hold {KEY_BYTES} bytes", "name the file that init-key made")
    return AuditKey(secret)


def _check(found: os.stat_result, path: Path, tried: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(tried, "it is no plain file", "name a plain file of yours")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = f"its mode is {stat.S_IMODE(found.st_mode):04o}, expected 0600"
        raise RefusedError(tried, mode, f"run `chmod 600 {path}`, or make another key if others have read it")
    if found.st_uid not in (os.geteuid(), 0):
        raise RefusedError(tried, "it belongs to another user", "name a file of your own")


def create_key(path: Path | None = None) -> tuple[Path, AuditKey]:
    """Make a key and return its file; raises RefusedError when there is one, which is never replaced."""
    path = path or key_file()
    tried = f"making the audit key {path}"
    key = AuditKey(secrets.token_bytes(KEY_BYTES))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The whole key or none: a half one under the final name would pass for a key that somebody damaged.
        scratch = path.parent / f".{secrets.token_hex(8)}.tmp"
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(key.secret)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(scratch, path)
        finally:
            scratch.unlink()
    except FileExistsError:
        raise RefusedError(
            tried, "there is one, and what it sealed verifies with no other", "keep it"
        ) from None
    except OSError as error:
        raise BenchError(
            tried, error.strerror or str(error), "check the folder and its permissions"
        ) from error
    return path, key
