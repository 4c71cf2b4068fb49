"""Golden tasks: Markdown with front matter, one folder a tier, from the project or from this package.

What belongs here: the document, the loader, a golden task as data and as a task that cells can run on. What does
not: looking whether its signals hold (``execution.signals``) and scoring (``golden``).

A tier's folder of the project replaces the packaged tier whole as soon as it holds one ``.md`` file, whether that
file parses or not. A file that does not parse is a problem and hides no other.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from bench_pipeline.documents import (
    Bool,
    Document,
    Float,
    Int,
    Name,
    RelativePath,
    StrictModel,
    nearest,
    read_front_matter,
)
from bench_pipeline.documents.fields import as_text
from bench_pipeline.errors import DocumentError, NotFoundError, Problem
from bench_pipeline.identity import digest, digest_bytes
from bench_pipeline.tasks.documents import TIERS, CommandLine, Pattern, Tier
from bench_pipeline.tasks.loading import folded, id_problem
from bench_pipeline.tasks.signals import Signal, SignalCheck, parse_signal
from bench_pipeline.tasks.task import DirectorySource, Task, TaskEnvironment, TaskVerify
from bench_pipeline.tasks.trees import tree_digest

FOLDER = "golden"
Starts = Literal["failing", "passing"]


def _signal_text(value: object) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, argument),) = value.items()
        raise ValueError(f'expected text, found a mapping; put it in quotes: "{name}: {argument}"')
    return as_text(value)


def _checked_signal(text: str) -> str:
    parse_signal(text)
    return text


SignalText = Annotated[
    str,
    BeforeValidator(_signal_text),
    AfterValidator(_checked_signal),
    Field(json_schema_extra={"type": "string"}),
]


class GoldenDocument(StrictModel):
    """The front matter of a golden task."""

    id: Name | None = Field(None, description="Its name; left out: the file's name without .md.")
    title: Name | None = Field(None, description="What people read; left out: the file's name without .md.")
    role: Name = Field("backend", description="Who the task is for.")
    completion_signals: tuple[SignalText, ...] = Field(
        (),
        description="What has to hold when it is done: 'path_exists: P', 'glob_exists: G', 'file_contains: P :: "
        "needle', 'file_unchanged: P', 'test_passes: CMD', 'no_files_modified'; other text is for a judge.",
    )
    expected_files_modified: tuple[RelativePath, ...] = Field(
        (), description="The files that a solution is expected to change."
    )
    expected_test_outcomes: dict[CommandLine, Bool] = Field(
        default_factory=dict, description="Test commands, and whether each has to pass after the work."
    )
    owned_files: tuple[Pattern, ...] = Field(
        (), description="Paths, folders or globs that the work may touch; none: its scope is not checked."
    )
    max_cost_usd: Annotated[Float, Field(ge=0)] = Field(1.0, description="What it may cost, in USD.")
    max_duration_s: Annotated[Int, Field(ge=0)] = Field(
        300, description="How long it may take, in seconds; 0: no limit."
    )
    workspace: RelativePath | None = Field(
        None,
        description="The folder beside this file that work starts from; none: scored from telemetry only.",
    )
    starts: Starts = Field("failing", description="What its signals say before any work.")
    canary: Name | None = Field(
        None, description="Text that stands nowhere else: whoever quotes it has read this file."
    )

    @field_validator("completion_signals")
    @classmethod
    def _each_once(cls, signals: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((text for number, text in enumerate(signals) if text in signals[:number]), None)
        if twice is not None:
            raise ValueError(f"expected each signal once, found {twice!r} twice")
        return signals


@dataclass(frozen=True)
class GoldenTask:
    """One golden task.

    ``front_matter`` is its text as written, without the lines around it; ``workspace`` is absolute, and None for a
    task that can only be scored from telemetry; ``packaged`` tells those of this package from the project's.
    """

    id: str
    tier: Tier
    title: str
    role: str
    prompt: str
    file: Path
    front_matter: str = field(repr=False)
    signals: tuple[Signal, ...] = ()
    expected_files_modified: tuple[str, ...] = ()
    expected_test_outcomes: Mapping[str, bool] = field(default_factory=dict)
    owned_files: tuple[str, ...] = ()
    max_cost_usd: float = 1.0
    max_duration_s: int = 300
    workspace: Path | None = None
    starts: Starts = "failing"
    canary: str | None = None
    packaged: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that the task says, and of its workspace's tree."""
        return digest(
            {
                "id": self.id,
                "tier": self.tier,
                "prompt": digest_bytes(self.prompt.encode()),
                "front_matter": digest_bytes(self.front_matter.encode()),
                "workspace": None if self.workspace is None else tree_digest(self.workspace),
            }
        )

    @property
    def check(self) -> SignalCheck:
        """How a candidate of it is checked."""
        return SignalCheck(
            self.signals,
            tuple(self.expected_test_outcomes.items()),
            (*self.expected_files_modified, *self.owned_files),
        )

    def as_task(self) -> Task:
        """The task that cells of it run on; it has to have a workspace."""
        assert self.workspace is not None
        return Task(
            id=self.id,
            tier=self.tier,
            folder=self.file.parent,
            source=DirectorySource(self.workspace, self.workspace.name),
            timeout_s=None,
            environment=TaskEnvironment(),
            prompt=self.prompt,
            prompt_path=self.file.name,
            verify=TaskVerify(command="", tests_patch=b""),
            reference_patch=b"",
            validation=None,
            signals=self.check,
        )


@dataclass(frozen=True)
class GoldenSet:
    """Golden tasks in order of tier and file name, and the problems of those that could not be read."""

    tasks: tuple[GoldenTask, ...]
    problems: tuple[Problem, ...] = ()

    @cached_property
    def by_id(self) -> dict[str, GoldenTask]:
        """The tasks by their ids."""
        return {task.id: task for task in self.tasks}

    @property
    def runnable(self) -> tuple[GoldenTask, ...]:
        """Those that cells are made of, if they start as they declare: the ones with a workspace.

        Packaged ones take part where the project has golden tasks of its own; everywhere else, a new version of this
        package would add cells to evaluations that have nothing to do with them.
        """
        if all(task.packaged for task in self.tasks):
            return ()
        return tuple(task for task in self.tasks if task.workspace is not None)

    def get(self, task_id: str) -> GoldenTask:
        """The task of that id; NotFoundError names the nearest."""
        if task_id in self.by_id:
            return self.by_id[task_id]
        close = nearest(task_id, self.by_id)
        remedy = f"did you mean {close}?" if close else "bench golden validate lists them"
        raise NotFoundError(f"looking up the golden task {task_id}", "there is no such task", remedy)

    def selected(self, ids: Iterable[str] = (), tiers: Collection[str] = ()) -> tuple[GoldenTask, ...]:
        """The tasks of these ids and tiers, in order; an empty selection leaves its axis whole."""
        wanted = {self.get(task_id).id for task_id in ids}
        return tuple(
            task
            for task in self.tasks
            if (not wanted or task.id in wanted) and (not tiers or task.tier in tiers)
        )


def load_golden(root: Path | None) -> GoldenSet:
    """The golden tasks of a project (None: of no project), with every problem of every file.

    Never raises for what a file holds.
    """
    tasks: list[GoldenTask] = []
    problems: list[Problem] = []
    if root is not None:
        problems.extend(_misplaced(root / FOLDER))
    for tier in TIERS:
        folder, packaged = _tier_folder(root, tier)
        for path in _documents(folder):
            try:
                tasks.append(_load(path, tier, packaged=packaged))
            except DocumentError as error:
                problems.extend(error.problems)
    twins = _twins(tasks)
    problems.extend(twins.values())
    return GoldenSet(
        tuple(task for task in tasks if task.file not in twins), tuple(sorted(set(problems), key=str))
    )


def _tier_folder(root: Path | None, tier: Tier) -> tuple[Path, bool]:
    """Where a tier's documents are, and whether that is in this package."""
    own = root / FOLDER / tier if root is not None else None
    if own is not None and any(_documents(own)):
        return own, False
    return Path(str(files("bench_pipeline") / "golden_data" / tier)), True


def _documents(folder: Path) -> list[Path]:
    """The Markdown files directly in a folder, sorted by name."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(
            folder / item.name for item in entries if item.name.endswith(".md") and not item.is_dir()
        )


def _misplaced(folder: Path) -> Iterator[Problem]:
    """What lies in the golden folder and belongs to no tier: nobody would ever read it."""
    if not folder.is_dir():
        return
    where = f"golden tasks are .md files directly in {', '.join(f'{FOLDER}/{tier}/' for tier in TIERS)}"
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in TIERS and any(path.glob("*.md")):
            yield Problem(str(path), None, "", f"is no tier; {where}")
        elif path.suffix == ".md" and not path.is_dir() and path.name.casefold() != "readme.md":
            yield Problem(str(path), None, "", f"is in no tier; {where}")


def _load(path: Path, tier: Tier, *, packaged: bool) -> GoldenTask:
    if path.is_symlink():
        raise DocumentError([Problem(str(path), None, "", "is a symbolic link: put the file itself there")])
    document, body = read_front_matter(path, GoldenDocument)
    model = document.model
    problems = list(_problems(document, model.id or path.stem, body))
    if problems:
        raise DocumentError(problems)
    return GoldenTask(
        id=model.id or path.stem,
        tier=tier,
        title=model.title or path.stem,
        role=model.role,
        prompt=body.strip("\r\n"),
        file=path,
        front_matter=document.source.decode(),
        signals=tuple(parse_signal(text) for text in model.completion_signals),
        expected_files_modified=model.expected_files_modified,
        expected_test_outcomes=dict(model.expected_test_outcomes),
        owned_files=model.owned_files,
        max_cost_usd=model.max_cost_usd,
        max_duration_s=model.max_duration_s,
        workspace=None if model.workspace is None else path.parent / model.workspace,
        starts=model.starts,
        canary=model.canary,
        packaged=packaged,
    )


def _problems(document: Document[GoldenDocument], task_id: str, body: str) -> Iterator[Problem]:
    """What the front matter alone cannot get wrong: the id, the prompt, the folder that it names."""
    model = document.model
    wrong = id_problem(task_id)
    if wrong is not None:
        yield document.problem(("id",), f"{wrong}; found {task_id!r}")
    if "\0" in body:
        yield document.problem((), "the prompt has a NUL character")
    if model.workspace is None:
        return
    if not body.strip():
        yield document.problem((), "the prompt, the text below the front matter, is empty")
    place = document.path.parent
    for part in model.workspace.split("/"):
        place /= part
        if place.is_symlink():
            yield document.problem(("workspace",), f"{model.workspace} goes through a symbolic link")
            return
    if not place.is_dir():
        yield document.problem(("workspace",), f"there is no folder {model.workspace} beside the file")


def _twins(tasks: Iterable[GoldenTask]) -> dict[Path, Problem]:
    """A problem for every task whose id another has, in any tier, or that differs only in case or separators."""
    groups: dict[str, list[GoldenTask]] = {}
    for task in tasks:
        groups.setdefault(folded(task.id), []).append(task)
    return {
        task.file: Problem(
            str(task.file),
            None,
            "id",
            f"{task.id} is also the id, but for letter case or separators, of "
            f"{', '.join(str(other.file) for other in group if other is not task)}: rename one",
        )
        for group in groups.values()
        if len(group) > 1
        for task in group
    }
