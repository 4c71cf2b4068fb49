"""Golden cells are attested as they run: an agent that keeps to its task is clean, one that peeks is not."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.attestation import create_key
from bench_pipeline.journal import JournalReader, is_included
from bench_pipeline.pipeline.attesting import attested
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import Project

CANARY = "obsidian-petrel-5512"
GOLDEN = f"""---
completion_signals:
  - "file_contains: answer.txt :: forty-two herons"
  - "test_passes: sh check.sh --strict answer.txt"
expected_test_outcomes:
  "sh check.sh --strict answer.txt": true
owned_files: [answer.txt]
workspace: question
canary: {CANARY}
---
Write the answer into answer.txt.
"""
# Tells what it does in lines of JSON, as `bench-json` tools do.
SCRIBE = r"""#!/bin/sh
cat > /dev/null
say() { printf '{"activity": "%s", "path": "%s", "text": "%s"}\n' "$1" "$2" "$3"; }
test "$1" = silent && say() { :; }
printf 'forty-two herons\n' > answer.txt
say read question.txt 'How many herons?'
say write answer.txt 'forty-two herons'
case $1 in
honest) ;;
peek) say read "$(pwd)/../golden/question.md" 'file_contains: answer.txt :: forty-two herons\n  - x' ;;
quote) say result '' 'somewhere it says obsidian-petrel-5512' ;;
key) say message '' "the key is $AGENT_KEY" ;;
silent) ;;
hang) sleep 60 ;;
esac
printf '{"state": "completed", "turns": 1, "tokens": {"input": 10, "output": 5}}\n'
"""
TOOL = {
    "tool": "scribe",
    "files": ["scribe"],
    "invoke": {"command": ["/bin/sh", "{files}/scribe/act.sh"], "stdin": "prompt"},
    "usage": {"format": "bench-json"},
    "credentials": {"env": ["AGENT_KEY"]},
    "options": {"act": {"free": True, "default": "honest", "args": ["{value}"]}},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("BENCH_AUDIT_KEY_FILE", str(tmp_path / "audit.key"))
    monkeypatch.setenv("AGENT_KEY", "agent-key-0123456789")
    project = Project.new(tmp_path / "project")
    project.write("golden/standard/question.md", GOLDEN)
    project.write("golden/standard/question/check.sh", 'test "$(cat answer.txt)" = "forty-two herons"\n')
    project.write("golden/standard/question/question.txt", "How many herons?\n")
    project.write("scribe/act.sh", SCRIBE)
    project.document("tools/scribe.yaml", "Tool", TOOL)
    yield project
    shutil.rmtree(project.root)


def run(project: Project, *acts: str, **options: Any) -> list[dict[str, Any]]:
    """The verdicts of the golden task, one an act."""
    tools = [{"tool": "scribe", "options": {"act": list(acts)}}]
    project.document("evaluations/mine.yaml", "Evaluation", {"attempts": 1, "tools": tools})
    rows = project.measure("mine", tasks=["question"], **options).rows
    by_act = {row["setup"].rpartition("act=")[2] if "act=" in row["setup"] else "honest": row for row in rows}
    return [by_act[act] for act in acts]


def evidence(project: Project, row: dict[str, Any]) -> dict[str, str]:
    """What the store keeps of a cell's last try, by name; the table leaves out what has times in it."""
    (*_, last) = Bench(project.root).store.verdicts.history(row["identity"]).to_pylist()
    return dict(last["artifacts"])


def artifact(project: Project, row: dict[str, Any], name: str) -> bytes:
    return Bench(project.root).store.artifacts.get(evidence(project, row)[name])


def says(project: Project, *rows: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Verdict and problem of each cell's attestation, as scoring gets them."""
    bench = Bench(project.root)
    table = bench.store.tables.read("verdicts")
    found = attested(bench, table)
    return [(found[row["identity"]].verdict, found[row["identity"]].problem) for row in rows]


def test_cells_of_golden_tasks_are_sealed_by_themselves(project: Project) -> None:
    create_key()
    rows = run(project, "honest", "peek", "quote", "silent")
    assert [row["outcome"] for row in rows] == ["passed"] * 4
    assert says(project, *rows) == [("CLEAN", None), ("DIRTY", None), ("DIRTY", None), ("INCONCLUSIVE", None)]


def test_without_a_key_or_where_it_is_off_nothing_is_sealed(project: Project) -> None:
    rows = run(project, "honest")
    assert says(project, *rows) == [(None, None)]
    create_key()
    project.configure(attestation="off")
    rows = run(project, "honest", fresh=True)
    assert not (project.root / ".bench/attestations").exists()


def test_every_executed_cell_keeps_its_journal_and_activity(project: Project) -> None:
    project.task("alpha")
    project.validate("alpha")
    project.document("evaluations/other.yaml", "Evaluation", {"attempts": 1, "tools": [{"tool": "scribe"}]})
    for row in (*run(project, "honest"), *project.measure("other", tasks=["alpha"]).rows):
        reader = JournalReader(project_stream(project, row))
        rows = list(reader)
        assert reader.complete
        assert [each.type for each in rows] == ["open", "start", "read", "write", "exit", "close"]
        opened = rows[0].payload
        assert opened["network"] == "host"
        assert str(project.root) in opened["scope"]["denied"]  # type: ignore[index]
        assert rows[-2].payload["exit_code"] == 0
        assert json.loads(artifact(project, row, "activity")) == {
            "schema": 1, "files_read": ["question.txt"], "files_written": ["answer.txt"], "commands": 0,
        }  # fmt: skip


def project_stream(project: Project, row: dict[str, Any]) -> Any:
    import io

    return io.BytesIO(artifact(project, row, "journal"))


def test_a_tool_whose_format_shows_nothing_is_inconclusive_and_tells_no_activity(project: Project) -> None:
    create_key()
    blocks = {"tool": "shell", "options": {"command": ["printf 'forty-two herons' > answer.txt"]}}
    project.document("evaluations/mine.yaml", "Evaluation", {"attempts": 1, "tools": [blocks]})
    (row,) = project.measure("mine", tasks=["question"]).rows
    assert json.loads(artifact(project, row, "activity")) == {
        "schema": 1, "files_read": None, "files_written": None, "commands": None,
    }  # fmt: skip
    assert says(project, row) == [("INCONCLUSIVE", None)]


def test_credentials_are_in_no_journal(project: Project) -> None:
    (row,) = run(project, "key")
    journal = artifact(project, row, "journal")
    assert b"[redacted:AGENT_KEY]" in journal
    assert b"agent-key" not in journal
    assert JournalReader(project_stream(project, row)).problems == []
    assert list(JournalReader(project_stream(project, row)))


def test_a_timeout_is_a_measured_failure_and_attested(project: Project) -> None:
    create_key()
    project.configure(defaults={"cell_timeout": "3s", "max_attempts": 3})
    (row,) = run(project, "hang")
    assert row["outcome"] == "timeout"
    assert says(project, row) == [("CLEAN", None)]


def test_measuring_again_seals_again_and_the_newest_counts(project: Project) -> None:
    create_key()
    run(project, "honest")
    rows = run(project, "honest", fresh=True)
    assert len(list((project.root / ".bench/attestations").iterdir())) == 2
    assert says(project, *rows) == [("CLEAN", None)]


def test_a_check_against_other_signals_seals_again_from_the_stored_journal(project: Project) -> None:
    create_key()
    (before,) = run(project, "honest")
    project.write(
        "golden/standard/question.md", GOLDEN.replace("How many", "x").replace("--strict", "--exact")
    )
    (after,) = run(project, "honest")
    assert after["identity"] != before["identity"]
    assert evidence(project, after)["journal"] == evidence(project, before)["journal"]
    assert len(list((project.root / ".bench/attestations").iterdir())) == 2
    assert says(project, after) == [("CLEAN", None)]


def test_an_attestation_counts_for_its_own_task_cell_and_usage_alone(project: Project) -> None:
    create_key()
    (row,) = run(project, "honest")
    bench = Bench(project.root)
    table = bench.store.tables.read("verdicts")
    at = table.schema.get_field_index("tokens_input")
    changed = table.set_column(at, table.schema.field(at), [[11] * table.num_rows])
    assert attested(bench, changed)[row["identity"]].problem == "it attests another run of the cell"
    project.write("golden/standard/question.md", GOLDEN + "More.\n")
    assert says(project, row) == [(None, "its task has changed since")]


def test_damage_to_any_of_it_is_a_problem_of_the_cell(project: Project) -> None:
    create_key()
    rows = run(project, "honest", "peek")
    store = project.root / ".bench"
    (store / "lineage/head.json").write_bytes(b"{}\n")
    assert {verdict for verdict, _ in says(project, *rows)} == {None}
    assert all("spine" in str(problem) for _, problem in says(project, *rows))
    shutil.rmtree(store / "lineage")
    assert all(problem is not None for _, problem in says(project, *rows))
    shutil.rmtree(store / "attestations")
    assert all("do not mirror" in str(problem) for _, problem in says(project, *rows))
    shutil.rmtree(store / "audit")
    assert says(project, *rows) == [(None, None)] * 2


def test_a_verdict_does_not_verify_without_the_key(project: Project) -> None:
    path, _ = create_key()
    rows = run(project, "honest")
    path.unlink()
    ((verdict, problem),) = says(project, *rows)
    assert verdict is None
    assert "no audit key" in str(problem)


def test_a_task_that_cannot_be_sealed_is_said_once_and_measured(project: Project) -> None:
    create_key()
    text = GOLDEN.replace("Write the answer", f"Mind {CANARY}. Write the answer")
    project.write("golden/standard/question.md", text)
    tools = [{"tool": "scribe", "options": {"act": ["honest", "quote"]}}]
    project.document("evaluations/mine.yaml", "Evaluation", {"attempts": 1, "tools": tools})
    done = project.measure("mine", tasks=["question"])
    assert {row["outcome"] for row in done.rows if row["task_id"] == "question"} == {"passed"}
    notices = [text for text in done.notices if "not attested" in text]
    assert len(notices) == 1
    assert CANARY not in notices[0]


def test_the_command_seals_scans_verifies_and_measures(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run(project, "honest", "peek", "silent")
    honest, peek, silent = (row["identity"] for row in rows)
    assert [project.ask("clean-run", "scan", cell, "--json").status for cell in (honest, peek, silent)] == [
        0,
        4,
        3,
    ]
    ended = project.ask("clean-run", "seal", honest)
    assert ended.status == 1
    assert "init-key" in ended.err
    made = project.ask("clean-run", "init-key", "--json")
    public = json.loads(made.out)["public_key"]
    assert project.ask("clean-run", "init-key").status == 1
    sealed = [project.ask("clean-run", "seal", cell[:12], "--json") for cell in (honest, peek, silent)]
    assert [each.status for each in sealed] == [0, 4, 3]
    names = [json.loads(each.out)["attestation"] for each in sealed]
    for name, status, verdict in zip(names, (0, 4, 3), ("CLEAN", "DIRTY", "INCONCLUSIVE"), strict=True):
        checked = project.ask("clean-run", "verify", name, "--json")
        document = json.loads(checked.out)
        assert (checked.status, document["verdict"], document["verified"]) == (status, verdict, True)
        assert [step["state"] for step in document["steps"]] == ["ok"] * 13
    assert {finding["kind"] for finding in json.loads(sealed[1].out)["findings"]} == {
        "contraband",
        "out_of_scope_path",
    }
    for finding in json.loads(project.ask("clean-run", "verify", names[1], "--json").out)["findings"]:
        head = json.loads((project.root / f".bench/attestations/{names[1]}.json").read_text())["attestation"][
            "journal"
        ]
        leaf, proof = bytes.fromhex(finding["row_hash"]), [bytes.fromhex(node) for node in finding["proof"]]
        assert is_included(leaf, finding["row"], head["rows"], proof, bytes.fromhex(head["root"]))
    monkeypatch.setenv("BENCH_AUDIT_KEY_FILE", str(project.root / "none"))
    assert project.ask("clean-run", "verify", names[0], "--json").status == 1
    assert project.ask("clean-run", "verify", names[1], "--public-key", public).status == 4
    assert not (project.root / "none").exists()
    power = json.loads(project.ask("clean-run", "power", honest, "--json").out)
    assert power["share"] == 1.0
    assert power["null_corpus"]["findings"] == 0


def test_an_extra_reference_is_part_of_what_is_sealed(project: Project, tmp_path: Path) -> None:
    create_key()
    (row,) = run(project, "honest")
    reference = tmp_path / "reference.txt"
    reference.write_text("the one true answer counts herons by the eastern weir at dawn")
    sealed = project.ask("clean-run", "seal", row["identity"], "--reference", str(reference), "--json")
    name = json.loads(sealed.out)["attestation"]
    steps = json.loads(project.ask("clean-run", "verify", name, "--json").out)["steps"]
    assert [step["reason"] for step in steps if step["name"] == "commitment"] == [
        "extra reference texts are not at hand"
    ]
    checked = project.ask("clean-run", "verify", name, "--reference", str(reference), "--json")
    assert {step["state"] for step in json.loads(checked.out)["steps"]} == {"ok"}
    reference.write_text("a page of nothing")
    assert project.ask("clean-run", "seal", row["identity"], "--reference", str(reference)).status == 1


def test_what_is_no_cell_or_no_attestation_is_one_clear_error(project: Project) -> None:
    create_key()
    for words in (("seal", "zz"), ("scan", "a" * 64), ("power", "123")):
        ended = project.ask("clean-run", *words)
        assert ended.status == 1
        assert ended.err.count("\n") == 1
    ended = project.ask("clean-run", "verify", "a" * 64, "--json")
    assert (ended.status, json.loads(ended.out)["problem"]) == (1, "path: there is no such attestation")


@pytest.mark.services
def test_under_isolation_the_scope_is_what_the_sandbox_shows(project: Project) -> None:
    create_key()
    rows = run(project, "honest", "peek", backend="bubblewrap")
    assert says(project, *rows) == [("CLEAN", None), ("DIRTY", None)]
    opened = next(iter(JournalReader(project_stream(project, rows[0])))).payload
    assert opened["network"] == "none"
    assert opened["scope"]["roots"] == ["/workspace"]  # type: ignore[index]
