"""The append-only, hash-chained activity journal of a cell: rows, chain, head, inclusion proofs.

What belongs here: writing rows, reading them back without trusting them, and the Merkle tree over them. What
does not: where activity comes from (execution) and what it means (attestation).

A row is one line of canonical JSON with the keys hash, index, payload, prev_hash, time and type. Its hash is
the SHA-256 of everything else in it, so index and time are covered, and any byte of a line that changes is
found. The head names the number of rows and the last hash, so a cut prefix does not verify. A line that does
not parse, a gap, a second open or a missing close makes the journal incomplete, never shorter.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Final

from bench_pipeline.identity import canonical_json

# What the sandbox records of itself: the session's frame, and the commands in it.
OPEN: Final = "open"
CLOSE: Final = "close"
SANDBOX_TYPES: Final = (OPEN, "start", "exit", "connection", CLOSE)
# What came in to the agent, and what it put out itself.
INCOMING: Final = ("read", "result", "response")
OUTGOING: Final = ("message", "write", "command", "request")
TYPES: Final = (*SANDBOX_TYPES, *INCOMING, *OUTGOING)

NO_HASH: Final = "0" * 64
# A longer text is written as several rows, so that a reader holds one piece at a time.
PIECE_CHARS: Final = 1 << 18
# A piece of text takes at most six bytes a character (a control character as an escape), and the rest of a row little.
MAX_LINE_BYTES: Final = 8 * PIECE_CHARS
_MAX_DEPTH: Final = 32
_MAX_PROBLEMS: Final = 20
_MAX_DIGITS: Final = 100
_EXACT_INTEGERS: Final = 2**53 - 1
_KEYS: Final = {"hash", "index", "payload", "prev_hash", "time", "type"}
_HASH_PREFIX: Final = b'{"hash":"'
_REST_AT: Final = len(_HASH_PREFIX) + 64 + len(b'",')
_is_time: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z").fullmatch


@dataclass(frozen=True)
class Row:
    """One row that is whole and whose hash is right."""

    index: int
    time: str
    type: str
    payload: Mapping[str, object]
    prev_hash: str
    hash: str


@dataclass(frozen=True)
class Head:
    """What seals a journal: the number of rows, the last one's hash, and the Merkle root over all."""

    rows: int
    last_hash: str
    root: str


class JournalWriter:
    """Appends rows to a binary stream; ``now`` tells the time (aware)."""

    def __init__(self, stream: BinaryIO, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._stream = stream
        self._now = now
        self._last = NO_HASH
        self._tree = MerkleTree()

    def append(self, kind: str, payload: Mapping[str, object]) -> int:
        """Write one row and return its index; what JSON cannot hold is replaced, a long text goes on in more rows.

        Only ``payload["text"]`` may be long. The further rows of it repeat the payload and count ``part``.
        """
        if kind not in TYPES:
            raise ValueError(f"{kind!r} is no type of row")
        first = self._tree.count
        clean = {key: _storable(value, _MAX_DEPTH) for key, value in payload.items()}
        text = clean.get("text")
        if not isinstance(text, str) or len(text) <= PIECE_CHARS:
            self._write(kind, clean)
            return first
        for part, at in enumerate(range(0, len(text), PIECE_CHARS)):
            self._write(kind, {**clean, "text": text[at : at + PIECE_CHARS], "part": part})
        return first

    def _write(self, kind: str, payload: Mapping[str, object]) -> None:
        moment = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        rest = canonical_json(
            {
                "index": self._tree.count,
                "payload": payload,
                "prev_hash": self._last,
                "time": moment,
                "type": kind,
            }
        )
        digest = hashlib.sha256(rest)
        self._last = digest.hexdigest()
        self._tree.add(digest.digest())
        self._stream.write(_HASH_PREFIX + self._last.encode() + b'",' + rest[1:] + b"\n")

    @property
    def head(self) -> Head:
        """The head of what was written so far."""
        return Head(self._tree.count, self._last, self._tree.root().hex())


class JournalReader:
    """Iterates over the good rows of a journal; afterwards ``head`` and ``problems`` tell about all of it.

    One line is in memory at a time. ``problems`` are sentences that name lines and never quote them; a journal
    without any is complete. ``leaves`` receives the leaves of the tree, for who wants to prove single rows.
    """

    def __init__(self, stream: BinaryIO, leaves: list[bytes] | None = None) -> None:
        self._stream = stream
        self._leaves = leaves
        self._tree = MerkleTree()
        self._last = NO_HASH
        self._closed = False
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[Row]:
        lost = False
        while line := self._stream.readline(MAX_LINE_BYTES + 1):
            number = self._tree.count + 1
            whole = line.endswith(b"\n")
            while not line.endswith(b"\n") and (more := self._stream.readline(MAX_LINE_BYTES)):
                line = more
            row = _row(line[:-1]) if whole else None
            leaf = bytes.fromhex(row.hash) if row is not None else hashlib.sha256(line).digest()
            self._tree.add(leaf)
            if self._leaves is not None:
                self._leaves.append(leaf)
            if row is None:
                self._note(f"line {number} is no row")
                lost = True
                continue
            self._check(row, number, lost)
            lost = False
            self._last = row.hash
            yield row
        if not self._closed:
            self._note("there is no close")

    def _check(self, row: Row, number: int, after_lost: bool) -> None:
        if row.index != number - 1:
            self._note(f"line {number} has the index {row.index}, expected {number - 1}")
        if not after_lost and row.prev_hash != self._last:
            self._note(f"line {number} does not follow from the row before")
        if (row.type == OPEN) != (number == 1):
            self._note("there is a second open" if row.type == OPEN else "it does not begin with an open")
        if self._closed:
            self._note(f"line {number} comes after the close")
        self._closed = self._closed or row.type == CLOSE

    def _note(self, problem: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    @property
    def complete(self) -> bool:
        """Whether all that was read is an unbroken journal from its open to its close."""
        return not self.problems

    @property
    def head(self) -> Head:
        """The head of all lines that were read, broken ones counted."""
        return Head(self._tree.count, self._last, self._tree.root().hex())


def _row(line: bytes) -> Row | None:
    """The row of a line without its line feed; None when it is none, or its hash is not its own."""
    rest = b"{" + line[_REST_AT:]
    digest = hashlib.sha256(rest).hexdigest()
    if line[:_REST_AT] != _HASH_PREFIX + digest.encode() + b'",':
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != _KEYS:
        return None
    index, payload, previous = value["index"], value["payload"], value["prev_hash"]
    if type(index) is not int or not isinstance(payload, dict) or not isinstance(previous, str):
        return None
    if value["type"] not in TYPES or not isinstance(value["time"], str) or not _is_time(value["time"]):
        return None
    return Row(index, value["time"], value["type"], payload, previous, digest)


def _storable(value: object, depth: int) -> object:
    """The value as canonical JSON can hold it: lone surrogates and absurd numbers replaced, bottomless nesting cut."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value if _is_exact(value) else _digits_of(value)
    if depth == 0:
        return "[nested too deeply]"
    if isinstance(value, Mapping):
        return {str(_storable(str(key), 1)): _storable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(item, depth - 1) for item in value]
    raise TypeError(f"a journal holds JSON, not {type(value).__name__}")


def _digits_of(value: object) -> str:
    return hex(value)[:_MAX_DIGITS] if isinstance(value, int) else repr(value)


def _is_exact(value: bool | float | None) -> bool:
    """Whether a number, a truth or a null is the same for every reader of JSON."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or -_EXACT_INTEGERS <= value <= _EXACT_INTEGERS


class MerkleTree:
    """The tree of RFC 6962 over leaves in order, grown one leaf at a time in logarithmic memory."""

    def __init__(self) -> None:
        self.count = 0
        # The roots of the full subtrees so far, largest first, each with its number of leaves.
        self._full: list[tuple[int, bytes]] = []

    def add(self, leaf: bytes) -> None:
        """Append a leaf."""
        size, node = 1, _leaf(leaf)
        while self._full and self._full[-1][0] == size:
            node = _node(self._full.pop()[1], node)
            size *= 2
        self._full.append((size, node))
        self.count += 1

    def root(self) -> bytes:
        """The root over all leaves so far; of none, the hash of nothing."""
        if not self._full:
            return hashlib.sha256(b"").digest()
        *rest, (_, node) = self._full
        for _, left in reversed(rest):
            node = _node(left, node)
        return node


def leaves_of(journal: BinaryIO) -> list[bytes]:
    """The leaves that the root of a journal is over, one a line."""
    leaves: list[bytes] = []
    for _ in JournalReader(journal, leaves):
        pass
    return leaves


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """What proves, against the root over ``leaves``, that ``leaves[index]`` is the leaf there, bottom up."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"there is no leaf {index} among {len(leaves)}")
    if len(leaves) == 1:
        return []
    half = _split(len(leaves))
    if index < half:
        return [*inclusion_proof(leaves[:half], index), _root(leaves[half:])]
    return [*inclusion_proof(leaves[half:], index - half), _root(leaves[:half])]


def is_included(leaf: bytes, index: int, count: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether ``proof`` shows that ``leaf`` is number ``index`` of the ``count`` leaves below ``root``."""
    if not 0 <= index < count:
        return False
    sides = []  # from the root down, whether the sibling is on the left
    while count > 1:
        half = _split(count)
        sides.append(index >= half)
        index, count = (index - half, count - half) if index >= half else (index, half)
    if len(sides) != len(proof):
        return False
    node = _leaf(leaf)
    for sibling, on_left in zip(proof, reversed(sides), strict=True):
        node = _node(sibling, node) if on_left else _node(node, sibling)
    return node == root


def _root(leaves: Sequence[bytes]) -> bytes:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def _split(count: int) -> int:
    """The largest power of two below ``count``."""
    return 1 << (count - 1).bit_length() - 1


# Leaves and nodes are hashed apart, so that a node cannot pass for a leaf.
def _leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
