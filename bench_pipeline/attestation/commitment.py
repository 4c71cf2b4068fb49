"""The answer, sealed: which windows of words count, as keyed digests that tell nothing without the key.

What belongs here: choosing windows, leaving out what was allowed, sealing, and looking windows up. What does
not: where the texts come from (``truth``) and what an agent did (``activities``).

A window is eight words of one text. Sealed of it are the first 64 bits of its HMAC-SHA256, and of its number
(``windows``) the top bits, as a filter that lets one foreign window of 256 through; only what passes costs an
HMAC. Two different windows share a sealed digest with a chance of 2**-64.
"""

import base64
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from bench_pipeline.attestation.truth import QUOTED, Allowance, Source
from bench_pipeline.attestation.windows import Numbers, WindowHasher
from bench_pipeline.attestation.words import is_unspaced, words_of
from bench_pipeline.errors import RefusedError

WINDOW_WORDS: Final = 8
# A quoted signal or command of fewer words stands in honest texts.
MIN_QUOTED_WORDS: Final = 3
# Windows of numbers and repetitions ("0 0 0 0 ...") are in any table.
_MIN_TELLING_WORDS: Final = 4
# The filter lets one window in 2**8 through; beyond 2**24 entries it would not fit a table any more.
_FILTER_BITS: Final = 8
_MAX_FILTER_BITS: Final = 24

FindingKind = Literal["contraband", "canary"]
Window = tuple[bytes, ...]


@dataclass(frozen=True)
class SealedWindows:
    """The sealed windows of one kind and length: ``digests`` and the ``bits`` top bits of their numbers, sorted."""

    kind: FindingKind
    words: int
    bits: int
    prefixes: npt.NDArray[np.uint32] = field(repr=False)
    digests: Numbers = field(repr=False)


@dataclass(frozen=True)
class Coverage:
    """How much of what was declared is sealed: sources ``covered`` of those ``declared``.

    Not covered, by rule, are quoted ones too ``short`` to tell anything and those that the agent was ``given``.
    """

    declared: int
    covered: int
    short: int
    given: int
    windows: int


@dataclass(frozen=True)
class Commitment:
    """Everything sealed of one task's answer for one attestation."""

    sealed: tuple[SealedWindows, ...]
    coverage: Coverage

    def document(self) -> dict[str, object]:
        """The commitment as JSON."""
        return {
            "coverage": vars(self.coverage),
            "windows": [
                {
                    "kind": each.kind,
                    "words": each.words,
                    "bits": each.bits,
                    "prefixes": _packed(each.prefixes.astype(">u4")),
                    "digests": _packed(each.digests.astype(">u8")),
                }
                for each in self.sealed
            ],
        }


class Seal:
    """The key of one attestation at work: numbers and digests of windows."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.hasher = WindowHasher(hmac.digest(key, b"windows", "sha256"))

    def digest(self, window: Sequence[bytes]) -> int:
        """What is sealed of a window."""
        return int.from_bytes(hmac.digest(self._key, b"\0".join(window), "sha256")[:8], "big")


def commit(seal: Seal, sources: Iterable[Source], allowance: Allowance) -> Commitment:
    """Seal the sources.

    Raises RefusedError, which quotes nothing, when a declared source yields no window or a canary was given.
    """
    sources = tuple(sources)
    found = [_windows_of(source) for source in sources]
    given = _given(seal.hasher, {window for windows in found for window in windows}, allowance)
    kept: dict[tuple[FindingKind, int], set[Window]] = {}
    covered = short = allowed = 0
    for source, windows in zip(sources, found, strict=True):
        left = windows - given
        if source.kind == "canary" and not left:
            raise _refused(
                source, "it stands in what the agent is given", "name one that occurs nowhere else"
            )
        covered, short, allowed = (
            covered + bool(left),
            short + (not windows),
            allowed + bool(windows and not left),
        )
        kind: FindingKind = "canary" if source.kind == "canary" else "contraband"
        for window in left:
            kept.setdefault((kind, len(window)), set()).add(window)
    sealed = tuple(_sealed(seal, *group, windows) for group, windows in sorted(kept.items()))
    total = sum(len(each.digests) for each in sealed)
    return Commitment(sealed, Coverage(len(sources), covered, short, allowed, total))


def _windows_of(source: Source) -> set[Window]:
    """The windows of one source; a quoted one may have none, any other that has none refuses."""
    windows: set[Window] = set()
    readable = False
    for text in source.texts:
        words = words_of(text)
        readable = readable or bool(words)
        if source.kind == "canary" and words:
            length = min(len(words), WINDOW_WORDS)
            windows |= set(_runs(words, length))
        elif source.kind in QUOTED and len(words) < WINDOW_WORDS:
            if _weight(words) >= MIN_QUOTED_WORDS:
                windows.add(tuple(words))
        else:
            windows |= {window for window in _runs(words, WINDOW_WORDS) if _tells(window)}
    if not readable:
        raise _refused(source, "it holds no word", "give it one, or take it out of the task")
    if not windows and source.kind not in QUOTED:
        raise _refused(
            source, f"it holds no {WINDOW_WORDS} words that tell anything", "it cannot be attested"
        )
    return windows


def _refused(source: Source, wrong: str, remedy: str) -> RefusedError:
    return RefusedError(f"sealing the {source.kind.replace('_', ' ')}", wrong, remedy)


def _runs(words: Sequence[bytes], length: int) -> Iterator[Window]:
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def _weight(words: Sequence[bytes]) -> float:
    """How many words; of a script without spaces two characters count as one."""
    return sum(0.5 if is_unspaced(word) else 1.0 for word in words)


def _tells(window: Window) -> bool:
    return sum(not word.isdigit() for word in set(window)) >= _MIN_TELLING_WORDS


def _given(hasher: WindowHasher, windows: set[Window], allowance: Allowance) -> set[Window]:
    """Those of ``windows`` that stand in what the agent was given."""
    groups: dict[int, dict[int, Window]] = {}
    for window in windows:
        number = int(hasher.windows(hasher.numbers(window), len(window))[0])
        groups.setdefault(len(window), {})[number] = window
    wanted = {length: np.array(sorted(group), np.uint64) for length, group in groups.items()}
    given: set[Window] = set()
    for text in allowance.read() if windows else ():
        numbers = hasher.numbers(words_of(text))
        for length, sought in wanted.items():
            there = np.intersect1d(sought, hasher.windows(numbers, length))
            given.update(groups[length][number] for number in there.tolist())
    return given


def _sealed(seal: Seal, kind: FindingKind, length: int, windows: set[Window]) -> SealedWindows:
    bits = min(_MAX_FILTER_BITS, len(windows).bit_length() + _FILTER_BITS)
    numbers = [seal.hasher.windows(seal.hasher.numbers(window), length)[0] for window in windows]
    prefixes = np.unique(np.array(numbers, np.uint64) >> np.uint64(64 - bits)).astype(np.uint32)
    digests = np.unique(np.array([seal.digest(window) for window in windows], np.uint64))
    return SealedWindows(kind, length, bits, prefixes, digests)


class Matcher:
    """Looks up which windows of a text may be sealed ones: those that the filter lets through, by their digests."""

    def __init__(self, commitment: Commitment, seal: Seal) -> None:
        self._seal = seal
        self._tables = [(each.words, each.bits, _table(each)) for each in commitment.sealed]
        self.longest = max((each.words for each in commitment.sealed), default=1)

    def candidates(self, words: Sequence[bytes]) -> Iterator[int]:
        """The digests of the windows that pass, true hits and one in 256 of all others."""
        numbers = self._seal.hasher.numbers(words)
        for length, bits, table in self._tables:
            windows = self._seal.hasher.windows(numbers, length)
            passed = table[windows >> np.uint64(64 - bits)]
            for at in np.flatnonzero(passed).tolist():
                yield self._seal.digest(words[at : at + length])


def _table(sealed: SealedWindows) -> npt.NDArray[np.bool_]:
    table = np.zeros(1 << sealed.bits, np.bool_)
    table[sealed.prefixes] = True
    return table


def kinds_of(commitment: Commitment) -> Mapping[int, FindingKind]:
    """Every sealed digest with the kind of finding that it makes; a canary is told before contraband."""
    found: dict[int, FindingKind] = {}
    for each in sorted(commitment.sealed, key=lambda each: each.kind, reverse=True):
        found.update(dict.fromkeys(each.digests.tolist(), each.kind))
    return found


def commitment_of(document: Mapping[str, object]) -> Commitment:
    """The commitment of a document that has been checked for its types; ValueError when its columns are no columns."""
    coverage = document["coverage"]
    windows = document["windows"]
    assert isinstance(coverage, Mapping)
    assert isinstance(windows, Sequence)
    sealed = []
    for each in windows:
        prefixes = _unpacked(each["prefixes"], ">u4").astype(np.uint32)
        if len(prefixes) and int(prefixes.max()) >> each["bits"]:
            raise ValueError("a prefix is longer than its bits")
        digests = _unpacked(each["digests"], ">u8").astype(np.uint64)
        sealed.append(SealedWindows(each["kind"], each["words"], each["bits"], prefixes, digests))
    return Commitment(tuple(sealed), Coverage(**coverage))


def _packed(column: npt.NDArray[np.generic]) -> str:
    return base64.b64encode(column.tobytes()).decode("ascii")


def _unpacked(text: str, kind: str) -> npt.NDArray[np.generic]:
    return np.frombuffer(base64.b64decode(text, validate=True), np.dtype(kind))


def packed_digests(digests: Iterable[int]) -> str:
    """Digests as one text, sorted, each once."""
    return _packed(np.array(sorted(set(digests)), np.uint64).astype(">u8"))


def unpacked_digests(text: str) -> list[int]:
    """The digests of one text; ValueError when it is none."""
    return [int(each) for each in _unpacked(text, ">u8").tolist()]
