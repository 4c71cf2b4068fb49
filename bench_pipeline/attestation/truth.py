"""What a task's answer is made of, and what an agent is legitimately given: both derived, never chosen.

What belongs here: from a task to its reference sources and its allowance. What does not: how they are sealed
(``commitment``). Extra reference texts are added to the derived ones and replace none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from bench_pipeline.errors import RefusedError
from bench_pipeline.identity import digest, digest_bytes
from bench_pipeline.tasks import GoldenTask, PatchError, Task
from bench_pipeline.tasks.patches import read_patch
from bench_pipeline.tasks.trees import LINK, TreeFile, tree_digest, tree_files

Kind = Literal[
    "completion_signal", "test_command", "front_matter", "reference_patch", "hidden_tests", "extra", "canary"
]
# Short ones of these count as a whole: they are written to be quoted.
QUOTED: Final[tuple[Kind, ...]] = ("completion_signal", "test_command")
# A larger file of a base tree is data; the answer's words are not looked for in it.
_MAX_FILE_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class Source:
    """One declared source of the answer; each of its ``texts`` is compared as one text."""

    kind: Kind
    texts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Allowance:
    """What the agent was given: texts by name, the tree that it began with, and documentation that it may read."""

    texts: Mapping[str, str] = field(repr=False)
    tree: Path | None = None
    documents: tuple[Path, ...] = ()

    def digest(self) -> str:
        """SHA-256 of all of it."""
        return digest(
            {
                "texts": {
                    name: digest_bytes(text.encode("utf-8", "replace")) for name, text in self.texts.items()
                },
                "tree": None if self.tree is None else tree_digest(self.tree),
                "documents": [_digest_of(path) for path in self.documents],
            }
        )

    def read(self) -> Iterator[str]:
        """All its texts, one after another."""
        yield from self.texts.values()
        for root in (self.tree, *(path for path in self.documents if path.is_dir())):
            if root is not None:
                yield from _texts_below(root)
        for path in self.documents:
            if path.is_file():
                yield path.read_bytes()[:_MAX_FILE_BYTES].decode("utf-8", "replace")


@dataclass(frozen=True)
class Subject:
    """A task as an attestation sees it: its name and digest, the sources of its answer, what is allowed."""

    task_id: str
    task_digest: str
    sources: tuple[Source, ...]
    allowance: Allowance


def subject_of(
    task: Task,
    golden: GoldenTask | None,
    base_tree: Path | None,
    *,
    extra: Sequence[str] = (),
    documents: Sequence[Path] = (),
) -> Subject:
    """The subject of a cell: of its golden task where it has one, else of the repository task.

    Raises RefusedError when a patch of the task cannot be read: a declared source that is lost is not left out.
    """
    given = {"prompt": task.prompt} if golden is None else {"prompt": golden.prompt, "title": golden.title}
    found = _golden_sources(golden) if golden is not None else _repository_sources(task)
    known = golden.digest if golden is not None else _repository_digest(task, base_tree)
    more = tuple(Source("extra", (text,)) for text in extra)
    return Subject(task.id, known, (*found, *more), Allowance(given, base_tree, tuple(documents)))


def _golden_sources(task: GoldenTask) -> tuple[Source, ...]:
    commands = dict.fromkeys(
        [
            *task.expected_test_outcomes,
            *(each.argument for each in task.signals if each.kind == "test_passes"),
        ]
    )
    return (
        *(Source("completion_signal", (signal.text,)) for signal in task.signals),
        *(Source("test_command", (command,)) for command in commands),
        Source("front_matter", (task.front_matter,)),
        *((Source("canary", (task.canary,)),) if task.canary is not None else ()),
    )


def _repository_sources(task: Task) -> tuple[Source, ...]:
    patches: tuple[tuple[Kind, bytes], ...] = (
        ("reference_patch", task.reference_patch),
        ("hidden_tests", task.verify.tests_patch),
    )
    return (
        Source("test_command", (task.verify.command,)),
        *(Source(kind, _added(task.id, kind, patch)) for kind, patch in patches if patch),
    )


def _added(task_id: str, kind: str, patch: bytes) -> tuple[str, ...]:
    """The added lines of each file together."""
    try:
        parts = read_patch(patch)
    except PatchError:
        # Its words quote the patch, and the patch is the answer.
        tried = f"reading the {kind.replace('_', ' ')} of {task_id}"
        raise RefusedError(tried, "it is no readable patch", "run `bench task validate`") from None
    return tuple(b"\n".join(part.added).decode("utf-8", "replace") for part in parts if part.added)


def _repository_digest(task: Task, base_tree: Path | None) -> str:
    return digest(
        {
            "id": task.id,
            "prompt": digest_bytes(task.prompt.encode()),
            "command": digest_bytes(task.verify.command.encode()),
            "tests": digest_bytes(task.verify.tests_patch),
            "reference": digest_bytes(task.reference_patch),
            "tree": None if base_tree is None else tree_digest(base_tree),
        }
    )


def _texts_below(root: Path) -> Iterator[str]:
    for file in tree_files(root):
        if isinstance(file, TreeFile) and file.mode != LINK:
            yield file.content[:_MAX_FILE_BYTES].decode("utf-8", "replace")


def _digest_of(path: Path) -> str:
    return tree_digest(path) if path.is_dir() else digest_bytes(path.read_bytes())
