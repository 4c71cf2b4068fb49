"""The tables that are written from verdicts, and which evaluations can be read."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench_pipeline.errors import NotFoundError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.reading import (
    evaluation_outcomes,
    repositories,
    write_comparisons,
    write_rankings,
)
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.outcomes import sha

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
SETUPS = {"a": [True, True, True], "b": [True, False, False]}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "evaluations").mkdir()
    for name in ("nightly", "weekly"):
        (tmp_path / "evaluations" / f"{name}.yaml").write_text(
            f"{HEAD}kind: Evaluation\ntools: [{{tool: shell}}]\n"
        )
    (tmp_path / "config.yaml").write_text(f"{HEAD}kind: Project\nranking: {{min_coverage: 0.5}}\n")
    return Bench(tmp_path)


def fill(bench: Bench) -> None:
    keys = [
        {
            "identity": sha(f"{setup}{place}"),
            "run_key": "r",
            "verify_key": "v",
            "evaluation": "nightly",
            "tier": "smoke",
            "attempt": 1,
            "task_id": f"t{place}",
            "setup": setup,
            "setup_digest": f"digest of {setup}",
        }
        for setup in SETUPS
        for place in range(3)
    ]
    results = [passed for passes in SETUPS.values() for passed in passes]
    verdicts = [
        {
            **key,
            "outcome": "passed" if passed else "failed",
            "outcome_class": "verdict",
            "passed": passed,
            "tries": 1,
        }
        for key, passed in zip(keys, results, strict=True)
    ]
    rows = {
        "evaluation_cells": [{**key, "tool": "shell", "reusable": True} for key in keys],
        "verdicts": verdicts,
    }
    for name, content in rows.items():
        bench.store.tables.write(name, table_schema(name).from_rows(content), tier="smoke", attempt=1)


def test_rankings_and_comparisons_are_written_from_what_the_store_has(bench: Bench) -> None:
    fill(bench)
    assert write_rankings(bench).rows == 2
    assert write_comparisons(bench).rows == 1
    rankings = bench.store.tables.read("evaluation_rankings").to_pylist()
    assert [(row["setup"], row["rank"], row["pass_rate"]) for row in rankings] == [
        ("a", 1, 1.0),
        ("b", 2, 1 / 3),
    ]
    assert bench.store.tables.read("paired_comparisons")["difference"].to_pylist() == pytest.approx([2 / 3])


def test_writing_twice_gives_the_same_digest(bench: Bench) -> None:
    fill(bench)
    assert write_rankings(bench).digest == write_rankings(bench).digest
    assert write_comparisons(bench).digest == write_comparisons(bench).digest


def test_an_empty_store_gives_empty_tables(bench: Bench) -> None:
    assert (write_rankings(bench).rows, write_comparisons(bench).rows) == (0, 0)


def test_one_evaluation_is_read_alone_and_an_unplanned_one_is_empty(bench: Bench) -> None:
    fill(bench)
    assert evaluation_outcomes(bench, "nightly")[0].num_rows == 6
    assert [table.num_rows for table in evaluation_outcomes(bench, "weekly")] == [0, 0]
    assert evaluation_outcomes(bench, None)[1].num_rows == 6
    with pytest.raises(NotFoundError, match="nearest: nightly"):
        evaluation_outcomes(bench, "nightli")


def test_an_evaluation_that_was_deleted_is_an_error_and_is_left_out_of_all(bench: Bench) -> None:
    fill(bench)
    (bench.project.root / "evaluations" / "nightly.yaml").unlink()
    with pytest.raises(NotFoundError, match=r"evaluations/nightly\.yaml is not in the project any more"):
        evaluation_outcomes(bench, "nightly")
    said: list[str] = []
    bench.on_notice = said.append
    assert [table.num_rows for table in evaluation_outcomes(bench, None)] == [0, 0]
    (sentence,) = said
    assert sentence.startswith("nightly is left out: evaluations/nightly.yaml is not in the project any more")


def test_tasks_of_the_projects_remote_share_its_repository() -> None:
    source = SimpleNamespace(remote=None)
    stub = SimpleNamespace(
        tasks=SimpleNamespace(tasks=(SimpleNamespace(id="t", source=source),)),
        project=SimpleNamespace(config=SimpleNamespace(source=SimpleNamespace(remote="https://x.example/r"))),
    )
    assert repositories(stub) == {"t": "https://x.example/r"}
