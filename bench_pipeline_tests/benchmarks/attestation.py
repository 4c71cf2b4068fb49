"""Scanning a journal of 10 MB, layers and stitching included, against the bare HMAC-SHA256 of its windows."""

import hmac
import io
import sysconfig
from pathlib import Path

from bench_pipeline.attestation import Subject, scan
from bench_pipeline.attestation.truth import Allowance, Source
from bench_pipeline.attestation.words import words_of
from bench_pipeline.journal import JournalReader, JournalWriter
from bench_pipeline_tests.benchmarks import Row, best_of

JOURNAL_BYTES = 10 << 20
PIECE_CHARS = 4000
ANSWER_WORDS = 4000
KEY = b"k" * 32


def measure() -> list[Row]:
    """Reads and results of source files, as agents make them."""
    texts = _texts()
    journal = _journal(texts)
    answer = " ".join(
        f"answer{number} of{number % 71} part{number % 13}" for number in range(ANSWER_WORDS // 3)
    )
    subject = Subject("t", "0" * 64, (Source("extra", (answer,)),), Allowance({}))
    rows = (row.payload.get("text") for row in JournalReader(io.BytesIO(journal)))
    windows = [words_of(text) for text in rows if isinstance(text, str)]
    bare = best_of(3, lambda: _bare(windows))
    return [
        Row(
            f"scan a journal of {len(journal) >> 20} MB / bare HMAC of its windows",
            best_of(3, lambda: scan(journal, subject, KEY)),
            bare,
            3.0,
        ),
        Row(
            "read it and check its chain / the same",
            best_of(3, lambda: sum(1 for _ in JournalReader(io.BytesIO(journal)))),
            bare,
            1.0,
        ),
    ]


def _texts() -> list[str]:
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    texts: list[str] = []
    size = 0
    for path in files:
        text = path.read_text("utf-8", "replace")
        for at in range(0, len(text), PIECE_CHARS):
            texts.append(text[at : at + PIECE_CHARS])
            size += len(texts[-1])
        if size > JOURNAL_BYTES:
            break
    return texts


def _journal(texts: list[str]) -> bytes:
    stream = io.BytesIO()
    writer = JournalWriter(stream)
    writer.append("open", {"scope": {"roots": ["/workspace"]}, "expected": ["read"]})
    for number, text in enumerate(texts):
        kind = ("read", "result", "message")[number % 3]
        writer.append(kind, {"path": f"file{number}.py", "text": text} if kind == "read" else {"text": text})
        if stream.tell() > JOURNAL_BYTES:
            break
    writer.append("close", {})
    return stream.getvalue()


def _bare(windows: list[list[bytes]]) -> None:
    digest = hmac.digest
    for words in windows:
        for at in range(len(words) - 7):
            digest(KEY, b"\0".join(words[at : at + 8]), "sha256")
