"""Tasks from commits, and what a project's tasks are: create, scan, list and show.

What belongs here: choosing the repository, putting a new folder into the project, rows about tasks. What does
not: what a task's files say (``tasks``) and checking that a task works (``validating``).
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.documents import read_document
from bench_pipeline.errors import RefusedError, UsageError
from bench_pipeline.tasks import (
    DirectorySource,
    PatchError,
    RemoteSource,
    Task,
    TaskDocument,
    Tier,
    stale,
)
from bench_pipeline.tasks.drafting import Choices, clean_remote, default_id, task_files
from bench_pipeline.tasks.git import GitError, Repository, local_path
from bench_pipeline.tasks.guessing import Guess, guess_command
from bench_pipeline.tasks.harvest import Harvest, Scanned, harvest, scan
from bench_pipeline.tasks.leaks import Leak, draft_prompt, find_leaks
from bench_pipeline.tasks.loading import TASK_FILE, folded, id_problem, load_task
from bench_pipeline.tasks.patches import read_patch
from bench_pipeline.tasks.splitting import Patterns
from bench_pipeline.tasks.trees import TreeFile

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


@dataclass(frozen=True)
class Request:
    """What a person asks for with ``bench task create``; None and empty leave it to be found out.

    ``repository`` is a URL or a path relative to the working directory; without it the project's own remote.
    """

    commit: str
    repository: str | None = None
    task_id: str | None = None
    tier: Tier = "standard"
    command: str | None = None
    junit: str | None = None
    image: str | None = None
    setup: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()


@dataclass(frozen=True)
class Created:
    """A new task, the commit's files by kind, and what a person should look at."""

    task: Task
    tests: tuple[str, ...]
    reference: tuple[str, ...]
    noise: tuple[str, ...]
    command_why: str | None
    removed: tuple[str, ...]
    leaks: tuple[Leak, ...]

    def document(self) -> dict[str, object]:
        """What ``--json`` prints."""
        source = self.task.source
        assert isinstance(source, RemoteSource)
        return {
            "id": self.task.id,
            "folder": str(self.task.folder),
            "remote": source.remote,
            "base_commit": source.base_commit,
            "fix_commit": source.fix_commit,
            "tier": self.task.tier,
            "command": self.task.verify.command,
            "command_guessed": self.command_why,
            "tests": list(self.tests),
            "reference": list(self.reference),
            "noise": list(self.noise),
            "removed_from_prompt": list(self.removed),
            "leaks": [leak_row(leak) for leak in self.leaks],
        }


def leak_row(leak: Leak) -> dict[str, object]:
    """A leak as a row for people and for JSON."""
    return {"line": leak.line, "fatal": leak.fatal, "message": leak.message}


@dataclass(frozen=True)
class _Opened:
    """A repository to read, where history starts, and how a task names it when ``commit`` is its base."""

    repository: Repository
    start: str
    remote: str
    local: Path | None


def create_task(bench: "Bench", request: Request) -> Created:
    """Make a task's folder from a commit; nothing that exists is replaced.

    Raises:
        NotFoundError: no such repository or commit.
        RefusedError: the commit makes no task, or the id is taken.
        UsageError: the id cannot be one, or no command could be guessed.
    """
    opened = _open(bench, request.repository)
    found = harvest(opened.repository, request.commit, _patterns(bench))
    remote = _remote_of(bench, opened, found.base)
    task_id = request.task_id or default_id(remote, found.commit.id)
    _check_id(bench, task_id)
    guess = _command(request, opened.repository, found)
    draft = draft_prompt(found.commit.message)
    choices = Choices(
        task_id=task_id,
        remote=remote,
        command=guess.command,
        command_why=guess.why or None,
        junit=guess.junit,
        tier=request.tier,
        image=request.image,
        setup=request.setup,
        fingerprint=request.fingerprint,
    )
    folder = bench.project.tasks_dir / task_id
    _put(folder, task_files(found, draft, choices))
    task = load_task(folder)
    split = found.split
    return Created(
        task=task,
        tests=tuple(part.paths[-1] for part in split.tests),
        reference=tuple(part.paths[-1] for part in split.reference),
        noise=tuple(part.paths[-1] for part in split.noise),
        command_why=choices.command_why,
        removed=draft.removed,
        leaks=find_leaks(task),
    )


def scan_commits(
    bench: "Bench", repository: str | None, *, limit: int, since: str | None = None
) -> tuple[Scanned, ...]:
    """Judge up to ``limit`` commits of a repository, newest first; NotFoundError when it has none."""
    opened = _open(bench, repository)
    opened.repository.commit(opened.start)
    return tuple(scan(opened.repository, opened.start, _patterns(bench), limit=limit, since=since))


def scan_row(scanned: Scanned) -> dict[str, object]:
    """A scanned commit as a row for people and for JSON."""
    commit = scanned.commit
    return {
        "commit": commit.id,
        "at": commit.at,
        "suitable": scanned.why_not is None,
        "reason": scanned.why_not,
        "tests": scanned.tests,
        "source": scanned.source,
        "noise": scanned.noise,
        "subject": commit.subject,
    }


def _patterns(bench: "Bench") -> Patterns:
    settings = bench.project.config.harvest
    return Patterns.of(settings.test_patterns, settings.noise_patterns)


def _open(bench: "Bench", repository: str | None) -> _Opened:
    project = bench.project
    wanted = repository or project.config.source.remote
    if wanted is None:
        raise UsageError("opening a repository", "none was named", "give --repo PATH or URL")
    local = local_path(wanted, Path.cwd() if repository else project.root)
    if local is not None:
        return _Opened(Repository.open(local), "HEAD", wanted, local.resolve())
    clean = clean_remote(wanted)
    clone = bench.bases.clones.repository(clean, None, beside=project.root, fetch_from=wanted)
    return _Opened(clone, "refs/bench/HEAD", clean, None)


def _remote_of(bench: "Bench", opened: _Opened, base: str) -> str:
    """How the task names the repository: its published remote when that has the base, else the path.

    The base is put into the clone cache from the local repository, so that this machine never fetches it.
    """
    if opened.local is None:
        return opened.remote
    published = _published_remote(opened.repository, base)
    if published is not None:
        bench.bases.clones.repository(
            published, base, beside=bench.project.root, fetch_from=str(opened.repository.git_dir)
        )
        return published
    root = bench.project.root.resolve()
    near = opened.local.is_relative_to(root.parent) or root.is_relative_to(opened.local)
    return os.path.relpath(opened.local, root) if near else str(opened.local)


def _published_remote(repository: Repository, base: str) -> str | None:
    try:
        url = os.fsdecode(repository.run(["config", "--local", "--get", "remote.origin.url"]).strip())
    except GitError:
        return None
    if not url or local_path(url, Path("/")) is not None:
        return None
    containing = [
        "for-each-ref",
        "--count=1",
        "--format=%(refname)",
        f"--contains={base}",
        "refs/remotes/origin",
    ]
    return clean_remote(url) if repository.run(containing).strip() else None


def _check_id(bench: "Bench", task_id: str) -> None:
    problem = id_problem(task_id)
    if problem:
        raise UsageError(f"naming the task {task_id}", problem, "give another --id")
    tasks = bench.project.tasks_dir
    taken = (
        [entry for entry in sorted(tasks.iterdir()) if folded(entry.name) == folded(task_id)]
        if tasks.is_dir()
        else []
    )
    if taken:
        raise RefusedError(
            f"making the task {task_id}",
            f"{taken[0]} is there already",
            "give another --id; nothing is replaced",
        )


def _command(request: Request, repository: Repository, found: Harvest) -> Guess:
    if request.command is not None:
        return Guess(request.command, "", request.junit)
    paths = {part.new for part in found.split.tests if part.new is not None}
    tests = {
        file.path: file.content
        for file in repository.files(found.commit.id, paths)
        if isinstance(file, TreeFile)
    }
    guess = guess_command(tests)
    if guess is None:
        raise UsageError(
            f"guessing what runs {', '.join(sorted(paths))}",
            "no known kind of test is among them",
            "give --verify-command",
        )
    return guess


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that is not there yet: whole and with a document that reads, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        for name, content in files.items():
            (draft / name).write_bytes(content)
        read_document(draft / TASK_FILE, TaskDocument, "Task")
        draft.chmod(0o755)
        # Renaming onto a folder fails unless it is empty; making it first fails when it is there at all.
        folder.mkdir()
        draft.rename(folder)
    except FileExistsError as error:
        raise RefusedError(f"writing {folder}", "it is there already", "give another --id") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def task_row(task: Task) -> dict[str, object]:
    """A task as a row; ``tests`` counts validated ids and is None where no test report is read."""
    why = stale(task)
    source, found = task.source, task.validation
    return {
        "task_id": task.id,
        "tier": task.tier,
        "state": "validated" if why is None else "not validated" if found is None else "stale",
        "reason": why,
        "tests": len(found.tests) if found is not None and task.verify.results is not None else None,
        "validated_at": None if found is None else found.at,
        "source": source.name if isinstance(source, DirectorySource) else source.remote,
        "base_commit": source.base_commit if isinstance(source, RemoteSource) else None,
    }


def task_document(task: Task) -> dict[str, object]:
    """Everything about one task, for ``bench task show``; the hidden tests and the reference only by path."""
    verify, environment, validation = task.verify, task.environment, task.validation
    source = task.source
    return {
        **task_row(task),
        "file": str(task.folder / TASK_FILE),
        "fix_commit": source.fix_commit,
        "pull_request": source.pull_request,
        "timeout_s": task.timeout_s,
        "prompt": task.prompt,
        "image": environment.image,
        "environment_setup": list(environment.setup),
        "fingerprint_commands": list(environment.fingerprint),
        "verify_command": verify.command,
        "verify_setup": list(verify.setup),
        "verify_timeout_s": verify.timeout_s,
        "network": verify.network,
        "protected_paths": list(verify.protected_paths),
        "results": None
        if verify.results is None
        else {"format": verify.results.format, "path": verify.results.path},
        "hidden_test_files": _paths(verify.tests_patch),
        "reference_files": _paths(task.reference_patch),
        "validated_tests": [] if validation is None else list(validation.tests),
        "leaks": _leaks(task),
    }


def _paths(patch: bytes) -> list[str] | None:
    try:
        return sorted({path for part in read_patch(patch) for path in part.paths})
    except PatchError:
        return None


def _leaks(task: Task) -> list[dict[str, object]] | None:
    try:
        # A commit's tree may have to be fetched first, which is too much for looking at a task.
        base = task.source.path if isinstance(task.source, DirectorySource) else None
        return [leak_row(leak) for leak in find_leaks(task, base)]
    except PatchError:
        return None
