"""A task as the rest of the program sees it: plain frozen data, and the documents its keys are made of.

What belongs here: the task, its parts, what of it feeds a run key and a verify key. What does not: reading it
(``loading``), its base tree (``bases``) and whether its validation still holds (``validation``).
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench_pipeline.identity import digest_bytes
from bench_pipeline.tasks.documents import TaskDocument, Tier
from bench_pipeline.tasks.patches import read_patch
from bench_pipeline.tasks.paths import path_text
from bench_pipeline.tasks.signals import SignalCheck

# What is protected by default (execution.guard and execution.steering); raised whenever that changes.
GUARD_RULES = 2


@dataclass(frozen=True)
class RemoteSource:
    """A commit of a repository; ``remote`` None means the project's own."""

    remote: str | None
    base_commit: str
    fix_commit: str | None = None
    pull_request: str | None = None


@dataclass(frozen=True)
class DirectorySource:
    """A folder of plain files; ``path`` is absolute, ``name`` as the document has it."""

    path: Path
    name: str
    fix_commit: str | None = None
    pull_request: str | None = None


@dataclass(frozen=True)
class TaskEnvironment:
    """What a tool finds besides the tree."""

    image: str | None = None
    setup: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskResults:
    """A test report: its format (``junit`` or ``tap``) and its path in the tree."""

    format: str
    path: str


@dataclass(frozen=True)
class TaskVerify:
    """How a candidate is checked; ``tests_patch`` holds the hidden tests as bytes."""

    command: str
    tests_patch: bytes
    network: bool = False
    protected_paths: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    timeout_s: float | None = None
    results: TaskResults | None = None


@dataclass(frozen=True)
class TaskValidation:
    """What the last validation found; ``tests`` are the ids that ran and passed with the reference.

    ``reasons`` say what was wrong, when something was.
    """

    at: datetime
    fingerprint: str
    base_failed: bool
    reference_passed: bool
    tests: tuple[str, ...]
    seconds: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One task; ``folder`` holds ``task.yaml`` and the files that it names.

    ``signals`` is set for a golden task: they take the place of hidden tests and of the verify command.
    """

    id: str
    tier: Tier
    folder: Path
    source: RemoteSource | DirectorySource
    timeout_s: float | None
    environment: TaskEnvironment
    prompt: str
    prompt_path: str
    verify: TaskVerify
    reference_patch: bytes
    validation: TaskValidation | None
    signals: SignalCheck | None = None

    @property
    def file(self) -> Path:
        """The task's document; that of a golden task holds its prompt too."""
        return self.folder / ("task.yaml" if self.signals is None else self.prompt_path)


def task_of(
    document: TaskDocument, folder: Path, *, prompt: str, tests_patch: bytes, reference_patch: bytes
) -> Task:
    """A task from its document and the contents of the files that it names."""
    verify, environment, found = document.verify, document.environment, document.validation
    return Task(
        id=folder.name,
        tier=document.tier,
        folder=folder,
        source=_source(document, folder),
        timeout_s=document.timeout,
        environment=TaskEnvironment(environment.image, environment.setup, environment.fingerprint),
        prompt=prompt,
        prompt_path=document.prompt,
        verify=TaskVerify(
            command=verify.command,
            tests_patch=tests_patch,
            network=verify.network,
            protected_paths=verify.protected_paths,
            setup=verify.setup,
            timeout_s=verify.timeout,
            results=None
            if verify.results is None
            else TaskResults(verify.results.format, verify.results.path),
        ),
        reference_patch=reference_patch,
        validation=None if found is None else TaskValidation(**dict(found)),
    )


def _source(document: TaskDocument, folder: Path) -> RemoteSource | DirectorySource:
    source = document.source
    if source.directory is not None:
        return DirectorySource(
            folder / source.directory, source.directory, source.fix_commit, source.pull_request
        )
    assert source.base_commit is not None
    return RemoteSource(source.remote, source.base_commit, source.fix_commit, source.pull_request)


def touched_by_reference(task: Task) -> tuple[str, ...]:
    """The paths that the reference changes, sorted; PatchError when it cannot be read."""
    return _touched(task.reference_patch)


def brought_by_tests(task: Task) -> tuple[str, ...]:
    """The paths that only the hidden tests bring, sorted; PatchError when they cannot be read."""
    return tuple(
        sorted(part.new for part in read_patch(task.verify.tests_patch) if part.old is None and part.new)
    )


def hidden_test_files(task: Task) -> tuple[str, ...]:
    """The paths that the hidden tests write, new or not, sorted; PatchError when they cannot be read."""
    return tuple(sorted({part.new for part in read_patch(task.verify.tests_patch) if part.new}))


def _touched(patch: bytes) -> tuple[str, ...]:
    return tuple(sorted({path for part in read_patch(patch) for path in part.paths}))


def task_components(task: Task, base_tree_digest: str) -> dict[str, object]:
    """What of a task decides the candidate, as a JSON-able document: its part of the run key."""
    return {
        "base_tree": base_tree_digest,
        "prompt": digest_bytes(task.prompt.encode()),
        "setup": list(task.environment.setup),
    }


def verify_components(task: Task) -> dict[str, object]:
    """What of a task decides the verdict on a candidate, as a JSON-able document: its part of the verify key.

    The reference itself is in no key; the paths that it touches are, because runner configuration that it
    leaves alone is protected. The validated test ids are, where a report is read. Of a golden task it is what
    its signals and test commands say. The number of the rules by which candidates are guarded is in both: under
    other rules, stored candidates are judged again.
    """
    if task.signals is not None:
        return {"guard": GUARD_RULES, **task.signals.document()}
    verify = task.verify
    validated = task.validation.tests if verify.results is not None and task.validation is not None else ()
    return {
        "guard": GUARD_RULES,
        "tests": digest_bytes(verify.tests_patch),
        "command": verify.command,
        "setup": list(verify.setup),
        "protected_paths": sorted(verify.protected_paths),
        "network": verify.network,
        "timeout_s": verify.timeout_s,
        "results": None if verify.results is None else [verify.results.format, verify.results.path],
        "validated_tests": sorted(validated),
        "reference_touches": [path_text(path) for path in touched_by_reference(task)],
    }
