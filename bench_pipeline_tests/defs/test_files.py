"""``file_sensor`` on a real instance with real files: it plans, and measures only within a cap that the config sets."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterInstance

from bench_pipeline_tests.defs.conftest import EVALUATION, small_project
from bench_pipeline_tests.defs.test_following import asked
from bench_pipeline_tests.defs.ticking import Daemon

CELLS, RESULTS, VERDICTS = "evaluation_cells", "task_results", "verdicts"
PLANNED = ("evaluate", {CELLS})


@pytest.fixture(scope="module")
def planned(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project that ``file_sensor`` has planned, and its instance; nothing is measured, for no cap is set."""
    folder = tmp_path_factory.mktemp("planned")
    home = Path(shutil.copytree(empty_home, folder / "dagster"))
    with DagsterInstance.from_config(str(home)) as instance:
        daemon = Daemon(small_project(folder / "project"), instance)
        assert not daemon.look("file_sensor"), "somebody may be writing them"
        requests = daemon.look("file_sensor")
        assert asked(requests) == [("evaluate", {CELLS, RESULTS})]
        daemon.run(requests)
        assert daemon.bench.store.tables.read(CELLS).num_rows == 4
    return folder / "project", home


@pytest.fixture
def daemon(planned: tuple[Path, Path], tmp_path: Path) -> Iterator[Daemon]:
    root, home = planned
    # Copying keeps contents and times, and gives every file another inode.
    root = Path(shutil.copytree(root, tmp_path / "project"))
    with DagsterInstance.from_config(str(shutil.copytree(home, tmp_path / "dagster"))) as instance:
        found = Daemon(root, instance)
        assert [found.look("file_sensor") for _ in range(2)] == [[], []], "the same content is asked for once"
        yield found


def cap(daemon: Daemon, spending: str) -> None:
    config = daemon.root / "config.yaml"
    config.write_text(f"{config.read_text()}spending: {spending}\n")


def twice(daemon: Daemon) -> list[tuple[str | None, set[str]]]:
    """What the second of two looks asks for: the first finds files that move."""
    assert not daemon.look("file_sensor")
    return asked(daemon.look("file_sensor"))


def test_a_changed_evaluation_is_planned_and_measured_by_nobody(daemon: Daemon) -> None:
    (daemon.root / "evaluations/models.yaml").write_text(EVALUATION.replace(", template-bot", ""))
    assert not daemon.look("file_sensor")
    daemon.run(daemon.look("file_sensor"))
    assert not daemon.look("file_sensor")
    assert daemon.bench.store.tables.read(CELLS).num_rows == 2
    assert daemon.instance.get_materialized_partitions(dg.AssetKey(VERDICTS)) == set()


@pytest.mark.parametrize("spending", ["{max_cells: 3}", "{max_cost_usd: 0.5, assume_cost_usd: 0.1}"])
def test_with_a_cap_what_is_planned_is_measured(daemon: Daemon, spending: str) -> None:
    cap(daemon, spending)
    assert asked(daemon.look("file_sensor")) == [("evaluate", {VERDICTS})]


def test_what_a_cap_leaves_is_not_asked_for_until_something_changes(daemon: Daemon) -> None:
    cap(daemon, "{max_cells: 3}")
    daemon.run(daemon.look("file_sensor"))
    outcomes = daemon.bench.store.tables.read(VERDICTS)["outcome_class"].to_pylist()
    assert sorted(outcomes) == ["not_attempted", "verdict", "verdict", "verdict"]
    assert not daemon.look("file_sensor")


def test_touched_files_and_copies_of_them_ask_for_nothing_and_new_content_does(daemon: Daemon) -> None:
    path = daemon.root / "evaluations/models.yaml"
    os.utime(path, (1_900_000_000, 1_900_000_000))
    assert twice(daemon) == []
    path.rename(path.with_name("away"))
    shutil.copyfile(path.with_name("away"), path)
    path.with_name("away").unlink()
    assert twice(daemon) == []
    path.write_text(f"{EVALUATION}# changed\n")
    assert twice(daemon) == [PLANNED]


def test_settings_that_decide_a_plan_are_planned_anew_and_others_are_not(daemon: Daemon) -> None:
    config = daemon.root / "config.yaml"
    text = config.read_text()
    config.write_text(f"{text}schedules: {{nightly: {{enabled: true}}}}\n")
    assert not daemon.look("file_sensor")
    config.write_text(text.replace("cell_timeout: 1m", "cell_timeout: 2m"))
    requests = daemon.look("file_sensor")
    assert asked(requests) == [PLANNED]
    daemon.run(requests)
    assert not daemon.look("file_sensor")


def test_files_that_somebody_writes_wait_until_two_looks_agree(daemon: Daemon) -> None:
    for number in range(3):
        (daemon.root / "evaluations/models.yaml").write_text(f"{EVALUATION}# {number}\n")
        assert not daemon.look("file_sensor")
    assert asked(daemon.look("file_sensor")) == [PLANNED]


@pytest.mark.parametrize(
    ("path", "tables"),
    [
        ("telemetry/other/1.jsonl", {RESULTS}),
        ("judgements/other/1.jsonl", {RESULTS}),
        ("tasks/new/task.yaml", {CELLS}),
        ("golden/smoke/new.md", {CELLS, RESULTS}),
    ],
)
def test_a_file_that_is_dropped_in_or_taken_away_concerns_what_is_made_of_it(
    daemon: Daemon, path: str, tables: set[str]
) -> None:
    target = daemon.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("{}\n")
    (before,) = twice(daemon)
    assert before == ("evaluate", tables)
    target.unlink()
    assert not daemon.look("file_sensor"), "as it was"


def test_links_and_what_cannot_be_read_hold_up_nothing(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (daemon.root / "evaluations/link.yaml").symlink_to("/etc/hostname")
    (daemon.root / "evaluations/folder").symlink_to(tmp_path / "outside")
    os.mkfifo(daemon.root / "evaluations/pipe.yaml")
    assert twice(daemon) == []
    Path(os.fsdecode(bytes(daemon.root) + b"/evaluations/\xff.yaml")).write_text("x")
    assert twice(daemon) == [PLANNED]


@pytest.mark.parametrize("damage", ["", "[]", '{"evaluations/models.yaml": 5}'])
def test_a_lost_memory_of_files_asks_for_nothing(daemon: Daemon, damage: str) -> None:
    (daemon.root / ".bench/made/files.json").write_text(damage)
    assert twice(daemon) == []
