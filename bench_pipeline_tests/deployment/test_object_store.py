"""A store behind an S3 API: a real server on loopback, through s3fs as in production."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from bench_pipeline.errors import StoreError
from bench_pipeline.store.files import Files, open_files
from bench_pipeline_tests.deployment.conftest import EVALUATION, NewProject, tables_of
from bench_pipeline_tests.e2e.projects import wait_for

BUCKET = "bench"


@pytest.fixture(autouse=True)
def bucket(object_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """An empty bucket, with an environment that leads there."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_store)
    s3fs.S3FileSystem.clear_instance_cache()
    remote = s3fs.S3FileSystem(use_listings_cache=False)
    remote.mkdir(BUCKET)
    yield remote
    remote.rm(BUCKET, recursive=True)


@pytest.fixture
def files() -> Files:
    return open_files(f"s3://{BUCKET}/store")


def test_a_file_is_put_once_and_a_second_writer_learns_it_came_late(files: Files) -> None:
    assert files.create("locks/one", b"first")
    assert not files.create("locks/one", b"second")
    assert files.read("locks/one") == b"first"


def test_a_put_whose_answer_was_lost_is_its_own(files: Files) -> None:
    assert files.create("locks/one", b"mine")
    assert files.create("locks/one", b"mine")


def test_what_is_written_is_listed_read_moved_and_deleted(files: Files, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    files.write("a/small", b"1")
    files.adopt("a/large", tmp_path / "large")
    assert [(info.path, info.size) for info in files.list("a")] == [("a/large", 1_000_000), ("a/small", 1)]
    files.move("a/small", "b/moved")
    files.delete("a/large")
    files.delete("a/large")
    assert ([info.path for info in files.list("")], files.info("a/small")) == (["b/moved"], None)
    with pytest.raises(FileNotFoundError):
        files.read("a/small")


def test_a_bucket_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(StoreError, match="writing a"):
        open_files("s3://no-such-bucket/store").write("a", b"1")


def test_a_server_that_is_away_stops_the_command_and_sets_nothing_aside(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a", b"1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(StoreError, match="nothing was set aside"):
        open_files(f"s3://{BUCKET}/store").read("a")


def test_the_same_evaluation_gives_the_same_tables_and_a_second_run_runs_nothing(
    tmp_path: Path,
    new_project: NewProject,
    plain_tables: dict[str, list[str]],
    bucket: s3fs.S3FileSystem,
) -> None:
    project = new_project(tmp_path / "project", results=f"s3://{BUCKET}/results")
    first = project.bench("run", EVALUATION, "--json")
    assert (first.status, first.json["executed"]) == (0, 4), first.err
    assert tables_of(project) == plain_tables
    again = project.measure(EVALUATION)
    assert (again.actions["reused"], again.actions.total(), len(project.calls())) == (4, 4, 4)
    verified = project.bench("store", "verify", "--json")
    assert (verified.status, verified.json["whole"]) == (0, True)
    assert not (project.root / ".bench" / "verdicts").exists(), "what was measured is in the bucket"
    assert not [path for path in bucket.find(BUCKET) if b"a-secret" in bucket.cat_file(path)]


def test_a_killed_run_loses_no_finished_cell(tmp_path: Path, new_project: NewProject) -> None:
    project = new_project(
        tmp_path / "project",
        results=f"s3://{BUCKET}/killed",
        defaults={"concurrency": 1, "cell_timeout": "60s"},
    )
    project.acts(EVALUATION, "fix", "wait")
    (project.root / "gate").touch()
    with project.start("run", EVALUATION) as process:
        wait_for(lambda: any(call.startswith("wait") for call in project.calls()))
        process.kill()
        process.communicate()
    finished = [call for call in project.calls() if call.startswith("fix")]
    plan = project.ask("run", EVALUATION, "--dry-run", "--json").json
    assert (plan["reuse"], plan["run"]) == (len(finished), 4 - len(finished))
    assert finished
