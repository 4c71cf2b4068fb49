"""How much of a known answer the scan would have found: planted in a copy of the journal, in several encodings.

What belongs here: planting and counting, and the rate of false findings in texts that hold no answer. What
does not: anything that is kept. The answers are planted where the agent had said nothing yet.
"""

import base64
import gzip
import io
import json
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from bench_pipeline.attestation.commitment import Commitment, Matcher, Seal, commit, kinds_of
from bench_pipeline.attestation.examining import findings_of, read_evidence
from bench_pipeline.attestation.truth import Subject
from bench_pipeline.attestation.words import words_of
from bench_pipeline.journal import OPEN, JournalReader, JournalWriter, Row

_MAX_PASSAGES: Final = 24
_PASSAGE_WORDS: Final = 40
_MAX_NULL_BYTES: Final = 8 << 20


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")


def _numbered(text: str) -> str:
    words = text.split()
    lines = [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, 1))


# Every encoding makes the texts of one or more reads of one file.
ENCODINGS: Final[Mapping[str, Callable[[str], list[str]]]] = MappingProxyType(
    {
        "plain": lambda text: [text],
        "upper case": lambda text: [text.upper()],
        "JSON": lambda text: [json.dumps({"content": text})],
        "JSON in JSON": lambda text: [json.dumps({"content": json.dumps([text])})],
        "base64": lambda text: [_base64(text)],
        "base64 in base64": lambda text: [_base64(_base64(text))],
        "hex": lambda text: [text.encode("utf-8", "replace").hex()],
        "URL": lambda text: [quote(text, safe="")],
        "gzip, base64": lambda text: [
            base64.b64encode(gzip.compress(text.encode("utf-8", "replace"))).decode("ascii")
        ],
        "line numbers": lambda text: [_numbered(text)],
        "split over reads": lambda text: [f"{word}\n" for word in text.split()],
    }
)


@dataclass(frozen=True)
class Detected:
    """How many planted passages were found in one encoding."""

    encoding: str
    planted: int
    detected: int


@dataclass(frozen=True)
class Power:
    """Detection by encoding, and findings among the windows of the standard library's own files."""

    by_encoding: tuple[Detected, ...]
    null_files: int
    null_windows: int
    null_findings: int

    @property
    def share(self) -> float | None:
        """The share of planted passages that were found; None when nothing could be planted."""
        planted = sum(each.planted for each in self.by_encoding)
        return sum(each.detected for each in self.by_encoding) / planted if planted else None


def measure_power(journal: bytes, subject: Subject, key: bytes) -> Power:
    """Plant what the subject's answer is made of, in each encoding in a copy of its own, and scan."""
    seal = Seal(key)
    commitment = commit(seal, subject.sources, subject.allowance)
    passages = list(_passages(subject, commitment, seal))
    rows = list(JournalReader(io.BytesIO(journal)))
    found = tuple(
        Detected(name, len(passages), _detected(rows, [encode(text) for text in passages], commitment, seal))
        for name, encode in ENCODINGS.items()
    )
    return Power(found, *_null_rate(commitment, seal))


def _passages(subject: Subject, commitment: Commitment, seal: Seal) -> Iterator[str]:
    """Passages of the answer that hold a sealed window which no passage before holds."""
    matcher, sealed = Matcher(commitment, seal), kinds_of(commitment)
    known: set[int] = set()
    count = 0
    for source in subject.sources:
        for text in source.texts:
            words = text.split()
            for at in range(0, len(words), _PASSAGE_WORDS):
                passage = " ".join(words[at : at + _PASSAGE_WORDS])
                hits = sealed.keys() & set(matcher.candidates(words_of(passage)))
                if hits - known and count < _MAX_PASSAGES:
                    known |= hits
                    count += 1
                    yield passage


def _detected(rows: Iterable[Row], planted: list[list[str]], commitment: Commitment, seal: Seal) -> int:
    stream = io.BytesIO()
    writer = JournalWriter(stream)
    owner: dict[int, int] = {}
    for row in rows:
        writer.append(row.type, row.payload)
        if row.type == OPEN:
            for number, texts in enumerate(planted):
                for text in texts:
                    owner[writer.append("read", {"path": f"planted/{number}", "text": text})] = number
    evidence = read_evidence(io.BytesIO(stream.getvalue()), commitment, seal)
    found = findings_of(evidence.activities.found, commitment)
    return len(
        {owner[each.row] for each in found if each.row in owner and each.kind in ("contraband", "canary")}
    )


def _null_rate(commitment: Commitment, seal: Seal) -> tuple[int, int, int]:
    """Files, windows and findings of the standard library of this interpreter."""
    matcher, sealed = Matcher(commitment, seal), kinds_of(commitment)
    files = windows = findings = size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text("utf-8", "replace")
        size += len(text)
        if size > _MAX_NULL_BYTES:
            break
        words = words_of(text)
        files += 1
        windows += max(0, len(words) - 7)
        findings += len(sealed.keys() & set(matcher.candidates(words)))
    return files, windows, findings
