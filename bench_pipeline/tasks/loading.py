"""Reads a project's task folders; a broken one is reported and does not hide the others.

What belongs here: ids and the files beside ``task.yaml``. What does not: the fields of the document
(``documents``) and running anything.
"""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench_pipeline.documents import Document, nearest, read_document
from bench_pipeline.errors import DocumentError, NotFoundError, Problem
from bench_pipeline.tasks.documents import TaskDocument
from bench_pipeline.tasks.patches import MAX_PATCH_BYTES
from bench_pipeline.tasks.task import Task, task_of
from bench_pipeline.tasks.trees import LINK, read_file

TASK_FILE = "task.yaml"
MAX_ID = 200  # leaves room in a file name of 255 bytes for what is put around an id
_ID = re.compile(r"[A-Za-z0-9_.-]+")


def id_problem(task_id: str) -> str | None:
    """Why ``task_id`` cannot be a task's id, as a sentence; None when it can."""
    if not _ID.fullmatch(task_id):
        return "a task id has only the characters A-Z a-z 0-9 _ . -"
    if len(task_id) > MAX_ID:
        return f"a task id has at most {MAX_ID} characters, found {len(task_id)}"
    if ".." in task_id or task_id[0] in ".-":
        return "a task id does not start with '.' or '-' and has no '..'"
    return None


def folded(task_id: str) -> str:
    """The form in which no two ids of a project may be equal: one case, one Unicode form, one separator."""
    return re.sub(r"[_.-]", "_", unicodedata.normalize("NFC", task_id).casefold())


@dataclass(frozen=True)
class TaskSet:
    """A project's tasks in order of their ids, and the problems of those that could not be read."""

    tasks: tuple[Task, ...]
    problems: tuple[Problem, ...] = ()

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    def get(self, task_id: str) -> Task:
        """The task of that id; NotFoundError names the nearest, DocumentError why it cannot be read."""
        if task_id in self._by_id:
            return self._by_id[task_id]
        broken = [problem for problem in self.problems if task_id in Path(problem.file).parts]
        if broken:
            raise DocumentError(broken)
        close = nearest(task_id, self._by_id)
        remedy = f"did you mean {close}?" if close else "bench task list shows them"
        raise NotFoundError(f"looking up the task {task_id}", "the project has no such task", remedy)

    def selected(self, ids: Iterable[str] = (), tiers: Collection[str] = ()) -> tuple[Task, ...]:
        """The tasks of these ids and tiers, in order; an empty selection leaves its axis whole.

        Raises:
            NotFoundError: an id that no task has.
            DocumentError: an id whose task could not be read.
        """
        wanted = {self.get(task_id).id for task_id in ids}
        return tuple(
            task
            for task in self.tasks
            if (not wanted or task.id in wanted) and (not tiers or task.tier in tiers)
        )


def load_tasks(project_root: Path) -> TaskSet:
    """Every task below ``tasks/`` of a project, with all problems of all that cannot be read."""
    tasks: list[Task] = []
    problems: list[Problem] = []
    folders = list(_task_folders(project_root / "tasks", problems))
    twins = _twins(folders)
    problems.extend(twins.values())
    for folder in folders:
        try:
            task = load_task(folder)
        except DocumentError as error:
            problems.extend(error.problems)
            continue
        if folder.name not in twins:
            tasks.append(task)
    return TaskSet(tuple(sorted(tasks, key=lambda task: task.id)), tuple(sorted(set(problems), key=str)))


def load_task(folder: Path) -> Task:
    """The task in one folder; DocumentError with all of its problems."""
    path = folder / TASK_FILE
    problems = []
    wrong_id = id_problem(folder.name)
    if wrong_id:
        problems.append(Problem(str(path), None, "", f"{wrong_id}: rename the folder"))
    if path.is_symlink():
        raise DocumentError([*problems, Problem(str(path), None, "", _LINKED)])
    try:
        document = read_document(path, TaskDocument, "Task")
    except DocumentError as error:
        raise DocumentError([*problems, *error.problems]) from None
    model = document.model
    prompt = _text(_beside(document, ("prompt",), model.prompt, problems), document, problems)
    tests = _beside(document, ("verify", "tests_patch"), model.verify.tests_patch, problems)
    reference = _beside(document, ("reference_patch",), model.reference_patch, problems)
    if model.source.directory is not None:
        _check_directory(document, model.source.directory, problems)
    if problems:
        raise DocumentError(problems)
    return task_of(model, folder, prompt=prompt, tests_patch=tests, reference_patch=reference)


_LINKED = "is a symbolic link: put the file itself there"


def _task_folders(root: Path, problems: list[Problem]) -> Iterator[Path]:
    """Folders with a task file, directly below ``root``; near misses are problems."""
    if not root.is_dir():
        return
    with os.scandir(root) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        folder = root / entry.name
        if entry.is_symlink():
            if (folder / TASK_FILE).exists():
                problems.append(
                    Problem(str(folder), None, "", "is a symbolic link: put the folder itself there")
                )
        elif entry.is_dir():
            if os.path.lexists(folder / TASK_FILE):
                yield folder
            elif not entry.name.startswith("."):
                problems.extend(_near_misses(folder))


def _near_misses(folder: Path) -> Iterator[Problem]:
    if (folder / "task.yml").exists():
        yield Problem(str(folder / "task.yml"), None, "", f"is called {TASK_FILE} in a task's folder")
    for nested in sorted(folder.glob(f"*/{TASK_FILE}")):
        message = "a task's folder lies directly in tasks/: its id has no '/'"
        yield Problem(str(nested), None, "", message)


def _twins(folders: Iterable[Path]) -> dict[str, Problem]:
    """A problem for every id that differs from another only in case, separators or Unicode form."""
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        groups.setdefault(folded(folder.name), []).append(folder / TASK_FILE)
    problems = {}
    for group in groups.values():
        for path in group if len(group) > 1 else ():
            others = ", ".join(str(other) for other in group if other != path)
            message = f"its id differs from that of {others} only in letter case or separators: rename one"
            problems[path.parent.name] = Problem(str(path), None, "", message)
    return problems


def _beside(
    document: Document[TaskDocument], field: tuple[str, ...], name: str, problems: list[Problem]
) -> bytes:
    """The content of a plain file below the task's folder."""
    try:
        found = read_file(document.path.parent, name, largest=MAX_PATCH_BYTES)
    except (OSError, ValueError) as error:
        problems.append(document.problem(field, f"{name} cannot be read: {error}"))
        return b""
    if found is None:
        problems.append(document.problem(field, f"there is no file {name} in the task's folder"))
        return b""
    if found.mode == LINK:
        problems.append(document.problem(field, f"{name} {_LINKED}"))
    return found.content


def _text(data: bytes, document: Document[TaskDocument], problems: list[Problem]) -> str:
    name = document.model.prompt
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(document.problem(("prompt",), f"{name} is not UTF-8 at byte {error.start}"))
        return ""
    if "\0" in text:
        problems.append(document.problem(("prompt",), f"{name} has a NUL character"))
    elif not problems and not text.strip():
        problems.append(document.problem(("prompt",), f"{name} is empty: it is what the tool is asked to do"))
    return text


def _check_directory(document: Document[TaskDocument], name: str, problems: list[Problem]) -> None:
    place = document.path.parent
    for part in name.split("/"):
        place /= part
        if place.is_symlink():
            problems.append(document.problem(("source", "directory"), f"{name} goes through a symbolic link"))
            return
    if not place.is_dir():
        problems.append(
            document.problem(("source", "directory"), f"there is no folder {name} beside the task")
        )
