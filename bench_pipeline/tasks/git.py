"""Running Git so that nothing of a repository, a user or a machine decides what it does.

What belongs here: the hardened runner, opening repositories, the clone cache, writing a commit's tree into a
folder. What does not: patches (``patches``) and which commits make tasks (``harvest``).

System and user configuration, hooks, file-system monitors, attributes, filters and prompts are off, and a
command that reads local objects may use no transport. Trees are read as objects and written by us
(``trees``), so no attribute or filter of a repository applies.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock

from bench_pipeline.errors import BenchError, NotFoundError
from bench_pipeline.tasks.trees import EXECUTABLE, LINK, PLAIN, Dropped, TreeFile, write_tree

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.pager": "cat",
    "core.askPass": "true",
    "core.protectNTFS": "true",
    "core.protectHFS": "true",
    "core.quotePath": "true",
    "core.autocrlf": "false",
    "safe.directory": "*",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "credential.helper": "",
    "diff.external": "",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "protocol.ext.allow": "never",
}
_KEPT_FOR_NETWORK = (
    "HOME", "SSH_AUTH_SOCK", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
    "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
)  # fmt: skip
_TRANSPORTS = "file:git:http:https:ssh"
_SECONDS = 120.0
_FETCH_SECONDS = 3600.0
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
COMMIT_ID = re.compile(r"[0-9a-f]{40}")


class GitError(BenchError):
    """A Git command failed; the text holds Git's own words without credentials."""


def without_credentials(text: str) -> str:
    """``text`` with the user part of every URL in it removed."""
    return _CREDENTIALS.sub("", text)


def run_git(
    arguments: Sequence[str | Path],
    *,
    cwd: Path,
    git_dir: Path | None = None,
    stdin: bytes = b"",
    network: bool = False,
    seconds: float = _SECONDS,
    memory_bytes: int | None = None,
) -> bytes:
    """Run one Git command and return its standard output.

    Args:
        arguments: the words after ``git``; the first names the command.
        cwd: where it runs; without ``git_dir`` only this folder itself may be a repository.
        git_dir: the repository, when it is not ``cwd``.
        stdin: what it reads.
        network: whether a transport may be used.
        seconds: how long it may take.
        memory_bytes: how much address space it may have; None does not limit it.

    Raises:
        GitError: it failed, was not found, or took too long.
    """
    argv = [*_limited(memory_bytes), "git", *(os.fspath(word) for word in arguments)]
    variables = _environment(cwd, git_dir, network=network)
    tried = f"running git {arguments[0]}"
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=variables, input=stdin, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(tried, f"it took longer than {seconds:g} seconds") from error
    except OSError as error:
        raise GitError(tried, error.strerror or str(error), "install Git 2.39 or newer") from error
    if done.returncode != 0:
        said = without_credentials(done.stderr.decode("utf-8", "replace").strip())
        raise GitError(tried, said or f"exit status {done.returncode}")
    return done.stdout


def _limited(memory_bytes: int | None) -> list[str]:
    # A limit set between fork and exec would need Python code there, which is not safe with threads.
    return ["/bin/sh", "-c", f'ulimit -v {memory_bytes >> 10} && exec "$@"', "sh"] if memory_bytes else []


def _environment(cwd: Path, git_dir: Path | None, *, network: bool) -> dict[str, str]:
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CEILING_DIRECTORIES": os.fspath(cwd.resolve().parent),
        "GIT_ALLOW_PROTOCOL": _TRANSPORTS if network else "none",
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for index, (key, value) in enumerate(_SETTINGS.items()):
        variables[f"GIT_CONFIG_KEY_{index}"] = key
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    if network:
        variables |= {name: os.environ[name] for name in _KEPT_FOR_NETWORK if name in os.environ}
    if git_dir is not None:
        variables["GIT_DIR"] = os.fspath(git_dir)
    return variables


@dataclass(frozen=True)
class Repository:
    """Objects of one local Git repository, read only."""

    git_dir: Path

    @classmethod
    def open(cls, path: Path) -> "Repository":
        """The repository whose working tree or bare folder is ``path`` itself.

        Raises:
            NotFoundError: no repository is there.
        """
        remedy = "name the top folder of a Git repository"
        if not path.is_dir():
            raise NotFoundError(f"opening the repository {path}", "no such folder", remedy)
        try:
            found = run_git(["rev-parse", "--absolute-git-dir"], cwd=path)
        except GitError as error:
            raise NotFoundError(f"opening the repository {path}", error.wrong, remedy) from error
        return cls(Path(os.fsdecode(found.rstrip(b"\n"))))

    def run(self, arguments: Sequence[str | Path], *, stdin: bytes = b"") -> bytes:
        """Run a command on this repository's objects; see :func:`run_git`."""
        return run_git(arguments, cwd=self.git_dir, git_dir=self.git_dir, stdin=stdin)

    def commit(self, name: str) -> str:
        """The full id of the commit that ``name`` (an id, branch or tag) means.

        Raises:
            NotFoundError: it names no commit of this repository.
        """
        tried = f"looking up the commit {name}"
        if name.startswith("-"):
            raise NotFoundError(tried, "no commit has such a name")
        try:
            found = self.run(["rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"])
        except GitError as error:
            raise NotFoundError(tried, "the repository has no such commit") from error
        return found.decode().strip()

    def files(self, commit: str, only: Collection[str] | None = None) -> Iterator[TreeFile | Dropped]:
        """The files and links of a commit's tree with their contents; submodules come as Dropped.

        ``only`` names the paths to take; None takes them all.
        """
        listing = self.run(["ls-tree", "-r", "-z", "--full-tree", commit])
        wanted: list[tuple[str, str, str]] = []
        for record in listing.split(b"\0")[:-1]:
            facts, _, raw = record.partition(b"\t")
            mode, _, name = facts.decode().split(" ")
            path = os.fsdecode(raw)
            if only is not None and path not in only:
                continue
            if mode == "160000":
                yield Dropped(path, "a submodule")
            else:
                wanted.append((path, mode if mode in {EXECUTABLE, LINK} else PLAIN, name))
        contents = self.contents(name for _, _, name in wanted)
        for (path, mode, _), content in zip(wanted, contents, strict=True):
            yield TreeFile(path, mode, content)

    def contents(self, names: Iterable[str], kind: str = "blob") -> Iterator[bytes]:
        """The contents of objects of one kind in the order of their ids, one at a time.

        Raises:
            GitError: an object is not there or of another kind.
        """
        with tempfile.TemporaryFile() as requests, tempfile.TemporaryFile() as errors:
            requests.writelines(f"{name}\n".encode() for name in names)
            requests.seek(0)
            process = subprocess.Popen(
                ["git", "cat-file", "--batch", "--buffer"],
                cwd=self.git_dir,
                env=_environment(self.git_dir, self.git_dir, network=False),
                stdin=requests,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            assert process.stdout is not None
            try:
                yield from _batch_contents(process.stdout, kind.encode())
            finally:
                process.stdout.close()
                process.wait()


def _batch_contents(stream: IO[bytes], kind: bytes) -> Iterator[bytes]:
    while header := stream.readline():
        words = header.split()
        if len(words) != 3 or words[1] != kind:
            said = header.decode("utf-8", "replace").strip()
            raise GitError(
                "reading objects of a repository",
                f"one is not there or of another kind: {said}",
                "name a whole clone",
            )
        content = stream.read(int(words[2]))
        stream.read(1)
        yield content


def export_tree(repository: Repository, commit: str, into: Path) -> tuple[Dropped, ...]:
    """Write a commit's files into an empty folder, without any Git history.

    Returns what could not become part of the tree: submodules, links that leave it, caches of interpreters, paths
    that may not be written.
    """
    return write_tree(repository.files(commit), into)


def local_path(remote: str, beside: Path) -> Path | None:
    """The folder that ``remote`` names, relative to ``beside``; None when it is a URL or an ssh address."""
    if "://" in remote or re.match(r"[^/]+:", remote):
        return None
    return beside / Path(remote).expanduser()


class CloneCache:
    """Bare clones of remotes under one folder, shared by processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def repository(
        self, remote: str, commit: str | None, *, beside: Path, fetch_from: str | None = None
    ) -> Repository:
        """A repository that holds ``commit``, fetched when it is not there; without one, the whole history.

        A remote that is a local path (relative ones are relative to ``beside``) is read where it is. Any
        other is fetched from ``fetch_from`` when that is given, and known by ``remote`` all the same.

        Raises:
            GitError: the remote could not be fetched.
            NotFoundError: the local path is no repository, or the commit is nowhere in it.
        """
        local = local_path(remote, beside)
        if local is not None:
            repository = Repository.open(local)
            if commit is not None:
                repository.commit(commit)
            return repository
        source = fetch_from or remote
        if source.startswith("-"):
            raise NotFoundError(f"opening the repository {remote}", "a remote does not start with '-'")
        name = hashlib.sha256(remote.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / f"{name}.lock"):
            clone = Repository(self._folder / f"{name}.git")
            if not (clone.git_dir / "HEAD").exists():
                run_git(["init", "--quiet", "--bare", "--template=", clone.git_dir], cwd=self._folder)
            if commit is None:
                self._fetch_all(clone, source)
            elif not _holds(clone, commit):
                self._fetch_commit(clone, source, commit)
        return clone

    def _fetch_commit(self, clone: Repository, remote: str, commit: str) -> None:
        try:
            self._fetch(
                clone, remote, ["--depth=1", "--no-write-fetch-head"], [f"{commit}:refs/bench/{commit}"]
            )
        except GitError:
            # Not every server gives out a commit by its id; then the branches and tags have to hold it.
            self._fetch_all(clone, remote)
        clone.commit(commit)

    def _fetch_all(self, clone: Repository, remote: str) -> None:
        shallow = ["--unshallow"] if (clone.git_dir / "shallow").exists() else []
        specs = ["+HEAD:refs/bench/HEAD", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
        self._fetch(clone, remote, [*shallow, "--no-write-fetch-head", "--update-head-ok"], specs)

    @staticmethod
    def _fetch(clone: Repository, remote: str, options: Sequence[str], specs: Sequence[str]) -> None:
        run_git(
            ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", *options, "--", remote, *specs],
            cwd=clone.git_dir,
            git_dir=clone.git_dir,
            network=True,
            seconds=_FETCH_SECONDS,
        )


def _holds(clone: Repository, commit: str) -> bool:
    try:
        clone.commit(commit)
    except NotFoundError:
        return False
    return True
