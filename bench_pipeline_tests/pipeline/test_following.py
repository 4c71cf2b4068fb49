"""What is behind, and what is asked for: over a store, without Dagster."""

from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.pipeline.asking import Run
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.following import Request, Situation, follow
from bench_pipeline.pipeline.provenance import behind, made, read_makings
from bench_pipeline.tables import table_schema

JOBS = {"evaluation_rankings": "evaluate", "task_results": "evaluate", "composite_scores": "score"}


class Looks:
    """A store and what became of the runs that were asked for over it."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        (root / "config.yaml").write_text("apiVersion: bench.ber.run/v1alpha1\nkind: Project\n")
        self.bench = Bench(root)
        self.runs: dict[str, Run] = {}
        self.running: set[str] = set()

    def configure(self, settings: str) -> None:
        """Give the project other settings; whoever looks next reads its files anew."""
        config = self.bench.project.root / "config.yaml"
        config.write_text(f"apiVersion: bench.ber.run/v1alpha1\nkind: Project\n{settings}\n")
        self.bench = self.bench.again()

    def put(self, table: str, content: str, **partition: Any) -> None:
        """Give a partition another content: a row that its schema accepts."""
        schema = table_schema(table)
        row = {field.name: _value(field.type, content) for field in schema.schema if not field.nullable}
        self.bench.store.tables.write(table, schema.from_rows([{**row, **partition}]), **partition)

    def look(self) -> list[Request]:
        situation = Situation(JOBS, self.running, set(), lambda key: self.runs.get(key, "absent"), 3)
        requests = follow(self.bench, situation)
        assert not {request.key for request in requests} & self.runs.keys(), "asked for twice"
        return requests

    def make(self, request: Request) -> None:
        """What the run of a request does, as far as the records tell."""
        for table in request.tables:
            keys = list(behind(self.bench, table))
            with made(self.bench, table, keys):
                schema = table_schema(table)
                for key in keys:
                    partition = dict(zip(schema.partitions, key, strict=True))
                    self.bench.store.tables.write(table, schema.empty(), **partition)
        self.runs[request.key] = "failed"

    def settle(self) -> list[str]:
        """The tables that are made until nothing is asked for."""
        tables: list[str] = []
        while requests := self.look():
            for request in requests:
                self.make(request)
                tables += request.tables
            assert len(tables) < 20
        return tables


def _value(kind: object, content: str) -> object:
    return {"string": content, "int64": 1, "bool": False}.get(str(kind), [])


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    found = Looks(tmp_path / "project")
    found.put("verdicts", "a", tier="smoke", attempt=1)
    return found


def test_an_empty_store_asks_for_nothing(tmp_path: Path) -> None:
    assert not Looks(tmp_path / "project").look()


def test_one_request_covers_the_smallest_rectangle_of_what_is_behind(looks: Looks) -> None:
    looks.settle()
    looks.put("verdicts", "b", tier="stretch", attempt=1)
    looks.put("verdicts", "b", tier="standard", attempt=3)
    (request,) = looks.look()
    assert request.tables == ("evaluation_rankings", "task_results")
    assert (request.first, request.last) == (
        {"tier": "standard", "attempt": "1"},
        {"tier": "stretch", "attempt": "3"},
    )


def test_a_table_of_one_file_alone_is_asked_for_without_partitions(looks: Looks) -> None:
    looks.settle()
    looks.put("evaluation_cells", "b", tier="smoke", attempt=1)
    (request,) = looks.look()
    assert (request.tables, request.first) == (("evaluation_rankings",), {})


def test_content_that_comes_back_is_asked_for_again_and_the_same_content_is_not(looks: Looks) -> None:
    for content in ("b", "a", "b", "a"):
        looks.put("verdicts", content, tier="smoke", attempt=1)
        assert looks.settle()
        looks.put("verdicts", content, tier="smoke", attempt=1)
        assert not looks.settle()


def test_a_table_that_somebody_deleted_is_made_anew(looks: Looks) -> None:
    looks.settle()
    (path,) = looks.bench.store.tables.paths("evaluation_rankings")
    Path(path).unlink()
    assert looks.settle() == ["evaluation_rankings"]


def test_a_change_while_a_table_is_made_leaves_it_behind(looks: Looks) -> None:
    with made(looks.bench, "evaluation_rankings"):
        looks.put("verdicts", "b", tier="smoke", attempt=1)
    assert behind(looks.bench, "evaluation_rankings")


def test_a_making_that_fails_is_none(looks: Looks) -> None:
    with pytest.raises(OSError, match="disk"), made(looks.bench, "evaluation_rankings"):
        raise OSError("the disk went away")
    assert behind(looks.bench, "evaluation_rankings")


def test_what_follows_waits_for_another_job_and_for_nothing_once_that_has_given_up(looks: Looks) -> None:
    looks.put("task_results", "a", tier="smoke", attempt=1)
    (request,) = looks.look()
    assert request.job == "evaluate"
    looks.runs[request.key] = "going"
    assert not looks.look()
    looks.runs[request.key] = "given_up"
    assert [each.tables for each in looks.look()] == [("composite_scores",)]
    looks.running = {"task_results"}
    assert not [each for each in looks.look() if each.job == "score"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", '[{"key": 5}]', '{"a": 1}', "null"])
def test_a_damaged_record_makes_a_table_anew(looks: Looks, damage: str) -> None:
    looks.settle()
    (looks.bench.project.root / ".bench/made/evaluation_rankings.json").write_text(damage)
    assert read_makings(looks.bench.store, "evaluation_rankings") == {}
    assert looks.settle() == ["evaluation_rankings"]


def test_what_is_stored_of_attempts_that_the_project_no_longer_has_is_left_alone(looks: Looks) -> None:
    looks.settle()
    looks.put("verdicts", "a", tier="smoke", attempt=7)
    (request,) = looks.look()
    assert (request.tables, request.first) == (("evaluation_rankings",), {})


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x" * 100, b"PAR1" + b"\0" * 40 + b"\xff\xff\0\0PAR1"])
def test_a_damaged_table_is_a_content_of_its_own_and_is_neither_moved_nor_read_for_ever(
    looks: Looks, damage: bytes
) -> None:
    looks.settle()
    (path,) = looks.bench.store.tables.paths("verdicts")
    Path(path).write_bytes(damage)
    assert looks.settle() == ["evaluation_rankings", "task_results"]
    assert Path(path).read_bytes() == damage


def test_a_changed_price_or_setting_leaves_behind_what_is_made_by_it(looks: Looks) -> None:
    looks.put("evaluation_cells", "a", tier="smoke", attempt=1)
    looks.put("verdicts", "a", tier="smoke", attempt=1)
    looks.settle()
    prices = looks.bench.project.root / "pricing.yaml"
    for settings, expected in (
        ("ranking: {min_coverage: 0.5}", ["evaluation_rankings"]),
        ("attestation: require", ["composite_scores", "evaluation_rankings"]),
        ("schedules: {nightly: {enabled: true}}\nattestation: require", []),
    ):
        looks.configure(settings)
        assert sorted(looks.settle()) == expected
    prices.write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Pricing\nmodels: {mine: {input: 1.0, output: 2.0}}\n"
    )
    looks.configure("attestation: require")
    assert sorted(looks.settle()) == ["evaluation_rankings", "task_results"]
    looks.configure("attestation: require")
    assert looks.settle() == []
