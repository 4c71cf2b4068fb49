"""A damaged store costs what was damaged and nothing more; a store that cannot be used now stops the command."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench_pipeline.errors import NewerSchemaError, StoreError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.running import prepare
from bench_pipeline.pipeline.selection import RunOptions, Selection
from bench_pipeline.store import parquet
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline_tests.e2e.projects import Project, without_clocks

Make = Callable[..., Project]
CELLS = 4


@pytest.fixture(scope="module")
def finished(make: Make) -> Project:
    project = make("alpha", "beta")
    project.acts("one", "fix", "trace")
    assert project.measure("one").outcomes == {"passed": CELLS}
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    """The finished project, to be damaged."""
    shutil.copytree(finished.root, tmp_path / "project")
    return Project(tmp_path / "project")


def parts(project: Project, folder: str) -> list[Path]:
    found = sorted((project.root / ".bench" / folder).glob("*.parquet"))
    assert len(found) == CELLS
    return found


def run_key_of(part: Path) -> bytes:
    key = pq.read_table(part, columns=["run_key"], partitioning=None)["run_key"][0].as_py()
    assert isinstance(key, bytes)
    return key


def part_of(project: Project, folder: str, run_key: bytes) -> Path:
    """The part that holds the row of a run key: parts are in the order in which cells happened to end."""
    (found,) = [part for part in parts(project, folder) if run_key_of(part) == run_key]
    return found


def damage(part: Path, how: str) -> None:
    data = part.read_bytes()
    part.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "foreign": b"PK\x03\x04 no Parquet"}[how])


def planned(project: Project) -> dict[str, int]:
    """What a dry run would do."""
    bench = Bench(project.root, backend="process", read_only=True)
    actions = prepare(bench, RunOptions(Selection(("one",)))).actions["action"].to_pylist()
    return {action: actions.count(action) for action in actions}


def aside(project: Project) -> list[dict[str, object]]:
    """The notes beside the files that were put aside."""
    return [json.loads(path.read_text()) for path in (project.root / ".bench").glob("quarantine/*.json")]


@pytest.mark.parametrize("how", ["empty", "cut", "foreign"])
def test_a_lost_verdict_is_made_again_from_its_candidate(project: Project, how: str) -> None:
    before = project.table("verdicts")
    damage(parts(project, "verdicts")[1], how)
    assert planned(project) == {"reuse": CELLS - 1, "reverify": 1}
    assert aside(project) == []
    done = project.measure("one")
    assert (done.actions, len(project.calls())) == ({"reused": CELLS - 1, "reverified": 1}, CELLS)
    assert without_clocks(project.table("verdicts")) == without_clocks(before)
    (note,) = aside(project)
    assert note["reason"]
    assert planned(project) == {"reuse": CELLS}


def test_without_its_candidate_the_cell_is_run_again_and_no_other(project: Project) -> None:
    verdict = parts(project, "verdicts")[0]
    damage(part_of(project, "candidates", run_key_of(verdict)), "empty")
    damage(verdict, "cut")
    done = project.measure("one")
    assert (done.actions, done.outcomes) == ({"reused": CELLS - 1, "executed": 1}, {"passed": CELLS})
    assert (len(project.calls()), len(aside(project))) == (CELLS + 1, 2)


def test_a_damaged_artifact_is_put_aside_and_its_cell_run_again(project: Project) -> None:
    row = project.table("verdicts")[0]
    overlay = Bench(project.root).store.artifacts.path(dict(row["artifacts"])["overlay"])
    assert overlay is not None
    overlay.write_bytes(overlay.read_bytes()[:-1])
    for part in parts(project, "verdicts"):
        damage(part, "empty")
    users = sum(dict(item["artifacts"])["overlay"] == overlay.stem for item in project.table("verdicts"))
    done = project.measure("one")
    assert (done.actions, done.outcomes) == (
        {"executed": users, "reverified": CELLS - users}, {"passed": CELLS},
    )  # fmt: skip


def test_a_table_that_is_damaged_is_written_again_from_the_store(project: Project) -> None:
    before = project.table("verdicts")
    for path in (project.root / ".bench/tables/verdicts").rglob("*.parquet"):
        damage(path, "cut")
    done = project.measure("one")
    assert done.actions == {"reused": CELLS}
    assert project.table("verdicts") == before


def test_the_command_says_how_many_files_were_put_aside(project: Project) -> None:
    damage(parts(project, "verdicts")[0], "empty")
    damage(parts(project, "verdicts")[1], "cut")
    ended = project.bench("run", "one", "--json")
    assert (ended.status, ended.json["reverified"], ended.json["reused"]) == (0, 2, CELLS - 2)
    assert "2 corrupt files were put aside" in ended.err


def test_a_part_of_a_newer_version_stops_the_command_and_moves_nothing(project: Project) -> None:
    part = parts(project, "verdicts")[0]
    newer = type(VERDICT_PARTS)(VERDICT_PARTS.name, VERDICT_PARTS.version + 1, VERDICT_PARTS.schema)
    table, _ = parquet.decode(part.read_bytes(), VERDICT_PARTS, part.name)
    part.write_bytes(parquet.encode(table, newer))
    before = project.stored()
    with pytest.raises(NewerSchemaError, match="upgrade"):
        project.measure("one")
    assert (project.stored(), aside(project), len(project.calls())) == (before, [], CELLS)


def test_a_part_that_cannot_be_read_now_stops_the_command_and_moves_nothing(project: Project) -> None:
    part = parts(project, "verdicts")[0]
    part.unlink()
    part.symlink_to(part.name)
    with pytest.raises(StoreError, match="nothing was set aside"):
        project.measure("one")
    assert (aside(project), len(project.calls())) == ([], CELLS)


class Disk:
    """Counts what is written to the disk, which is full from the write ``full_at`` on."""

    def __init__(self) -> None:
        self.writes, self.full_at = 0, 0
        self._fsync = os.fsync

    def fsync(self, handle: int) -> None:
        self.writes += 1
        if 0 < self.full_at <= self.writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._fsync(handle)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr("bench_pipeline.store.files.os.fsync", made.fsync)
    return made


def test_a_disk_that_fills_up_at_any_moment_is_a_clear_error_and_nothing_is_half_written(
    project: Project, disk: Disk
) -> None:
    project.acts("more", "wrong", "nothing")
    done = project.measure("more", tasks=["alpha"], concurrency=1)
    expected, writes = without_clocks(done.rows), disk.writes
    assert writes > 20
    # The copies have their tables and artifacts already and write less: the last writes may not come.
    for at in range(1, writes // 2, writes // 10):
        other = Project(project.root.with_name(f"full-{at}"))
        shutil.copytree(project.root, other.root, ignore=shutil.ignore_patterns("verdicts", "candidates"))
        disk.writes, disk.full_at = 0, at
        with pytest.raises(StoreError, match="free some space and run again; nothing was half-written"):
            other.measure("more", tasks=["alpha"], concurrency=1)
        disk.full_at = 0
        assert not list((other.root / ".bench").rglob(".*.tmp"))
        assert Bench(other.root).store.verify().findings == []
        assert without_clocks(other.measure("more", tasks=["alpha"]).rows) == expected


@pytest.mark.services
def test_a_full_disk_stops_the_command_with_one_line(project: Project) -> None:
    """A small file system of its own, really full; bubblewrap mounts it without any rights."""
    project.acts("more", "large 3000000")
    store = project.root / "small"
    store.mkdir()
    project.configure(results="small")
    with project.start(
        "run", "more", within=("bwrap", "--dev-bind", "/", "/", "--size", str(2 << 20), "--tmpfs", str(store))
    ) as process:
        out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (1, "")
    assert "No space left on device" in err
    assert "free some space and run again; nothing was half-written" in err
    assert "Traceback" not in err
