"""What a person has to hear about a machine is said once for a project."""

from pathlib import Path

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.telling import not_told_before


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "config.yaml").write_text("apiVersion: bench.ber.run/v1alpha1\nkind: Project\n")
    (tmp_path / ".bench").mkdir()
    return Bench(tmp_path)


def test_a_sentence_is_new_once_for_a_project(bench: Bench) -> None:
    assert not_told_before(bench, ["b", "a"]) == ["a", "b"]
    assert not_told_before(Bench(bench.project.root), ["a", "c"]) == ["c"]
    assert not_told_before(bench, ["a", "b", "c"]) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, null]", b"\xff", b"["])
def test_a_damaged_note_only_means_that_it_is_told_again(bench: Bench, content: bytes) -> None:
    (bench.project.local_dir / "told.json").write_bytes(content)
    assert not_told_before(bench, ["a"]) == ["a"]
    assert not_told_before(bench, ["a"]) == []


def test_where_no_note_can_be_kept_it_is_told_each_time(bench: Bench) -> None:
    (bench.project.local_dir / "told.json").mkdir()
    assert not_told_before(bench, ["a"]) == ["a"]
    assert not_told_before(bench, ["a"]) == ["a"]
    assert [path.name for path in bench.project.local_dir.iterdir()] == ["told.json"]
