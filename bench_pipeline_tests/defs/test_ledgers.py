"""``ledger_sensor`` on a real instance with real files: what it asks for, what it does not, and what nothing loses."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import fsspec
import pytest
from dagster import DagsterInstance

from bench_pipeline.definitions import build_defs
from bench_pipeline.defs.partitions import LEDGER_AXIS
from bench_pipeline.defs.runs import RUN_KEY
from bench_pipeline.errors import StoreError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.ledger_records import read_record
from bench_pipeline.pipeline.ledger_watch import look
from bench_pipeline_tests.ledgers.writing import line, write_ledger

CONFIG = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"
ROWS = dg.AssetKey("ledger_rows")


class Night:
    """A project with ledgers, its instance, and a daemon that only ticks when told to."""

    def __init__(self, root: Path, instance: DagsterInstance) -> None:
        self.root = root
        self.instance = instance
        self.folder = root / "ledgers"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure("")
        self.may_fail = False

    def configure(self, more: str) -> None:
        """Write the config; the code location is loaded anew."""
        (self.root / "config.yaml").write_text(CONFIG + more)
        self._located = self.bench
        definitions = build_defs({"bench": self._located})
        self._repository = definitions.get_repository_def()
        self._job = definitions.resolve_job_def("read_ledgers")

    @property
    def bench(self) -> Bench:
        return Bench(self.root)

    def evaluate(self) -> list[dg.RunRequest]:
        """One tick as Dagster makes it, up to what it is asked for; partitions are added."""
        context = dg.build_sensor_context(
            self.instance, repository_def=self._repository, resources={"bench": self._located}
        )
        data = self._repository.get_sensor_def("ledger_sensor").evaluate_tick(context)
        for request in data.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        keys = [request.run_key for request in data.run_requests or []]
        assert len(keys) == len(set(keys)), "Dagster does not drop duplicates within a tick"
        return list(data.run_requests or [])

    def run(self, requests: list[dg.RunRequest]) -> int:
        """Run what was asked for, once per run key, as the daemon does; how many runs that were."""
        count = 0
        for request in requests:
            assert request.run_key
            if self.instance.get_runs(dg.RunsFilter(tags={RUN_KEY: request.run_key})):
                continue
            count += 1
            result = self._job.execute_in_process(
                instance=self.instance,
                tags={**request.tags, RUN_KEY: request.run_key},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
            assert result.success or self.may_fail
            failed = [check.check_name for check in result.get_asset_check_evaluations() if not check.passed]
            assert failed in ([], ["read"] if self.may_fail else [])
        return count

    def tick(self) -> int:
        """A tick and its runs; how many these were."""
        return self.run(self.evaluate())

    def settle(self) -> int:
        """Two ticks: a file that did not change between them is whole."""
        return self.tick() + self.tick()

    def write(self, name: str, *lines: str, end: str = "\n") -> Path:
        return write_ledger(self.folder / name, *lines, end=end)

    def summaries(self) -> dict[str, int]:
        """The rows of each ledger, all routes together."""
        rows = self.bench.store.tables.read("ledger_summaries").to_pylist()
        return {row["ledger"]: sum(r["rows"] for r in rows if r["ledger"] == row["ledger"]) for row in rows}

    def partitions(self) -> list[str]:
        return list(self.instance.get_dynamic_partitions(LEDGER_AXIS))


@pytest.fixture
def night(tmp_path: Path, instance: DagsterInstance) -> Night:
    return Night(tmp_path / "project", instance)


def test_a_new_ledger_is_read_once_and_then_nothing_is_asked(night: Night) -> None:
    night.write("north.jsonl", line(), line(route="baseline"), "?")
    assert night.tick() == 0, "it may still be growing"
    assert night.tick() == 1
    assert [night.tick() for _ in range(3)] == [0, 0, 0]
    assert (night.partitions(), night.summaries()) == (["north"], {"north": 2})
    rows = night.bench.store.tables.read("ledger_rows").to_pylist()
    assert [(row["ledger"], row["line"], row["kind"]) for row in rows] == [
        ("north", 1, "FairLocalNpcAgent"),
        ("north", 2, "Baseline"),
    ]
    assert night.instance.get_materialized_partitions(ROWS) == {"north"}


def test_an_old_file_is_whole_when_it_is_first_seen(night: Night) -> None:
    os.utime(night.write("north.jsonl", line()), (1_700_000_000, 1_700_000_000))
    assert night.tick() == 1


def test_a_growing_ledger_waits_until_two_ticks_agree(night: Night) -> None:
    for number in range(1, 5):
        night.write("north.jsonl", *[line()] * number)
        assert night.tick() == 0
    assert (night.tick(), night.summaries()) == (1, {"north": 4})


def test_a_ledger_that_never_rests_is_read_after_the_longest_wait(night: Night) -> None:
    found = {}
    for minute in range(0, 25, 5):
        night.write("north.jsonl", *[line()] * (minute + 1))
        asked = look(night.bench, [], lambda _: "going", now=1_700_000_000 + 60 * minute)
        found[minute] = [request.ledgers for request in asked.requests]
    assert found == {0: [], 5: [], 10: [("north",)], 15: [], 20: []}
    asked = look(night.bench, ["north"], lambda _: "going", now=1_700_000_000 + 60 * 21)
    assert [request.ledgers for request in asked.requests] == [("north",)], "it rests"


def test_a_ledger_whose_reading_fails_for_a_passing_reason_is_asked_for_a_few_times(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("writing a table", "the object store answered 503")

    night.may_fail = True
    night.write("north.jsonl", line())
    night.tick()
    with monkeypatch.context() as patched:
        patched.setattr("bench_pipeline.defs.assets.ledgers.write_ledger_rows", broken)
        assert [night.tick() for _ in range(5)] == [1, 1, 1, 0, 0]
    night.write("north.jsonl", line(), line())
    assert (night.settle(), night.summaries()) == (1, {"north": 2})


def test_an_appended_ledger_is_read_from_where_the_last_run_ended(night: Night) -> None:
    path = night.write("north.jsonl", *[line(steps=number) for number in range(5)], '{"rou', end="")
    night.settle()
    before = read_record(night.bench.store, "north")
    with path.open("a") as stream:
        stream.write('te": "baseline", "passed": true}\n' + line(steps=99) + "\n")
    assert night.settle() == 1
    rows = night.bench.store.tables.read("ledger_rows").to_pylist()
    assert [(row["line"], row["segment"]) for row in rows] == [(at, 1 if at < 6 else 2) for at in range(1, 8)]
    after = read_record(night.bench.store, "north")
    assert before is not None
    assert after is not None
    assert [row["incomplete_tail"] for row in (*before.rows, *after.rows)] == [True, False, False]
    event = night.instance.get_latest_materialization_event(ROWS)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["read_rows"].value == 2


def test_a_row_without_a_line_feed_is_read_anew_when_the_ledger_goes_on(night: Night) -> None:
    path = night.write("north.jsonl", line(), line(), end="")
    night.settle()
    with path.open("a") as stream:
        stream.write("?\n" + line() + "\n")
    night.settle()
    assert night.summaries() == {"north": 2}
    assert night.bench.store.tables.read("ledger_rows")["line"].to_pylist() == [1, 3]


@pytest.mark.parametrize("content", [[line()], [line(steps=1), line(), line()], [line(steps=1)] * 5])
def test_a_truncated_or_rewritten_ledger_is_read_whole_and_old_rows_leave(
    night: Night, content: list[str]
) -> None:
    night.write("north.jsonl", line(), line(), line())
    night.settle()
    night.write("north.jsonl", *content)
    assert night.settle() == 1
    assert night.summaries() == {"north": len(content)}
    assert night.bench.store.tables.read("ledger_rows").num_rows == len(content)


def _touch(path: Path) -> None:
    os.utime(path, (1_900_000_000, 1_900_000_000))


def _copy_again(path: Path) -> None:
    shutil.copyfile(path, path.with_suffix(".copy"))
    path.unlink()
    path.with_suffix(".copy").rename(path)


def _rename(path: Path) -> None:
    path.rename(path.with_name("renamed.jsonl"))


def _move_by_copying(path: Path) -> None:
    shutil.copyfile(path, path.with_name("moved.jsonl"))
    path.unlink()


@pytest.mark.parametrize("act", [_touch, _copy_again, _rename, _move_by_copying])
def test_a_ledger_that_is_touched_copied_again_or_renamed_asks_for_nothing(
    night: Night, act: Callable[[Path], None]
) -> None:
    path = night.write("north.jsonl", line())
    night.settle()
    act(path)
    assert [night.tick() for _ in range(3)] == [0, 0, 0]
    assert night.partitions() == ["north"]


def test_a_renamed_ledger_goes_on_as_the_same_and_its_old_name_is_free(night: Night) -> None:
    path = night.write("north.jsonl", line())
    night.settle()
    _rename(path)
    night.tick()
    night.write("renamed.jsonl", line(), line())
    night.write("north.jsonl", line(), line(), line())
    night.settle()
    assert night.partitions() == ["north", "north-2"]
    assert night.summaries() == {"north": 2, "north-2": 3}


def test_content_that_comes_back_after_a_change_is_asked_for_again(night: Night) -> None:
    for number in (1, 2, 1, 2):
        night.write("north.jsonl", *[line()] * number)
        assert night.settle() == 1
        assert night.summaries() == {"north": number}


def test_hundreds_of_ledgers_are_one_run_and_one_that_comes_in_between_is_not_lost(night: Night) -> None:
    for number in range(200):
        night.write(f"lab-{number:03}.jsonl", line())
    assert night.tick() == 0
    requests = night.evaluate()
    night.write("late.jsonl", line())
    assert night.run(requests) == 1
    assert night.settle() == 1
    assert night.summaries() == {**{f"lab-{number:03}": 1 for number in range(200)}, "late": 1}
    assert len(night.instance.get_materialized_partitions(ROWS)) == 201


def test_a_tick_that_is_cut_off_is_made_up_for_and_asks_nothing_twice(night: Night) -> None:
    night.write("north.jsonl", line())
    night.tick()
    lost = night.evaluate()
    again = night.evaluate()
    assert [request.run_key for request in again] == [request.run_key for request in lost]
    assert night.run(again) == 1
    assert night.run(lost) == 0
    assert night.tick() == 0


def test_a_deleted_instance_gets_its_partitions_back_and_nothing_is_read_twice(
    night: Night, tmp_path: Path
) -> None:
    for name in ("b", "a", "c"):
        night.write(f"{name}.jsonl", line())
    night.settle()
    night.write("c.jsonl", line(), line())
    night.tick()
    assert len(night.evaluate()) == 1
    (tmp_path / "other").mkdir()
    with DagsterInstance.from_config(str(_home(tmp_path / "other"))) as instance:
        later = Night(night.root, instance)
        assert later.tick() == 1, "what was asked for and not read"
        assert later.tick() == 0
        assert (later.partitions(), later.summaries()) == (["a", "b", "c"], {"a": 1, "b": 1, "c": 2})


def _home(folder: Path) -> Path:
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    return folder


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"ledgers": 5}'])
def test_a_lost_state_is_made_anew_from_what_was_read(night: Night, damage: str) -> None:
    night.write("north.jsonl", line())
    night.settle()
    (night.root / ".bench/ledgers/state.json").write_text(damage)
    assert [night.tick() for _ in range(3)] == [0, 0, 0]
    night.write("north.jsonl", line(), line())
    assert night.settle() == 1


def test_a_ledger_that_cannot_be_read_is_left_until_it_changes_and_the_others_are_summed_up(
    night: Night,
) -> None:
    night.may_fail = True
    night.write("good.jsonl", line())
    (night.folder / "bad.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(60))
    assert night.tick() == 0
    assert [night.tick() for _ in range(4)] == [1, 1, 0, 0], "what is no gzip will be none the next time"
    assert night.summaries() == {"good": 1}
    shutil.copyfile(night.folder / "good.jsonl", night.folder / "bad.jsonl.gz")
    assert night.settle() == 1
    assert night.summaries() == {"good": 1, "bad": 1}


def test_a_changed_kind_of_a_route_reads_every_ledger_anew(night: Night) -> None:
    night.write("north.jsonl", line(route="house"))
    night.settle()
    night.configure("ledgers: {routes: {house: Baseline}}\n")
    assert night.tick() == 1
    assert night.bench.store.tables.read("ledger_summaries")["kind"].to_pylist() == ["Baseline"]


def test_names_that_are_no_keys_become_keys_and_links_and_unfinished_copies_are_no_ledgers(
    night: Night, tmp_path: Path
) -> None:
    outside = write_ledger(tmp_path / "outside.jsonl", line())
    (night.folder / "link.jsonl").symlink_to(outside)
    for name in (
        "a b|c,d...[e].jsonl",
        "a-b-c-d-e.jsonl.gz",
        "ü.jsonl",
        ".hidden.jsonl",
        "x.jsonl.part",
        "x.txt",
    ):
        night.write(name, line(task_id=name))
    night.settle()
    assert night.partitions() == ["a-b-c-d-e", "a-b-c-d-e-2", "ledger"]


@pytest.fixture(params=["memory://lab/ledgers", "file"])
def remote(request: pytest.FixtureRequest, night: Night, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    url = request.param if "://" in request.param else f"file://{tmp_path}/far"
    night.configure(f"ledgers: {{folder: '{url}'}}\n")
    fs, base = fsspec.core.url_to_fs(url)
    fs.makedirs(base, exist_ok=True)
    yield fs, base
    fs.rm(base, recursive=True)


def test_a_folder_given_as_a_url_is_watched_alike(night: Night, remote: tuple[Any, str]) -> None:
    fs, base = remote
    fs.pipe_file(f"{base}/north.jsonl", f"{line()}\n".encode())
    assert (night.settle(), night.settle(), night.summaries()) == (1, 0, {"north": 1})
    fs.pipe_file(f"{base}/north.jsonl", f"{line()}\n{line()}\n".encode())
    assert (night.settle(), night.settle(), night.summaries()) == (1, 0, {"north": 2})
    content = fs.cat_file(f"{base}/north.jsonl")
    fs.rm_file(f"{base}/north.jsonl")
    fs.pipe_file(f"{base}/renamed.jsonl", content)
    assert (night.settle(), night.partitions()) == (0, ["north"])
