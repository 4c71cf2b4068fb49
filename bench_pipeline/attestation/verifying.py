"""Verifying an attestation offline: every step re-derives something, and each has a reason of its own.

What belongs here: the order of the steps. What does not: printing them. Nothing is taken from the attestation
that can be derived again; the verdict that counts is the re-derived one.
"""

import hmac
import io
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from bench_pipeline.attestation.commitment import Seal, commit
from bench_pipeline.attestation.document import SIGNED_PREFIX, Attestation, Sealed, decode, evidence_parts
from bench_pipeline.attestation.examining import Examination, examine, read_evidence
from bench_pipeline.attestation.keys import AuditKey, is_signed
from bench_pipeline.attestation.lineage import Lineage, attestation_path, read_lineage, repair
from bench_pipeline.attestation.truth import Subject
from bench_pipeline.errors import BenchError, CorruptPartError, NotFoundError
from bench_pipeline.journal import Head, JournalReader
from bench_pipeline.store import Store

State = Literal["ok", "failed", "not checked"]
STEPS: Final = (
    "path", "types", "name", "hash", "key", "signature", "commitment", "journal", "activities", "findings", "spine",
    "anchored", "mirrored",
)  # fmt: skip
_is_name: Final = re.compile(r"[0-9a-f]{64}").fullmatch
# The subject of a task id, or None when the task is not at hand.
Subjects = Callable[[str], Subject | None]


@dataclass(frozen=True)
class Step:
    """One step: whether it held, and the reason when it did not or could not be looked at."""

    name: str
    state: State
    reason: str | None = None


@dataclass(frozen=True)
class Verification:
    """The steps up to the first that failed, and what was re-derived when none did."""

    name: str
    steps: tuple[Step, ...]
    sealed: Sealed | None = None
    examination: Examination | None = None

    @property
    def verified(self) -> bool:
        """Whether every step was reached and none failed."""
        return len(self.steps) == len(STEPS) and self.problem is None

    @property
    def problem(self) -> str | None:
        """The reason of the step that failed."""
        return next((f"{step.name}: {step.reason}" for step in self.steps if step.state == "failed"), None)


class _FailedError(Exception):
    """A step that failed, with its reason."""


class Verifier:
    """Verifies attestations of one store; spine and audit chain are read once.

    ``key`` is the project's; without it ``public`` (hex digits) has to be the signer's, and what only the secret
    can tell is not checked. Nothing is written but the end of an append that was cut off, and only with the key.
    """

    def __init__(
        self, store: Store, key: AuditKey | None, subjects: Subjects, *, public: str | None = None
    ) -> None:
        self.store = store
        self.key = key
        self.public = public
        self.subjects = subjects

    @cached_property
    def lineage(self) -> Lineage:
        """Spine and audit chain, an append that was cut off finished first."""
        if self.key is not None:
            repair(self.store, self.key)
        return read_lineage(self.store, self.key)

    def verify(self, name: str) -> Verification:
        """Take the steps in order, up to the first that fails."""
        check = _Check(self, name)
        steps: list[Step] = []
        for step in STEPS:
            try:
                unchecked: str | None = getattr(check, step)()
            except _FailedError as error:
                return Verification(name, (*steps, Step(step, "failed", str(error))), check.sealed)
            except BenchError as error:
                return Verification(name, (*steps, Step(step, "failed", error.wrong)), check.sealed)
            steps.append(Step(step, "ok" if unchecked is None else "not checked", unchecked))
        return Verification(name, tuple(steps), check.sealed, check.examination)


class _Check:
    """One verification: a method for each step, which raises why it failed or returns why it was not looked at."""

    def __init__(self, verifier: Verifier, name: str) -> None:
        self._by = verifier
        self._name = name
        self._data = b""
        self.sealed: Sealed | None = None
        self.examination: Examination | None = None

    def path(self) -> None:
        if not _is_name(self._name):
            raise _FailedError("an attestation is named by 64 hex digits")
        path = attestation_path(self._name)
        place = self._by.store.files.local(path)
        if place is not None:
            _check_place(place)
        try:
            self._data = self._by.store.files.read(path)
        except FileNotFoundError:
            raise _FailedError("there is no such attestation") from None

    def types(self) -> None:
        try:
            self.sealed = decode(self._data)
            self._attestation.to_commitment()
            self._attestation.to_evidence()
        except ValueError as error:
            raise _FailedError(str(error)) from None

    @property
    def _attestation(self) -> Attestation:
        assert self.sealed is not None
        return self.sealed.attestation

    def name(self) -> None:
        assert self.sealed is not None
        if self.sealed.hash != self._name:
            raise _FailedError("the file's name is not the hash in it")

    def hash(self) -> None:
        if self._attestation.hash != self._name:
            raise _FailedError("the hash is not that of what it seals")

    def key(self) -> str | None:
        key, found = self._by.key, self._attestation
        assert self.sealed is not None
        if key is None:
            if self._by.public is None:
                raise _FailedError("there is no audit key, and no public key was given")
            if self._by.public.casefold() != found.signer:
                raise _FailedError("it was signed by another key than the one given")
            return "needs the secret key"
        if key.id != found.key_id:
            raise _FailedError("it was sealed with another key")
        if not hmac.compare_digest(key.mac("attestation", self._name), self.sealed.mac):
            raise _FailedError("its HMAC is not ours")
        if key.public != found.signer:
            raise _FailedError("its signer is not this key's")
        return None

    def signature(self) -> None:
        assert self.sealed is not None
        message = SIGNED_PREFIX + bytes.fromhex(self._name)
        if not is_signed(self._attestation.signer, self.sealed.signature, message):
            raise _FailedError("the Ed25519 signature is not the signer's")

    def commitment(self) -> str | None:
        found = self._attestation
        if self._by.key is None:
            return "needs the secret key"
        subject = self._by.subjects(found.task.id)
        if subject is None:
            return "the task is not at hand"
        if subject.task_digest != found.task.digest:
            return "the task has changed since"
        if subject.allowance.digest() != found.allowance:
            return "what is allowed has changed since"
        if len(subject.sources) != found.commitment.coverage.declared:
            return "extra reference texts are not at hand"
        if commit(self._seal, subject.sources, subject.allowance).document() != found.commitment.model_dump():
            raise _FailedError("it is not the commitment to this task's answer")
        return None

    @property
    def _seal(self) -> Seal:
        found, key = self._attestation, self._by.key
        assert key is not None
        return Seal(key.attestation_key(bytes.fromhex(found.nonce), found.task.digest, found.run))

    def journal(self) -> None:
        found = self._attestation.journal
        reader = JournalReader(io.BytesIO(self._journal()))
        for _ in reader:
            pass
        if reader.complete != found.complete:
            raise _FailedError("; ".join(reader.problems) or "it is complete, and was sealed as incomplete")
        if reader.head != Head(found.rows, found.last_hash, found.root):
            raise _FailedError("its head is not the one that was sealed")

    def _journal(self) -> bytes:
        try:
            return self._by.store.artifacts.get(self._attestation.journal.artifact)
        except NotFoundError:
            raise _FailedError("the journal is not in the store") from None
        except CorruptPartError:
            raise _FailedError("the journal is not the one that was sealed") from None

    def activities(self) -> str | None:
        if self._by.key is None:
            return "needs the secret key"
        sealed = self._attestation
        evidence = read_evidence(io.BytesIO(self._journal()), sealed.to_commitment(), self._seal)
        derived = Attestation.model_validate({**sealed.body, **evidence_parts(evidence)})
        if derived.hash != sealed.hash:
            raise _FailedError("they are not what the journal shows")
        return None

    def findings(self) -> None:
        found = self._attestation
        derived = examine(found.to_evidence(), found.to_commitment())
        if derived != found.examination:
            raise _FailedError("findings and verdict do not follow from the activities")
        self.examination = derived

    def spine(self) -> None:
        if self._by.lineage.spine_problem is not None:
            raise _FailedError(self._by.lineage.spine_problem)

    def anchored(self) -> None:
        problem = self._by.lineage.anchor_problem(self._name)
        if problem is not None:
            raise _FailedError(problem)

    def mirrored(self) -> None:
        problem = self._by.lineage.mirror_problem(self._name)
        if problem is not None:
            raise _FailedError(problem)


def _check_place(place: Path) -> None:
    """Refuse a file that is not plainly ours: a link on its way, another name for it, or open to others."""
    for part in (place.parent, place):
        try:
            found = part.lstat()
        except FileNotFoundError:
            raise _FailedError("there is no such attestation") from None
        if stat.S_ISLNK(found.st_mode):
            raise _FailedError("a link stands in its place")
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise _FailedError("it is no plain file, or has another name")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise _FailedError(f"its mode is {stat.S_IMODE(found.st_mode):04o}, expected 0600")
