"""The tree that a task's work starts from: what it is called, how it is written, what its digest is.

What belongs here: from a task's source to a folder. What does not: keeping such folders for reuse
(``execution``) and Git itself (``git``).
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench_pipeline.errors import NotFoundError
from bench_pipeline.tasks.git import CloneCache, Repository, export_tree
from bench_pipeline.tasks.task import DirectorySource, RemoteSource, Task
from bench_pipeline.tasks.trees import Dropped, copy_tree, tree_digest, tree_files

# Names the rules by which a commit becomes a tree; another number makes every kept digest unknown.
_RULES = "tree2"


class Bases:
    """Base trees of a project's tasks.

    Args:
        cache: a folder of this machine for clones and digests.
        project_root: what a remote that is a relative path is relative to.
        default_remote: the project's ``source.remote``, for tasks that name none.
    """

    def __init__(self, cache: Path, project_root: Path, default_remote: str | None = None) -> None:
        self.clones = CloneCache(cache / "clones")
        self._digests = cache / "digests"
        self._root = project_root
        self._default_remote = default_remote

    def key(self, task: Task) -> str:
        """A file-safe name that tasks share when their base trees are the same by construction."""
        if isinstance(task.source, DirectorySource):
            return f"{_RULES}-folder-{tree_digest(task.source.path)}"
        return f"{_RULES}-commit-{task.source.base_commit}"

    def write(self, task: Task, into: Path) -> tuple[Dropped, ...]:
        """Write the base tree into an empty folder, without history; returns what had to be left out.

        Raises:
            NotFoundError: no remote is known, or the commit is not in it.
            GitError: the remote could not be fetched.
        """
        if isinstance(task.source, DirectorySource):
            return copy_tree(task.source.path, into)
        dropped = export_tree(self.repository(task), task.source.base_commit, into)
        pairs = [[item.path, item.why] for item in dropped]
        self._keep(self._digests / f"{self.key(task)}.left-out", json.dumps(pairs))
        return dropped

    def left_out(self, task: Task) -> tuple[Dropped, ...]:
        """What had to be left out of a base tree that was written on this machine, now or earlier."""
        if isinstance(task.source, DirectorySource):
            return tuple(item for item in tree_files(task.source.path) if isinstance(item, Dropped))
        try:
            kept = json.loads((self._digests / f"{self.key(task)}.left-out").read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return ()
        return tuple(Dropped(path, why) for path, why in kept)

    def repository(self, task: Task) -> Repository:
        """The repository that holds a task's base commit, fetched when need be; errors as :meth:`write`."""
        source = task.source
        assert isinstance(source, RemoteSource)
        remote = source.remote or self._default_remote
        if remote is None:
            raise NotFoundError(
                f"finding the repository of the task {task.id}",
                "neither the task nor the project names a remote",
                f"add source.remote to {task.file} or to config.yaml",
            )
        return self.clones.repository(remote, source.base_commit, beside=self._root)

    def digest(self, task: Task, tree: Callable[[], Path]) -> str:
        """The digest of the base tree (``trees.tree_digest``).

        A commit's is kept; only where it is not known yet, ``tree`` is asked for the written base tree.
        """
        if isinstance(task.source, DirectorySource):
            return tree_digest(task.source.path)
        kept = self._digests / self.key(task)
        try:
            found = kept.read_text(encoding="ascii")
        except (FileNotFoundError, UnicodeDecodeError):
            found = ""
        if len(found) != 64:
            found = tree_digest(tree())
            self._keep(kept, found)
        return found

    @staticmethod
    def _keep(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
