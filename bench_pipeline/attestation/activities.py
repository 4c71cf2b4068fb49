"""What an agent did, as its journal shows it, in the form that is sealed: rows, kinds and digests, never text.

What belongs here: from journal rows to activities. What does not: which of them are findings (``findings``).

Consecutive texts of one file, or of one kind, are read as one, so that an answer that came in pieces is
found; every text is also read with its layers peeled off (``decoding``). A window counts where it first came
in; one that the agent had put out before is its own work.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bench_pipeline.attestation.commitment import Matcher
from bench_pipeline.attestation.decoding import Decoder, open_run, without_numbers
from bench_pipeline.attestation.scope import Elsewhere, Scope, shows_no_history
from bench_pipeline.attestation.words import words_of
from bench_pipeline.journal import INCOMING, OUTGOING, Row

# Pieces of one text are joined up to here before they are read.
_MAX_JOINED: Final = 64
_MAX_DEPTH: Final = 64


@dataclass(frozen=True)
class Activity:
    """One row that shows activity.

    ``digests`` are those of its windows that may be sealed ones and are new here; ``elsewhere`` what was wrong
    with the place that it went to.
    """

    row: int
    kind: str
    words: int = 0
    digests: tuple[int, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()


@dataclass
class Activities:
    """The activities of a journal; ``exhausted``: something could not be read whole."""

    found: list[Activity] = field(default_factory=list)
    exhausted: bool = False


def read_activities(rows: Iterable[Row], matcher: Matcher, scope: Scope) -> Activities:
    """The activities of a journal's rows, in order."""
    reading = _Reading(matcher, scope)
    for row, texts in _joined(reading.noting_cuts(rows)):
        reading.take(row, texts)
    return Activities(reading.found(), reading.decoder.exhausted or reading.cut)


def _joined(rows: Iterable[Row]) -> Iterator[tuple[Row, list[str]]]:
    """Rows of activity with all their texts; pieces of one text together."""
    first: Row | None = None
    pieces: list[str] = []
    for row in rows:
        text = row.payload.get("text")
        piece = text if isinstance(text, str) else ""
        part = row.payload.get("part")
        if (
            first is not None
            and type(part) is int
            and part > 0
            and len(pieces) < _MAX_JOINED
            and row.type == first.type
        ):
            pieces.append(piece)
            continue
        if first is not None:
            yield first, ["".join(pieces), *_other_texts(first.payload)]
        first, pieces = (row, [piece]) if row.type in (*INCOMING, *OUTGOING) else (None, [])
    if first is not None:
        yield first, ["".join(pieces), *_other_texts(first.payload)]


def _other_texts(payload: Mapping[str, object]) -> list[str]:
    """Every string of a payload but its text, keys included, however deep."""
    found: list[str] = []
    level: list[object] = [value for name, value in payload.items() if name not in ("text", "call")]
    for _ in range(_MAX_DEPTH):
        below: list[object] = []
        for value in level:
            if isinstance(value, str):
                found.append(value)
            elif isinstance(value, list):
                below += value
            elif isinstance(value, dict):
                below += [*value, *value.values()]
        level = below
    return found


@dataclass
class _Stream:
    """The end of what was read so far of one file or kind: last words, as printed and without line numbers.

    ``glued`` are the last words with the halves of each that a text ended within put together; ``cut`` tells that
    the last one may go on.
    """

    plain: list[bytes] = field(default_factory=list)
    bare: list[bytes] = field(default_factory=list)
    glued: list[bytes] = field(default_factory=list)
    cut: bool = False
    run: str = ""


class _Reading:
    """The state between rows."""

    def __init__(self, matcher: Matcher, scope: Scope) -> None:
        self.decoder = Decoder()
        self._matcher = matcher
        self._scope = scope
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._came_in: set[int] = set()
        self._put_out: set[int] = set()
        self._activities: list[Activity] = []
        # Commands that went elsewhere, until their results tell whether anything came of it.
        self._pending: dict[object, tuple[int, str, set[Elsewhere]]] = {}
        self._confirmed: dict[int, set[Elsewhere]] = {}
        self._own_history = False
        self.cut = False

    def noting_cuts(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows; whether a tool wrote more than was kept of it is noted on the way."""
        for row in rows:
            self.cut = self.cut or (row.type == "exit" and row.payload.get("cut_bytes") != 0)
            yield row

    def take(self, row: Row, texts: list[str]) -> None:
        count, digests = 0, set[int]()
        for number, text in enumerate(texts):
            if text:
                many, found = self._read(row, text, stitched=number == 0)
                count += many
                digests |= found
        known = self._put_out if row.type in OUTGOING else self._came_in | self._put_out
        fresh = digests - known
        (self._put_out if row.type in OUTGOING else self._came_in).update(fresh)
        elsewhere = self._elsewhere(row, texts[0])
        self._activities.append(
            Activity(row.index, row.type, count, tuple(sorted(fresh)), tuple(sorted(elsewhere)))
        )

    def found(self) -> list[Activity]:
        """All activities, with what the results of commands confirmed of them."""
        return [
            Activity(each.row, each.kind, each.words, each.digests, tuple(sorted({*each.elsewhere, *extra})))
            if (extra := self._confirmed.get(each.row))
            else each
            for each in self._activities
        ]

    def _read(self, row: Row, text: str, *, stitched: bool) -> tuple[int, set[int]]:
        """How many words a text has, and the candidates in it and in its layers."""
        stream = self._stream(row) if stitched else _Stream()
        joined = stream.run + text
        layers = self.decoder.layers(joined)
        words = words_of(next(layers))
        bare_text = without_numbers(joined)
        bare = words if bare_text is joined else words_of(bare_text)
        found = set(self._matcher.candidates(stream.plain + words))
        if bare is not words or stream.bare is not stream.plain:
            found.update(self._matcher.candidates(stream.bare + bare))
        for layer in layers:
            found.update(self._matcher.candidates(words_of(layer)))
        found.update(self._across_a_cut(stream, text, words_of(text) if stream.run else words))
        self._advance(stream, joined, words, bare)
        return len(words), found

    def _across_a_cut(self, stream: _Stream, text: str, words: list[bytes]) -> Iterator[int]:
        """The candidates where a text goes on, with the word that the one before was cut in as one."""
        before = stream.glued
        if before and words and stream.cut and words_of(text[0]):
            before, words = before[:-1], [before[-1] + words[0], *words[1:]]
        if before:
            yield from self._matcher.candidates((before + words)[: len(before) + self._matcher.longest])
        # One more than a window, for the last word may go on.
        stream.glued = _tail(before, words, self._matcher.longest)
        stream.cut = bool(words_of(text[-1]))

    def _stream(self, row: Row) -> _Stream:
        path = row.payload.get("path")
        name = self._scope.resolved(path) if isinstance(path, str) else ""
        kind = "read" if row.type in INCOMING else row.type
        return self._streams.setdefault((kind, name), _Stream())

    def _advance(self, stream: _Stream, joined: str, words: list[bytes], bare: list[bytes]) -> None:
        keep = self._matcher.longest - 1
        stream.run = open_run(joined)
        last = len(words_of(stream.run)) if stream.run else 0
        same = bare is words and stream.bare is stream.plain
        stream.plain = _tail(stream.plain, words[: len(words) - last], keep)
        stream.bare = stream.plain if same else _tail(stream.bare, bare[: len(bare) - last], keep)

    def _elsewhere(self, row: Row, text: str) -> set[Elsewhere]:
        payload = row.payload
        failed = payload.get("failed") is True
        found: set[Elsewhere] = set()
        path, url = payload.get("path"), payload.get("url")
        if row.type in ("read", "write", "result") and isinstance(path, str) and not failed:
            found |= _one(self._scope.of_path(path))
        if row.type == "request" and isinstance(url, str):
            found |= _one(self._scope.of_endpoint(url))
        if row.type == "command":
            self._take_command(row, text)
        elif row.type == "result":
            self._take_result(payload.get("call"), text, failed=failed)
        return found

    def _take_command(self, row: Row, text: str) -> None:
        wrong = self._scope.of_command(text)
        if self._own_history and not self._scope.names_other_repository(text):
            wrong.discard("git_history")
        self._own_history = self._own_history or self._scope.starts_history(text)
        if wrong:
            self._pending[row.payload.get("call")] = (row.index, text, wrong)

    def _take_result(self, call: object, text: str, *, failed: bool) -> None:
        row, command, wrong = self._pending.pop(call, (0, "", set[Elsewhere]()))
        if failed:
            wrong = set()
        if shows_no_history(command, text):
            wrong.discard("git_history")
        if wrong:
            self._confirmed[row] = wrong


def _one(value: Elsewhere | None) -> set[Elsewhere]:
    return set() if value is None else {value}


def _tail(before: list[bytes], words: list[bytes], keep: int) -> list[bytes]:
    return (before + words)[-keep:] if keep else []
