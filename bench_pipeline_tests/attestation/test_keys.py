"""The audit key: made once by hand, private, and never told."""

import os
import stat
from pathlib import Path

import pytest

from bench_pipeline.attestation import AuditKey, create_key, find_key, key_file, load_key
from bench_pipeline.attestation.keys import is_signed
from bench_pipeline.errors import NotFoundError, RefusedError


def test_a_key_is_32_random_bytes_that_only_its_owner_reads(tmp_path: Path) -> None:
    os.umask(0)
    path, key = create_key(tmp_path / "state" / "ber" / "audit.key")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == key.secret
    assert len(key.secret) == 32
    assert load_key(path) == key
    assert create_key(tmp_path / "other")[1] != key
    assert sorted(item.name for item in path.parent.iterdir()) == ["audit.key"]


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    path, key = create_key(tmp_path / "key")
    with pytest.raises(RefusedError, match="there is one"):
        create_key(path)
    assert load_key(path) == key


def test_looking_for_a_key_makes_none(tmp_path: Path) -> None:
    assert find_key(tmp_path / "a" / "key") is None
    with pytest.raises(NotFoundError, match="init-key"):
        load_key(tmp_path / "a" / "key")
    assert list(tmp_path.iterdir()) == []


def test_the_variable_names_the_file_else_it_is_in_the_state_folder() -> None:
    assert key_file({"BENCH_AUDIT_KEY_FILE": "/k", "XDG_STATE_HOME": "/s"}) == Path("/k")
    assert key_file({"XDG_STATE_HOME": "/s"}) == Path("/s/ber/bench/audit.key")
    assert key_file({"XDG_STATE_HOME": "relative"}) == Path("~/.local/state/ber/bench/audit.key").expanduser()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path, _ = create_key(tmp_path / "key")
    path.chmod(mode)
    with pytest.raises(RefusedError, match="expected 0600"):
        load_key(path)


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe", "short", "long"])
def test_what_is_no_key_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    if kind == "link":
        path.symlink_to(create_key(tmp_path / "real")[0])
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "folder":
        path.mkdir(mode=0o700)
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path.touch(0o600)
        path.write_bytes(b"S3cretS3cret" * (1 if kind == "short" else 9))
    for look in (load_key, find_key):
        with pytest.raises(RefusedError) as raised:
            look(path)
        assert "S3cret" not in str(raised.value)


def test_a_key_shows_itself_to_nobody() -> None:
    key = AuditKey(bytes(range(32)))
    for text in (repr(key), str(key), key.id, key.public):
        assert key.secret.hex() not in text
        assert repr(key.secret) not in text


def test_keys_for_different_uses_are_different() -> None:
    key = AuditKey(bytes(range(32)))
    assert key.mac("head", {}) != key.mac("audit", {})
    assert key.attestation_key(b"n" * 32, "t", "r") != key.attestation_key(b"n" * 32, "tr", "")
    assert key.id == AuditKey(bytes(range(32))).id != AuditKey(bytes(32)).id


def test_derived_keys_are_those_of_rfc_5869() -> None:
    """HKDF-SHA256 written out by hand: extract with the nonce, expand with the use."""
    import hashlib
    import hmac

    secret, nonce = bytes(range(32)), b"n" * 32
    prk = hmac.new(nonce, secret, hashlib.sha256).digest()
    info = b'bench attestation 1\n{"run":"r","task":"t","use":"commitment"}'
    expected = hmac.new(prk, info + b"\x01", hashlib.sha256).digest()
    assert AuditKey(secret).attestation_key(nonce, "t", "r") == expected


def test_a_signature_holds_for_its_message_and_key_alone() -> None:
    key = AuditKey(bytes(range(32)))
    signature = key.sign(b"message")
    assert is_signed(key.public, signature, b"message")
    assert not is_signed(key.public, signature, b"massage")
    assert not is_signed(AuditKey(bytes(32)).public, signature, b"message")
    assert not is_signed("00", signature, b"message")
    assert not is_signed(key.public, "zz", b"message")
