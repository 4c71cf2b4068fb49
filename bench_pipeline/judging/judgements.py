"""Recorded judgements: every reply of a live judge, so that a judgement can be replayed or carried on.

What belongs here: the file, one JSON line a reply, and looking replies up. What does not: asking. A reply is found by
the digest of the scenario and the prompt that it answers, so that it stands for nothing else. A failure may be
followed by a reply to the same prompt, when it was asked again; two replies to one prompt are an error.
"""

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bench_pipeline.documents import Int, StrictModel, Text, read_jsonl
from bench_pipeline.errors import DocumentError, Problem, RefusedError
from bench_pipeline.store.text import clean_text

SCHEMA = 1
# What a model did answer, and nobody can use.
_ANSWERED = frozenset({"no_content", "shape", "too_large"})


class _Line(StrictModel):
    schema_: Annotated[Int, Field(alias="schema", ge=SCHEMA, le=SCHEMA)]
    model: Text
    scenario: Text
    prompt_sha256: Text
    reply: Text | None = None
    failure: Text | None = None


@dataclass(frozen=True)
class Reply:
    """What came of one question: the judge's words, or the kind of failure; the tokens where they are told."""

    text: str | None = None
    failure: str | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None

    @property
    def settled(self) -> bool:
        """Whether the model answered, readably or not: to ask again would be to pay again."""
        return self.text is not None or self.failure in _ANSWERED


class Judgements:
    """The replies in a file, and those added to it; threads may share it. Without a file they are kept in memory."""

    def __init__(self, path: Path | None, model: str | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._replies: dict[str, Reply] = {}
        self.model = model or ""
        if path is not None and (model is None or path.exists()):
            self._read(path, model)

    def _read(self, path: Path, model: str | None) -> None:
        rows = read_jsonl(path, _Line)
        problems: list[Problem] = []
        for number, line in zip(rows.lines, rows.rows, strict=True):
            earlier = self._replies.get(line.prompt_sha256)
            if earlier is not None and earlier.text is not None:
                problems.append(Problem(str(path), number, "prompt_sha256", "a second reply to one prompt"))
            self._replies[line.prompt_sha256] = Reply(line.reply, line.failure)
        models = sorted({line.model for line in rows.rows})
        if problems:
            raise DocumentError(problems)
        if len(models) > 1 or (model is not None and models not in ([], [model])):
            wrong = f"it holds replies of {', '.join(models)}" + (
                f", and {model} was asked for" if model else ""
            )
            raise RefusedError(f"reading the judgements {path}", wrong, "keep one file for each judge model")
        self.model = model or (models[0] if models else "")

    def find(self, prompt_sha256: str) -> Reply | None:
        """The reply to a prompt; None where there is none."""
        with self._lock:
            return self._replies.get(prompt_sha256)

    def add(self, scenario: str, prompt_sha256: str, reply: Reply) -> None:
        """Keep a reply; it is in the file when this returns."""
        row = {
            "schema": SCHEMA,
            "model": self.model,
            "scenario": scenario,
            "prompt_sha256": prompt_sha256,
            "reply": clean_text(reply.text),
            "failure": reply.failure,
        }
        known = {name: value for name, value in row.items() if value is not None}
        with self._lock:
            self._replies[prompt_sha256] = reply
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("ab") as file:
                    file.write(json.dumps(known, ensure_ascii=False).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
