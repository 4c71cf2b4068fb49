"""Tables for people at the widths that terminals have: nothing is broken inside a word, nothing is lost unsaid."""

import re
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.cli.layout import print_rows
from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.e2e.projects import Project
from bench_pipeline_tests.outcomes import tasks

WIDTHS = (60, 80, 120)
WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=70)
VALUES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


def words_of(text: str) -> set[str]:
    return set(re.sub(r"[^\w:./+%=-]", " ", text).split())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    values=st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=4),
    width=st.sampled_from(WIDTHS),
    optional=st.sampled_from([(), ("two",), ("three", "two")]),
)
def test_no_word_is_broken_and_no_line_of_a_table_is_wider_than_the_terminal(
    values: list[tuple[str, str, str]],
    width: int,
    optional: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("one", "two", "three")
    rows = [dict(zip(names, row, strict=True)) for row in values]
    capsys.readouterr()
    print_rows(rows, names, optional=optional)
    text = capsys.readouterr().out
    missing = re.search(r"no room for: ([^(]*)", text)
    gone = {name.strip() for name in missing[1].split(",")} if missing else set()
    assert gone <= set(optional)
    shown = {word for row in rows for name in names if name not in gone for word in row[name].split()}
    assert shown <= words_of(text)
    assert all(len(line) <= width for line in text.splitlines() if line[:1] in "│┃┏└┡")


RESULTS = {
    "predictions/careful-large/-": tasks(*[True] * 12),
    "predictions/quick-small/-": tasks(*[True] * 6, *[False] * 6),
}


def framed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1] in "│┃┏└┡"]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("width", WIDTHS)
def test_a_ranking_fits_the_terminal_and_keeps_rates_with_their_denominators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    facts = {"cost_usd": 0.5, "duration_s": 65.0, "patch_lines": 40, "tokens_input": 12_000}
    assert call("rank", "nightly", "--project", project(tmp_path, RESULTS, **facts)) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= width for line in framed(text))
    assert {"predictions/careful-large/-", "100.0%", "12/12", "6/12", "50.0%"} <= words_of(text)
    assert ("no room for:" in text) == (width == 80)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("width", WIDTHS)
def test_a_dry_run_fits_the_terminal_and_names_what_had_no_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    made = Project.new(tmp_path)
    made.task("alpha")
    made.validate("alpha")
    made.evaluation("one", {"model": ["small", "large"]})
    monkeypatch.setenv("COLUMNS", str(width))
    assert call("--project", str(tmp_path), "run", "one", "--dry-run") == 0
    text = capsys.readouterr().out
    assert all(len(line) <= width for line in framed(text))
    assert {"agent/small/-", "agent/large/-", "setup", "cells", "run", "unknown"} <= words_of(text)
    assert ("no room for:" in text) == (width < 120)
