"""``bench run`` as a person uses it: what it prints, how it ends, and what it refuses."""

import json
from collections.abc import Callable

import pytest

from bench_pipeline.execution.sandbox import choose
from bench_pipeline_tests.e2e.projects import ENDING, STOPPING, Project, interrupt, wait_for, without_caches

Make = Callable[..., Project]

RUN_KEYS = {
    "evaluation", "cells", "executed", "reused", "reverified", "not_attempted", "outcomes", "cost_usd",
    "cost_known", "cost_unknown",
}  # fmt: skip
DRY_RUN_KEYS = {
    "evaluation", "plan_digest", "cells", "reuse", "reverify", "run", "exhausted", "not_reusable", "setups",
}  # fmt: skip
SETUP_KEYS = {
    "setup", "cells", "reuse", "reverify", "run", "exhausted", "not_reusable", "reasons", "cost_low",
    "cost_median", "cost_high", "cost_unknown",
}  # fmt: skip


@pytest.fixture(scope="module")
def project(make: Make) -> Project:
    made = make("alpha", "beta", "delta")
    made.evaluation("one", {"model": ["small", "large"]}, attempts=2)
    return made


def test_a_dry_run_writes_nothing_and_calls_no_agent(project: Project) -> None:
    before = without_caches(project.root)
    ended = project.ask("run", "one", "--dry-run", "--json")
    assert ended.status == 0, ended.err
    document = ended.json
    assert document.keys() >= DRY_RUN_KEYS
    assert all(setup.keys() >= SETUP_KEYS for setup in document["setups"])
    assert (document["cells"], document["run"], document["reuse"]) == (12, 12, 0)
    assert [setup["setup"] for setup in document["setups"]] == ["agent/small/-", "agent/large/-"]
    assert [setup["cost_median"] for setup in document["setups"]] == [None, None]
    assert [setup["cost_unknown"] for setup in document["setups"]] == [6, 6]
    assert (without_caches(project.root), project.calls()) == (before, [])


def test_a_sandbox_that_is_not_there_is_one_error_and_not_one_a_task(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_docker", lambda: ("", "docker has no engine"))
    ended = project.ask("run", "one", "--dry-run", "--sandbox", "docker")
    assert (ended.status, ended.err.count("docker has no engine")) == (1, 1)
    assert ended.err.startswith("bench: opening a sandbox")


def test_a_run_narrowed_to_a_tier_and_an_attempt_runs_nothing_else(project: Project) -> None:
    narrowed = project.bench("run", "one", "--tier", "standard", "--attempt", "2", "--json")
    assert narrowed.status == 0, narrowed.err
    assert narrowed.json["cells"] == narrowed.json["executed"] == 2
    assert project.calls() == ["fix|delta"] * 2
    rows = project.table("verdicts")
    measured = {(row["tier"], row["attempt"]) for row in rows if row["outcome"] != "not_attempted"}
    assert (len(rows), measured) == (12, {("standard", 2)})


def test_a_capped_run_ends_with_3_and_a_whole_one_with_0(project: Project) -> None:
    capped = project.bench("run", "one", "--max-cells", "3", "--json")
    assert capped.status == 3, capped.err
    document = capped.json
    assert document.keys() == RUN_KEYS
    assert (document["executed"], document["reused"], document["not_attempted"]) == (3, 2, 7)
    whole = project.bench("run", "one", "--json")
    assert (whole.status, whole.json.keys()) == (0, RUN_KEYS)
    document = whole.json
    assert (document["executed"], document["reused"], document["outcomes"]) == (7, 5, {"passed": 12})
    assert document["cost_known"] + document["cost_unknown"] == 7
    assert document["cost_usd"] == pytest.approx(document["cost_known"])


def test_a_finished_evaluation_is_reused_ranked_and_explained(project: Project) -> None:
    again = project.bench("run", "one")
    fields = dict(word.split("=", 1) for word in again.out.split())
    assert (again.status, fields["reused"], fields["executed"], fields["outcome.passed"]) == (
        0,
        "12",
        "0",
        "12",
    )
    assert "no isolation" not in again.err
    ranking = project.ask("rank", "one", "--json")
    assert ranking.status == 0
    assert {(row["setup"], row["passed"], row["total"]) for row in ranking.json} == {
        ("agent/small/-", 6, 6), ("agent/large/-", 6, 6),
    }  # fmt: skip
    rows = project.ask("table", "verdicts", "--json").json
    pair = [row["identity"] for row in rows if (row["task_id"], row["attempt"]) == ("alpha", 1)]
    found = project.ask("cell", "explain", *(identity[:16] for identity in pair), "--json")
    document = found.json
    assert (document.keys(), document["same"]) == ({"same", "components"}, False)
    assert all(item.keys() == {"name", "stage", "a", "b", "equal"} for item in document["components"])
    assert [item["name"] for item in document["components"] if not item["equal"]] == ["setup.model_id"]


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("oen",), 1, "did you mean one?"),
        (("one", "--task", "alhpa"), 1, "did you mean alpha?"),
        (("one", "--tier", "smoek"), 1, "did you mean smoke?"),
        (("one", "--tier", "stretch"), 5, "no cell matches"),
        (("one", "--attempt", "3"), 5, "no cell matches"),
        (("one", "--plan", "0" * 64), 1, "look at it again with --dry-run"),
        (("one", "--max-cost", "2", "--fresh"), 1, "no cost is known for agent/large/-"),
        (("one", "--max-cells", "-1"), 2, "--max-cells"),
    ],
)
def test_what_cannot_be_done_is_said_with_the_remedy(
    project: Project, words: tuple[str, ...], status: int, says: str
) -> None:
    before = without_caches(project.root)
    ended = project.ask("run", *words, "--json")
    assert (ended.status, ended.out) == (status, "")
    assert says in ended.err
    assert without_caches(project.root) == before


def test_all_problems_of_an_evaluation_are_told_at_once(make: Make) -> None:
    project = make()
    project.evaluation("good")
    project.write(
        "evaluations/bad.yaml",
        "apiVersion: bench.ber.run/v1alpha1\nkind: Evaluation\nattempts: many\ntools:\n"
        "  - {tool: agent, model: smal}\n  - {tool: agnet, model: small}\n  - {tool: agent, modle: small}\n",
    )
    ended = project.ask("run", "bad")
    assert (ended.status, ended.out) == (1, "")
    for line in ("bad.yaml:3", "bad.yaml:7"):
        assert line in ended.err
    assert "Traceback" not in ended.err
    project.write(
        "evaluations/bad.yaml",
        "apiVersion: bench.ber.run/v1alpha1\nkind: Evaluation\ntools:\n"
        "  - {tool: agent, model: smal}\n  - {tool: agnet, model: small}\n",
    )
    ended = project.ask("run", "bad")
    assert ended.status == 1
    assert "bad.yaml:4" in ended.err
    assert "bad.yaml:5" in ended.err
    assert project.ask("run", "good", "--dry-run").status == 0


@pytest.fixture
def gated(make: Make) -> Project:
    """Three cells whose agent works until the file ``gate`` goes away."""
    project = make("alpha", "beta", "gamma")
    project.acts("one", "wait")
    project.write("gate", "")
    return project


def test_ctrl_c_lets_the_running_cells_finish_and_saves_them(gated: Project) -> None:
    with gated.start("run", "one", "--concurrency", "1", "--json") as process:
        wait_for(lambda: len(gated.calls()) == 1)
        interrupt(process, STOPPING)
        (gated.root / "gate").unlink()
        out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert (document["executed"], document["outcomes"]) == (1, {"passed": 1, "not_attempted": 2})
    assert len(gated.calls()) == 1
    resumed = gated.bench("run", "one", "--json")
    assert (resumed.status, resumed.json["reused"], resumed.json["executed"]) == (0, 1, 2)


def test_ctrl_c_twice_ends_the_running_cells_and_saves_what_is_done(gated: Project) -> None:
    gated.acts("one", "fix", "wait")
    with gated.start("run", "one", "--concurrency", "1", "--json") as process:
        wait_for(lambda: "wait|alpha" in gated.calls())
        interrupt(process, STOPPING, ENDING)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert (document["executed"], document["outcomes"]) == (1, {"passed": 1, "not_attempted": 5})
    assert {row["tries"] for row in gated.table("verdicts")} == {0, 1}
    deeds = [deed for deed in gated.table("run_cells") if deed["reason"] == "interrupted"]
    assert len(deeds) == 1
