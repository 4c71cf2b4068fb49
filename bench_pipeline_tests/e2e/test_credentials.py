"""A credential that an agent prints, writes and names files after is in no file of the project afterwards."""

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import AGENT, Ended, Project

Make = Callable[..., Project]

NAME = "E2E_MODEL_KEY"
KEY = 'sk-e2e/"quoted"+and=&\\escaped-0123456789-ABCDEFGH'
# Without what a file name cannot hold.
TOKEN = "tok-e2e-plain-9876543210-abcdefgh"
LEAK = r"""
import base64, json, os, sys
from pathlib import Path
from urllib.parse import quote
key, token = os.environ["E2E_MODEL_KEY"], os.environ["E2E_TOKEN"]
forms = []
for secret in (key, token):
    forms += [secret, quote(secret, safe=""), json.dumps({"key": secret}), json.dumps(json.dumps({"key": secret}))]
    forms += [base64.b64encode(("x" * n + secret + "tail").encode()).decode() for n in range(3)]
    forms += [secret.encode().hex()]
text = "\n".join(forms)
print(text)
print(text, file=sys.stderr)
Path("sum.sh").write_text("echo $(($1 + $2))\n")
Path("notes").write_text(text)
Path(token).write_text("a file named by a credential")
Path("deep").mkdir(exist_ok=True)
(Path("deep") / f"{token}.txt").write_text("another")
if not os.path.lexists("link"):
    os.symlink(token, "link")
(Path(os.environ["HOME"]) / "session.json").write_text(text)
handover = os.environ.get("BERBENCH_HANDOVER")
if handover:
    (Path(handover) / f"{token}.md").write_text(text)
state = sys.argv[1]
print(json.dumps({"state": state, "error": key, "final_text": text, "tokens": {"input": 1, "cache_read": 0,
                  "cache_write": 0, "output": 1}}))
"""


def secret_forms() -> list[bytes]:
    """What may stand nowhere: each form, and the part of its base64 that no neighbours decide."""
    forms = []
    for secret in (KEY, TOKEN):
        escaped = json.dumps(secret)[1:-1]
        forms += [secret, escaped, json.dumps(escaped)[1:-1], quote(secret, safe=""), secret.encode().hex()]
        forms += [base64.b64encode(b"x" * n + secret.encode()).decode()[4:-4] for n in range(3)]
    return [form.encode() for form in forms]


def contents(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder by name, and what stands inside Parquet files, which may be compressed."""
    for path in root.rglob("*"):
        yield str(path), str(path.relative_to(root)).encode()
        if path.is_file():
            yield str(path), path.read_bytes()
            if path.suffix == ".parquet":
                rows = pq.read_table(path, partitioning=None).to_pylist()
                yield str(path), "\n".join(str(value) for row in rows for value in flat(row)).encode()


def flat(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = [*value.items()]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item)
    else:
        yield value


def leaks(root: Path) -> set[str]:
    wanted = secret_forms()
    return {name for name, data in contents(root) if any(form in data for form in wanted)}


@pytest.fixture(scope="module")
def leaked(make: Make) -> tuple[Project, Ended]:
    project = make()
    tool = {
        **AGENT,
        "invoke": {"command": ["python3", "{files}/agent/leak.py"], "stdin": "none"},
        "usage": {"format": "bench-json"},
        "credentials": {"env": [NAME, "E2E_TOKEN"]},
        "options": {"act": {"free": True, "args": ["{value}"]}},
    }
    project.document("tools/agent.yaml", "Tool", tool)
    project.write("agent/leak.py", LEAK)
    steps = [
        {"name": name, "tool": "agent", "model": "small", "options": {"act": "completed"}}
        for name in ("first", "second")
    ]
    project.document("tools/pair.yaml", "Workflow", {"type": "workflow", "steps": steps})
    agents = {"tool": "agent", "model": "small", "options": {"act": ["completed", "error"]}}
    project.document("evaluations/one.yaml", "Evaluation", {"tools": [agents, {"tool": "pair"}]})
    return project, project.bench("run", "one", "--json", env={NAME: KEY, "E2E_TOKEN": TOKEN})


def test_the_agent_had_its_credentials_and_the_failed_cell_makes_the_run_incomplete(
    leaked: tuple[Project, Ended],
) -> None:
    _, ended = leaked
    assert (ended.status, ended.json["outcomes"]) == (3, {"passed": 2, "adapter_error": 1}), ended.err


def test_no_credential_is_in_any_file_in_any_form(leaked: tuple[Project, Ended]) -> None:
    project, ended = leaked
    assert leaks(project.root) == set()
    assert not any(form in (ended.out + ended.err).encode() for form in secret_forms())


def test_what_was_redacted_says_so_and_the_rest_is_kept(leaked: tuple[Project, Ended]) -> None:
    project, _ = leaked
    store = Bench(project.root).store
    rows = [row for row in project.table("verdicts") if row["passed"] and row["setup"].startswith("agent")]
    (row,) = rows
    artifacts = dict(row["artifacts"])
    assert store.artifacts.get(artifacts["tool.stdout"]).count(b"[redacted:E2E_MODEL_KEY]") >= 7
    overlay = Overlay.decode(store.artifacts.get(artifacts["overlay"]))
    assert [entry.path for entry in overlay.entries] == ["link", "notes", "sum.sh"]
    names = ["deep/[redacted:E2E_TOKEN].txt", "[redacted:E2E_TOKEN]"]
    assert [item.path for item in overlay.dropped] == names
    patch = store.artifacts.get(artifacts["patch"])
    assert b"[redacted:E2E_TOKEN]" in patch
    assert b"+echo $(($1 + $2))" in patch


def test_nothing_of_the_cells_is_left_in_the_folders_that_they_worked_in(
    leaked: tuple[Project, Ended],
) -> None:
    assert list((leaked[0].root / ".bench/workspaces").iterdir()) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """The test of the tests: each form, planted, is found."""
    script = tmp_path / "leak.py"
    script.write_text(LEAK)
    env = {NAME: KEY, "E2E_TOKEN": TOKEN, "HOME": str(tmp_path)}
    done = subprocess.run(
        ["python3", str(script), "completed"], cwd=tmp_path, env=env, capture_output=True, check=True
    )
    assert all(form in done.stdout for form in secret_forms())
    assert len(leaks(tmp_path)) >= 4
