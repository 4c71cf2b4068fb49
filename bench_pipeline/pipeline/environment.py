"""Facts about where cells run: the toolchain's fingerprint, tool versions, and what setup commands change.

Each is measured in the sandbox that the cells will use and becomes a part of their keys. Facts are asked once
per process; the effects of setup commands are kept on disk by their inputs, because measuring one can take
minutes.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import BenchError
from bench_pipeline.execution.sandbox.base import SEARCH_PATH, TOOL_FILES
from bench_pipeline.identity import digest

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.registry import ToolDefinition
    from bench_pipeline.tasks import Task

# Interpreters and build tools whose version changes what a command does, and which print it with --version.
_NAMES = """
bash bun cargo clang cmake composer deno dotnet erl g++ gcc ghc go gradle java javac julia lua make mvn node npm npx
ocaml perl php pip pip3 pnpm prove pytest python python3 Rscript ruby rustc scala sqlite3 swift tclsh tox uv yarn zig
"""
INTERPRETERS = frozenset(_NAMES.split())

_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
# Probing a version or a fingerprint is a look, not work.
_PROBE_WALL_S = 60.0
_PROBE_OUTPUT = 256 * 1024
# What a shell, and our supervisor, end with when there is no such program.
_NOT_FOUND = 127
# Own words, since `command -v` also finds what only the shell knows.
_FIND_PROGRAM = """
case $1 in /*) test -f "$1" && test -x "$1"; exit ;; esac
IFS=:
for folder in $PATH; do test -f "$folder/$1" && test -x "$folder/$1" && exit 0; done
exit 1
"""


def named_interpreters(commands: Iterable[str]) -> tuple[str, ...]:
    """The interpreters that the commands name, sorted."""
    words = {word for command in commands for word in _WORD.findall(command)}
    return tuple(sorted(words.intersection(INTERPRETERS)))


@dataclass(frozen=True)
class Effect:
    """What setup commands leave in a tree: its manifest digest, or why it cannot be known."""

    digest: str | None = None
    unknown: str | None = None


class Environment:
    """The measured facts of one workbench's sandbox."""

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench
        self._probes: dict[tuple[str, ...], tuple[int | None, str]] = {}
        self._interpreters: dict[str, str] = {}
        self._programs: dict[tuple[str, str, Path | None], bool] = {}

    @cached_property
    def os_release(self) -> str:
        """The distribution inside the sandbox."""
        return self._probe(
            ("/bin/sh", "-c", "cat /usr/lib/os-release /etc/os-release 2>/dev/null || uname -sr")
        )[1]

    def learn(self, commands: Iterable[str]) -> None:
        """Ask for every interpreter that the commands name in one go, so that planning starts one sandbox."""
        names = [name for name in named_interpreters(commands) if name not in self._interpreters]
        if not names:
            return
        script = "".join(
            f"printf '%s ' {name}; if command -v {name} >/dev/null 2>&1; "
            f"then {name} --version 2>&1 </dev/null | head -n 1; else echo absent; fi\n"
            for name in names
        )
        lines = self._probe(("/bin/sh", "-c", script))[1].splitlines()
        found = dict(line.split(" ", 1) for line in lines if " " in line)
        self._interpreters.update({name: found.get(name, "unknown").strip() for name in names})

    def interpreter_versions(self, commands: Iterable[str]) -> dict[str, str]:
        """The first line of ``--version`` of every interpreter that the commands name; absent ones say so."""
        listed = list(commands)
        self.learn(listed)
        return {name: self._interpreters[name] for name in named_interpreters(listed)}

    def document(self, task: "Task", limits: Mapping[str, object]) -> dict[str, object]:
        """The environment of a task's cells as a JSON-able document, from which its digest is made."""
        commands = [
            *task.environment.setup,
            *task.verify.setup,
            task.verify.command,
            *(task.signals.tests if task.signals is not None else ()),
            *task.environment.fingerprint,
        ]
        return {
            "sandbox": self._bench.sandbox.policy(),
            "image": task.environment.image,
            "os_release": self.os_release,
            "interpreters": self.interpreter_versions(commands),
            "fingerprint": [self._fingerprint(command) for command in task.environment.fingerprint],
            "limits": dict(limits),
            "agent_network": sorted(self._bench.project.config.agent.allow_hosts),
        }

    def digest(self, task: "Task") -> str:
        """The digest of a task's environment document."""
        return digest(self.document(task, self._bench.limits_document(task)))

    def tool_version(self, definition: "ToolDefinition", wanted: str | None) -> str | None:
        """The version that a setup of this tool runs.

        Without a version command the declared version is taken as it is. Raises BenchError when the command
        gives none, or another than the one that was asked for.
        """
        if definition.version is None:
            if wanted == "latest":
                raise BenchError(
                    f"resolving the version of {definition.name}",
                    "latest was asked for and the tool has no version command",
                    "name a version, or give the tool a version command",
                )
            return wanted
        status, output = self._probe(tuple(definition.version.command))
        if status == _NOT_FOUND:
            sandbox = self._bench.sandbox.name
            raise BenchError(
                f"resolving the version of {definition.name}",
                f"{definition.version.command[0]} is not in {SEARCH_PATH} of the {sandbox} sandbox",
                "install it below /usr/local/bin or /usr/bin",
            )
        pattern = definition.version.pattern
        found = re.search(pattern, output) if pattern else re.search(r"\S.*", output)
        if status != 0 or found is None:
            raise BenchError(
                f"resolving the version of {definition.name}",
                f"{' '.join(definition.version.command)!r} ended with status {status} and no version",
                "install the tool where the sandbox can see it, or name another",
            )
        version = found.group(1) if found.groups() else found.group(0).strip()
        if wanted not in (None, "latest", version):
            raise BenchError(
                f"resolving the version of {definition.name}",
                f"{wanted} was asked for and {version} is installed",
                f"install {wanted}, or ask for {version} or latest",
            )
        return version

    def has_program(self, program: str, path: str, files: Path | None) -> bool:
        """Whether a cell finds an executable file for ``program``: a name, looked for in ``path``, or a path.

        ``{files}`` in a path is where the tool's ``files`` are shown.
        """
        key = (program, path, files)
        if key not in self._programs:
            status = self._run(("/bin/sh", "-c", _FIND_PROGRAM, "sh", program), {"PATH": path}, files)[0]
            self._programs[key] = status == 0
        return self._programs[key]

    def effect(
        self, task: "Task", base_tree: Path, base_digest: str, environment: str, pre: tuple[str, ...]
    ) -> Effect:
        """What ``environment.setup`` and ``pre`` leave in the tree; no commands leave nothing to say."""
        if not task.environment.setup and not pre:
            return Effect()
        if not self._bench.sandbox.isolates:
            return Effect(
                unknown=f"the {self._bench.sandbox.name} sandbox cannot hold setup commands to the tree"
            )
        key = digest(
            {
                "base": base_digest,
                "environment": environment,
                "setup": list(task.environment.setup),
                "pre": list(pre),
            }
        )
        kept = self._bench.project.local_dir / "effects" / f"{key}.json"
        known = _kept_tree(kept)
        if known is not None:
            return Effect(digest=known)
        effect = self._measure_effect(task, base_tree, pre)
        if effect.digest is not None:
            write_json(kept, {"tree": effect.digest})
        return effect

    def _measure_effect(self, task: "Task", base_tree: Path, pre: tuple[str, ...]) -> Effect:
        from bench_pipeline.execution.manifest import Exclusions, take_manifest
        from bench_pipeline.execution.verification import run_setup

        kit = self._bench.kit()
        limits = self._bench.limits(task)
        with self._bench.workspaces.open(base_tree) as workspace:
            for what, commands in (("environment.setup", task.environment.setup), ("pre", pre)):
                problem = run_setup(commands, what, workspace.place, workspace.logs, kit, limits)
                if problem is not None:
                    return Effect(unknown=problem)
            return Effect(digest=take_manifest(workspace.place.tree, Exclusions()).digest())

    def _fingerprint(self, command: str) -> str:
        status, output = self._probe(("/bin/sh", "-c", command))
        return f"{status}: {output.strip()}"

    def _probe(self, argv: tuple[str, ...]) -> tuple[int | None, str]:
        """Exit status and standard output of a command in an empty tree, asked once."""
        if argv not in self._probes:
            self._probes[argv] = self._run(argv)
        return self._probes[argv]

    def _run(
        self, argv: tuple[str, ...], env: Mapping[str, str] | None = None, files: Path | None = None
    ) -> tuple[int | None, str]:
        """As ``_probe``, with variables, and with ``files`` shown, in whose place ``{files}`` is put."""
        from bench_pipeline.execution.sandbox import Command, Mount

        empty = self._bench.base_trees.get("empty", lambda _: None)
        limits = self._bench.limits(None, wall_s=_PROBE_WALL_S, output_bytes=_PROBE_OUTPUT)
        sandbox = self._bench.sandbox
        with self._bench.workspaces.open(empty) as workspace:
            place = workspace.place
            if files is not None:
                place = replace(place, mounts=(*place.mounts, Mount(files, TOOL_FILES)))
                shown = sandbox.view(place).files
                argv = tuple(word.replace("{files}", shown) if shown else word for word in argv)
            end = sandbox.run(
                Command(argv, dict(env or {})),
                place,
                limits,
                stdout=workspace.logs / "stdout",
                stderr=workspace.logs / "stderr",
            )
            return end.exit_code, end.stdout.read_bytes().decode("utf-8", "replace")


def _kept_tree(path: Path) -> str | None:
    """The digest in an effect file; None when it is absent or damaged, so that it is measured again."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    tree = document.get("tree") if isinstance(document, dict) else None
    return tree if isinstance(tree, str) and re.fullmatch(r"[0-9a-f]{64}", tree) else None


def write_json(path: Path, document: object) -> None:
    """Keep a measured fact as a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
