"""Small projects to run: tasks that a shell script can solve, and an agent that does what its option says.

A task's base adds wrongly; the hidden tests run ``sum.sh`` over the lines of ``cases`` and write a TAP report.
Without isolation the agent notes each call in ``calls.log`` of the project, so that a test can count what was
really run.
"""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_pipeline.pipeline.bench import Bench, CellEvent
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.running import prepare, summary
from bench_pipeline.pipeline.selection import RunOptions, Selection

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: {}\n"
CONFIG = {
    "defaults": {
        "max_attempts": 3,
        "concurrency": 2,
        "cell_timeout": "60s",
        "resources": {"cpus": 1, "memory": "1GiB", "pids": 64},
    },
    "sandbox": {"backend": "process", "allow_process": True},
}
TASKS = ("alpha", "beta", "gamma", "delta", "epsilon")
# A task whose cells have little time, and one whose check has.
HASTY, BRIEF = "hasty", "brief"
# One dollar of model-small for every call of the agent; model-large has no price.
PRICING = {"models": {"model-small": {"input": 2.0, "cache_read": 0.2, "cache_write": 2.5, "output": 10.0}}}
AGENT = {
    "tool": "agent",
    "files": ["agent"],
    "invoke": {"command": ["/bin/sh", "{files}/agent/act.sh"], "stdin": "prompt"},
    "usage": {"format": "bench-json"},
    "models": {"small": {"id": "model-small"}, "large": {"id": "model-large"}},
    "options": {
        "act": {"free": True, "default": "fix", "args": ["{value}"]},
        "tone": {
            "default": "calm",
            "values": {"calm": {"env": {"TONE": "calm"}}, "loud": {"env": {"TONE": "loud"}}},
        },
    },
}
ACT = r"""#!/bin/sh
# The agent of the tests: $1 is what it does, the prompt is on its standard input.
prompt=$(cat | head -n 1)
task=${prompt##* }
task=${task%.}
root=${0%%/.bench/*}
test "$root" = "$0" || echo "$1|$task" >> "$root/calls.log"
fix() { printf 'echo $(($1 + $2))\n' > sum.sh; }
tokens='"tokens": {"input": 200000, "cache_read": 1000000, "cache_write": 0, "output": 40000}'
end() { printf '{"state": "%s", "turns": 3, "tool_calls": 2, %s}\n' "$1" "$tokens"; }
what=$1
set -- $1
case $1 in
fix) fix ;;
wrong) printf 'echo 7\n' > sum.sh ;;
nothing) ;;
pretend) echo changed > notes; echo 'ok 1 - adds'; echo 'ok 2 - zero'; echo '1 passed in 0.01s: PASSED' ;;
vanish) fix; : > cases ;;
protected) fix; printf 'exit 0\n' > pinned/rules ;;
rename) fix; mv pinned/rules elsewhere ;;
tests) fix; mkdir -p tests; printf 'echo 1..0; exit 0\n' > tests/check.sh ;;
slow-check) printf 'sleep %s &\nsleep %s\n' "$2" "$2" > sum.sh ;;
hang) fix; sleep "$2" & trap '' TERM; while :; do sleep 1; done ;;
daemon) fix; setsid sleep "$2" > /dev/null 2>&1 < /dev/null & sleep "$2" > /dev/null 2>&1 & ;;
exit) fix; exit "$2" ;;
crash) fix; kill -SEGV $$ ;;
outage) end error; exit 0 ;;
limit) fix; end limit; exit "$2" ;;
garbage) fix; echo 'no report'; exit 0 ;;
free) fix; echo '{"state": "completed"}'; exit 0 ;;
trace) fix; head -c 16 /dev/urandom | od -An -tx1 > trace ;;
flaky) # The first calls for a task fail: as many as the project's file outage says, a line a task.
    failing=$(sed -n "s/^$task //p" "$root/outage")
    if test "$(grep -cxF "$what|$task" "$root/calls.log")" -le "${failing:-0}"; then end error; exit 1; fi
    fix ;;
wait) fix; while test -e "$root/gate"; do sleep 0.05; done ;;
absurd) fix; printf '{"state": "completed", "cost_usd": 1%0400d}\n' 0; exit 0 ;;
report-folder) fix; mkdir report.tap; echo x > report.tap/x ;;
report-later) printf 'mkdir -p report.tap; rm -f report.tap; mkdir -p report.tap; exit 1\n' > sum.sh ;;
large) fix; head -c "$2" /dev/urandom > blob ;;
*) echo "no such act: $1" >&2; exit 64 ;;
esac
end completed
"""
CHECK = """#!/bin/sh
# Every line of cases: a name, two numbers, their sum.
number=0
status=0
while read -r name left right sum; do
    number=$((number + 1))
    if test "$(sh sum.sh "$left" "$right")" = "$sum"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        status=1
    fi
done < cases
echo "1..$number"
exit $status
"""
BASE = {
    "sum.sh": "echo $(($1 - $2))\n",
    "cases": "adds 2 3 5\nzero 4 0 4\n",
    "notes": "sum.sh adds two numbers\n",
    "pinned/rules": "leave me alone\n",
}
REFERENCE = """\
--- a/sum.sh
+++ b/sum.sh
@@ -1 +1 @@
-echo $(($1 - $2))
+echo $(($1 + $2))
"""
# What the first Ctrl-C is answered, and the second.
STOPPING, ENDING = "press Ctrl-C again", "what is done is saved"
# What a clock decides, or points at: everything else has to be equal however often a run was cut off.
CLOCKS = ("measured_at", "duration_s", "verify_s")


@dataclass(frozen=True)
class Ended:
    """What a finished ``bench`` left."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} in a JSON document")


@dataclass(frozen=True)
class Measured:
    """What one run without Dagster came to: its summary, the verdicts, what it did, and what it said."""

    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    deeds: list[dict[str, Any]]
    events: list[CellEvent]
    notices: list[str]

    @property
    def outcomes(self) -> dict[str, int]:
        return dict(self.summary["outcomes"])

    @property
    def actions(self) -> Counter[str]:
        return Counter(str(deed["action"]) for deed in self.deeds)

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.rows
        return row


def added(path: str, content: str) -> str:
    """A patch that adds one file."""
    lines = content.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


class Project:
    """A project's folder with what tests do to it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def new(cls, root: Path) -> "Project":
        """A project with the agent and no task yet."""
        project = cls(root)
        project.document("config.yaml", "Project", CONFIG)
        project.document("tools/agent.yaml", "Tool", AGENT)
        project.document("pricing.yaml", "Pricing", PRICING)
        project.write("agent/act.sh", ACT)
        return project

    def copied_to(self, root: Path) -> "Project":
        """The same documents in another folder, where nothing was measured yet."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns(".bench"))
        return Project(root)

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def document(self, path: str, kind: str, fields: Mapping[str, object]) -> Path:
        """A YAML document whose fields are written as JSON, which YAML includes."""
        body = "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())
        return self.write(path, HEAD.format(kind) + body)

    def configure(self, **fields: object) -> None:
        self.document("config.yaml", "Project", {**CONFIG, **fields})

    def evaluation(self, name: str, *blocks: Mapping[str, object], attempts: int = 1) -> None:
        """Blocks of the agent; ``tool`` and ``model`` are given where a block does not."""
        tools = [{"tool": "agent", "model": "small", **block} for block in blocks or ({},)]
        self.document(f"evaluations/{name}.yaml", "Evaluation", {"attempts": attempts, "tools": tools})

    def acts(self, name: str, *acts: str, attempts: int = 1) -> None:
        """An evaluation of one setup for each thing that the agent can do."""
        self.evaluation(name, {"options": {"act": list(acts)}}, attempts=attempts)

    def task(
        self,
        task_id: str,
        *,
        check: str = CHECK,
        verify: Mapping[str, object] | None = None,
        **fields: object,
    ) -> None:
        """A task that its reference solves; ``fields`` are more of its document, such as ``tier``."""
        folder = f"tasks/{task_id}"
        for path, text in BASE.items():
            self.write(f"{folder}/base/{path}", text)
        self.write(f"{folder}/prompt.md", f"The sum is wrong in {task_id}.\n\nMake it right.\n")
        self.write(f"{folder}/tests.patch", added("tests/check.sh", check))
        self.write(f"{folder}/reference.patch", REFERENCE)
        checking = {
            "command": "sh tests/check.sh > report.tap",
            "results": {"format": "tap", "path": "report.tap"},
            "protected_paths": ["pinned"],
            **(verify or {}),
        }
        given = {"tier": "smoke", "source": {"directory": "base"}, "verify": checking, **fields}
        self.document(f"{folder}/task.yaml", "Task", given)

    def bench(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 240) -> Ended:
        """``bench`` as its own process."""
        with self.start(*words, env=env) as process:
            out, err = process.communicate(timeout=timeout_s)
            return Ended(process.returncode, out, err)

    def ask(self, *words: str) -> Ended:
        """``bench`` in this process, for commands that start no run: a process of its own costs seconds."""
        from bench_pipeline.cli.main import main

        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main(["--project", str(self.root), *words])
            except SystemExit as end:
                status = end.code
        assert isinstance(status, int)
        return Ended(status, out.getvalue(), err.getvalue())

    def start(
        self, *words: str, env: Mapping[str, str] | None = None, within: Sequence[str] = ()
    ) -> "subprocess.Popen[str]":
        """``bench`` started as a process group of its own, by the command ``within`` where one is given."""
        return subprocess.Popen(
            [*within, sys.executable, "-m", "bench_pipeline", "--project", str(self.root), *words],
            env={**clean_environment(self.root), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def validate(self, *ids: str) -> None:
        ended = self.bench("task", "validate", *ids, "--json")
        assert ended.status == 0, ended

    def measure(
        self,
        evaluation: str | None = None,
        *,
        tasks: Sequence[str] = (),
        backend: Any = "process",
        **options: Any,
    ) -> Measured:
        """``bench run`` without Dagster: the same use cases in this process."""
        bench = Bench(self.root, backend=backend)
        return run_in(bench, Selection((evaluation,) if evaluation else (), tuple(tasks)), **options)

    def calls(self) -> list[str]:
        """What the agent was asked to do, one entry a call."""
        log = self.root / "calls.log"
        return log.read_text().splitlines() if log.exists() else []

    def table(self, name: str, **partition: object) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = Bench(self.root).store.tables.read(name, **partition).to_pylist()
        return rows

    def stored(self) -> list[Path]:
        """Every file of the store that holds what was measured."""
        folders = [self.root / ".bench" / name for name in ("verdicts", "candidates", "tables", "artifacts")]
        return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def run_in(bench: Bench, selection: Selection, **options: Any) -> Measured:
    """Run a selection on a workbench, without Dagster, and say what came of it."""
    events: list[CellEvent] = []
    notices: list[str] = []
    bench.on_cell, bench.on_notice = events.append, notices.append
    chosen = RunOptions(selection=selection, **options)
    run_id = str(uuid.uuid4())
    with bench.workspaces:
        request = prepare(bench, chosen)
        write_cells(bench, request.partitions)
        done = write_verdicts(bench, chosen, partitions=request.partitions, run_id=run_id, log=lambda _: None)
    rows = [row for written in done.written.values() for row in written.table.to_pylist()]
    for column, wanted in (("evaluation", selection.evaluations), ("task_id", selection.tasks)):
        rows = [row for row in rows if not wanted or row[column] in wanted]
    deeds = bench.store.tables.read("run_cells", run_id=run_id).to_pylist()
    return Measured(summary(bench, request, run_id), rows, deeds, events, notices)


def wait_for(condition: Callable[[], bool], *, at_most_s: float = 240) -> None:
    """Return as soon as ``condition`` holds."""
    deadline = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.01)


def interrupt(process: "subprocess.Popen[str]", *answers: str) -> None:
    """Press Ctrl-C once for each of these answers, and wait for it before the next."""
    assert process.stderr is not None
    for words in answers:
        process.send_signal(signal.SIGINT)
        wait_for(lambda said=words: said in process.stderr.readline())  # type: ignore[misc]


def clean_environment(root: Path) -> dict[str, str]:
    """The environment of a person who has configured nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "DAGSTER_"))}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(root.parent / "no-config"),
        "XDG_STATE_HOME": str(root.parent / "no-state"),
        "COLUMNS": "200",
    }


def without_caches(root: Path) -> dict[str, bytes]:
    """The store and the documents; what this machine keeps to be quick (trees, effects) is neither."""
    caches = {"trees", "workspaces", "effects", "git", "toolfiles"}
    found = {}
    for folder, below, names in os.walk(root):
        if Path(folder) == root / ".bench":
            below[:] = [name for name in below if name not in caches]
        for path in (Path(folder, name) for name in names):
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def without_clocks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows in an order of their own, without what a clock decided."""
    plain = ({name: value for name, value in row.items() if name not in CLOCKS} for row in rows)
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in plain)
