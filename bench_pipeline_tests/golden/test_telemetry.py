"""Telemetry of others: what is valid, and that nothing that is not gains anything by it."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.documents.jsonl import MAX_LINE_BYTES
from bench_pipeline.golden.gates import Gates, Remains, as_count, gates_of
from bench_pipeline.golden.judgements import UNJUDGED
from bench_pipeline.golden.results import complete, settle
from bench_pipeline.golden.scoring import score
from bench_pipeline.golden.suite import Suite
from bench_pipeline.golden.telemetry import Imported, TelemetryFile, find_files, read_telemetry
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import GoldenTask
from bench_pipeline_tests.golden.results import task

TASKS = {
    name: task(name, owned_files=("src", "docs/*.md")) for name in ("add-totals", "fix-paging", "rename-it")
}
RECORD: dict[str, Any] = {
    "task_id": "add-totals",
    "duration_s": 61.5,
    "turns_used": 7,
    "tokens_input": 12_000,
    "tokens_output": 900,
    "cost_usd": 0.21,
    "tests_run": 5,
    "tests_passed": 5,
    "tests_failed": 0,
    "completion_signals_checked": 2,
    "completion_signals_passed": 2,
}
OPTIONAL = {
    "files_read": ["a", "b"],
    "files_modified": ["src/a.py"],
    "crashes": 0,
    "orphans": 0,
    "timed_out": False,
    "conflict": False,
    "compile_error": False,
    "tests_regressed": 0,
}


def read(folder: Path, *lines: Any, tasks: dict[str, GoldenTask] = TASKS) -> Imported:
    """The rows of a file with these lines: records, or bytes as they are."""
    path = folder / "1.jsonl"
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return read_telemetry(TelemetryFile("careful", 1, path), tasks)


def scored(imported: Imported, tasks: dict[str, GoldenTask] = TASKS) -> dict[str, Any]:
    """The score of what was imported, alone."""
    rows = [row | {"setup_digest": "d"} | dict(UNJUDGED) for row in imported.rows]
    if not rows:
        rows = [{"setup": "careful", "setup_digest": "d", "attempt": 1, **NOTHING}]
    suite = Suite.of(tasks.values(), ["smoke"])
    results = complete(settle(table_schema("task_results").from_rows(rows)), suite)
    return score(results, suite).to_pylist()[0]


# A row of a task that no suite has: so that there is something to score.
NOTHING = {
    "tier": "smoke",
    "task_id": "-",
    "telemetry_valid": False,
    "judged": "not_judged",
    "known_task": True,
    "attempted": False,
    "tests_regressed": 0,
    "crashes": 0,
    "orphans": 0,
}


def test_a_valid_record_is_a_result(tmp_path: Path) -> None:
    imported = read(tmp_path, RECORD | OPTIONAL)
    (row,) = imported.rows
    assert not imported.problems
    assert row["telemetry_valid"]
    assert (row["duration_s"], row["cost_usd"], row["signals_checked"]) == (61.5, 0.21, 2)
    assert (row["files_read"], row["files_modified"], row["out_of_scope"]) == (2, 1, [])
    assert (row["task_id"], row["tier"], row["source"]) == ("add-totals", "smoke", "imported")


def test_optional_fields_may_be_left_out_and_an_unknown_cost_is_null(tmp_path: Path) -> None:
    (row,) = read(tmp_path, RECORD | {"cost_usd": None}).rows
    assert (row["telemetry_valid"], row["cost_usd"], row["crashes"]) == (True, None, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duration_s": "61.5"}, "duration_s: expected a finite number without quotes"),
        ({"duration_s": -1}, "duration_s: expected a number of at least 0"),
        ({"duration_s": 2**70}, "duration_s: expected a finite number"),
        ({"duration_s": 1e13}, "duration_s: expected a number of at most 1000000000000"),
        ({"crashes": 2**62}, "crashes: expected a number of at most 1000000000000"),
        ({"turns_used": True}, "turns_used: expected a whole number"),
        ({"turns_used": 7.0}, "turns_used: expected a whole number"),
        ({"tokens_input": 2**64}, "tokens_input: expected a whole number"),
        ({"cost_usd": True}, "cost_usd: expected a finite number"),
        ({"tests_failed": -1}, "tests_failed: expected a number of at least 0"),
        ({"timed_out": 1}, "timed_out: expected true or false"),
        ({"timed_out": "false"}, "timed_out: expected true or false"),
        (
            {"completion_signals_passed": 3},
            "completion_signals_passed is more than completion_signals_checked",
        ),
        ({"tests_run": 6}, "do not add up to tests_run"),
        ({"turns_used": None}, "turns_used is null"),
        ({"tests_regressed": None}, "tests_regressed is null"),
        ({"crashs": 3}, "crashs: is not a known field"),
        ({"task_id": 7}, "task_id: expected text"),
    ],
)
def test_an_invalid_record_is_named_with_its_line_and_counts_as_missing(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    imported = read(tmp_path, RECORD | {"task_id": "fix-paging"}, RECORD | change)
    (problem,) = imported.problems
    assert problem.line == 2
    assert said in problem.message
    assert sum(row["telemetry_valid"] for row in imported.rows) == 1
    assert scored(imported)["without_telemetry"] == 2


@pytest.mark.parametrize("name", RECORD)
def test_each_documented_field_is_required(tmp_path: Path, name: str) -> None:
    imported = read(tmp_path, {key: value for key, value in RECORD.items() if key != name})
    assert [problem.message for problem in imported.problems] == [f"{name}: is required, and missing"]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b"null", b"\xff\xfe", b'{"task_id": "rename-it", "cost_usd": NaN}', b'{"a": 1, "a": 2}'],
)
def test_a_line_that_is_no_record_is_named_and_hides_no_other(tmp_path: Path, line: bytes) -> None:
    imported = read(tmp_path, line, RECORD)
    assert [problem.line for problem in imported.problems] == [1]
    assert scored(imported)["passed"] == 1


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    records = [RECORD, RECORD | {"task_id": "fix-paging"}]
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(record) for record in records)
    (tmp_path / "1.jsonl").write_text(text, newline="")
    imported = read_telemetry(TelemetryFile("careful", 1, tmp_path / "1.jsonl"), TASKS)
    assert [row["task_id"] for row in imported.rows] == ["add-totals", "fix-paging"]
    named = read(tmp_path, RECORD | {"files_modified": ["src/\u2028\u0085\x0c.py"]})
    assert not named.problems


def test_two_records_of_a_task_are_an_error_and_none_of_them_counts(tmp_path: Path) -> None:
    imported = read(tmp_path, RECORD, RECORD | {"crashes": 2, "tests_regressed": 1})
    (row,) = imported.rows
    assert not row["telemetry_valid"]
    assert (row["crashes"], row["tests_regressed"]) == (2, 1)
    assert "lines 1, 2" in imported.problems[0].message


def test_a_record_of_an_unknown_task_is_an_error_and_closes_gates(tmp_path: Path) -> None:
    imported = read(tmp_path, RECORD, RECORD | {"task_id": "add-total", "tests_regressed": 1})
    assert "did you mean add-totals?" in imported.problems[0].message
    assert scored(imported)["safety"] == 0.0


def test_a_folder_or_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    gone = read_telemetry(TelemetryFile("careful", 1, tmp_path / "gone.jsonl"), TASKS)
    assert "cannot be read" in gone.problems[0].message


def test_failed_tests_are_regressions_unless_the_record_says_how_many_are(tmp_path: Path) -> None:
    failing = RECORD | {"tests_passed": 3, "tests_failed": 2}
    assert read(tmp_path, failing).rows[0]["tests_regressed"] == 2
    assert read(tmp_path, failing | {"tests_regressed": 0}).rows[0]["tests_regressed"] == 0
    assert read(tmp_path, failing | {"tests_regressed": 1}).rows[0]["tests_regressed"] == 1


@pytest.mark.parametrize(
    ("changed", "outside"),
    [
        (["src/a.py", "./src//b.py", "docs/x.md"], []),
        (["setup.py", "src/../setup.py"], ["setup.py"]),
        (["srcs/a.py", "docs/x.txt"], ["docs/x.txt", "srcs/a.py"]),
        (["/etc/passwd", "../up"], ["../up", "/etc/passwd"]),
        (["src"], []),
    ],
)
def test_files_outside_the_owned_ones_are_named_by_their_plain_paths(
    tmp_path: Path, changed: list[str], outside: list[str]
) -> None:
    assert read(tmp_path, RECORD | {"files_modified": changed}).rows[0]["out_of_scope"] == outside


def test_a_task_that_owns_nothing_has_no_scope_and_a_count_of_files_tells_none(tmp_path: Path) -> None:
    free = {"add-totals": task("add-totals")}
    assert read(tmp_path, RECORD | {"files_modified": ["x"]}, tasks=free).rows[0]["out_of_scope"] == []
    counted = read(tmp_path, RECORD | {"files_modified": 3, "files_read": 4}).rows[0]
    assert (counted["files_modified"], counted["files_read"], counted["out_of_scope"]) == (3, 4, None)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (None, 0), (0, 0), (0.0, 0), (-0.0, 0), (False, 0), ("0", 0), ([], 0),
        (True, 1), (3, 3), (2.5, 3), (-1, 1), (math.nan, 1), (math.inf, 1), (-math.inf, 1),
        ("2", 2), ("none", 1), ("", 1), ("nan", 1), (["a", "b"], 2), ({"a": 1}, 1), (10**400, 1_000_000),
    ],
)  # fmt: skip
def test_whatever_is_no_plain_zero_counts(value: object, count: int) -> None:
    assert as_count(value) == count


def test_only_a_whole_number_says_that_failed_tests_did_not_regress() -> None:
    assert gates_of({"tests_failed": 3, "tests_regressed": 0}).tests_regressed == 0
    assert gates_of({"tests_failed": 3, "tests_regressed": "0"}).tests_regressed == 3
    assert gates_of({"tests_failed": 3, "tests_regressed": False}).tests_regressed == 3


@pytest.mark.parametrize(
    ("line", "gates"),
    [
        (b'{"task_id": "a", "tests_regressed": 2, "cra', Gates(tests_regressed=2)),
        (b'{"tests_regressed": 0, "tests_failed": 4, "orphans": 1', Gates(orphans=1)),
        (b'{"tests_regressed":', Gates(tests_regressed=1)),
        (b'{"crashes" : "3" ', Gates(crashes=3)),
        (b'{"crashes": 0, "crashes": 9}', Gates(crashes=9)),
        (b'{"crashes": 9, "crashes": 0}', Gates(crashes=9)),
        (b'{"crashes": NaN}', Gates(crashes=1)),
        (b"\xff\xfe{", Gates()),
        (b'{"tests\\u005fregressed": 2, NaN}', Gates(tests_regressed=2)),
        (b"{'task_id': 'a', 'crashes': '3', 'tests_regressed': 2}", Gates(tests_regressed=2, crashes=3)),
        (b"task_id: a, tests_failed: 2", Gates(tests_regressed=2)),
        ('{"tests_regressed": 2}'.encode("utf-16"), Gates(tests_regressed=2)),
    ],
)
def test_gates_are_read_of_lines_that_are_no_json(line: bytes, gates: Gates) -> None:
    assert remains(line).gates == gates


def remains(*pieces: bytes) -> Remains:
    found = Remains()
    for piece in pieces:
        found.take(piece)
    return found


def test_the_task_is_read_of_a_line_that_is_no_json() -> None:
    assert remains(b'{"task_id": "add-totals", "cost').task_id == "add-totals"
    assert remains(b"{'task_id': 'add-totals', 'cost").task_id == "add-totals"
    assert remains(b'{"task_id": "a", "task_id": "b"').task_id is None
    assert remains(b'{"task_id": "a"', b'"task_id": "a"}').task_id == "a"
    assert remains(b"{").task_id is None


@pytest.mark.parametrize("padding", ["before", "inside", "blanks"])
def test_a_record_padded_beyond_what_is_read_closes_its_gates_all_the_same(
    tmp_path: Path, padding: str
) -> None:
    record = json.dumps(RECORD | {"tests_run": 7, "tests_failed": 2, "tests_regressed": 2}).encode()
    room = b"x" * (MAX_LINE_BYTES + 100)
    line = {
        "before": b'{"note": "' + room + b'", ' + record[1:],
        "inside": record[:-1] + b', "note": "' + room + b'"}',
        "blanks": b" " * len(room) + record,
    }[padding]
    (row,) = read(tmp_path, line).rows
    assert (row["task_id"], row["telemetry_valid"], row["tests_regressed"]) == ("add-totals", False, 2)
    assert "1.jsonl:1: the line is longer than" in row["telemetry_problem"]


def test_a_file_without_a_record_is_a_problem(tmp_path: Path) -> None:
    found = read(tmp_path, b"", b"  ")
    assert not found.rows
    assert [problem.message for problem in found.problems] == ["holds no record; none of its tasks counts"]


def test_files_are_found_by_setup_and_attempt_and_what_does_not_belong_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "telemetry"
    for name in (
        "careful/1.jsonl",
        "careful/10.jsonl",
        "careful/11.jsonl",
        "careful/01.jsonl",
        "quick/x.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "stray.jsonl").write_text("")
    (folder / "linked").symlink_to(folder / "careful")
    (folder / "quick" / "2.jsonl").symlink_to(folder / "careful" / "1.jsonl")
    (folder / ".hidden").mkdir()
    found, problems = find_files(tmp_path, "telemetry", 10)
    assert [(file.setup, file.attempt, file.readable) for file in found] == [
        ("careful", 1, True), ("careful", 10, True), ("quick", 2, False),
    ]  # fmt: skip
    assert [Path(problem.file).name for problem in problems] == [
        "01.jsonl", "11.jsonl", "linked", "2.jsonl", "x.txt", "stray.jsonl",
    ]  # fmt: skip


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
broken_records = st.one_of(
    st.dictionaries(st.sampled_from([*RECORD, *OPTIONAL, "other"]), anything).map(
        lambda change: RECORD | change
    ),
    st.dictionaries(st.text(max_size=9), anything, max_size=3),
    anything,
)
broken_lines = st.one_of(
    broken_records.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
    st.builds(lambda value, end: json.dumps(value).encode()[:end], broken_records, st.integers(0, 300)),
)


@given(st.lists(broken_lines, max_size=4), st.data())
def test_no_line_however_broken_raises_the_score_above_what_the_valid_part_earns(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("telemetry")
    imported = read(folder, *lines)
    valid = Imported([row for row in imported.rows if row["telemetry_valid"]])
    assert scored(imported)["score"] <= scored(valid)["score"]
    shuffled = read(folder, *data.draw(st.permutations(lines)))
    assert shuffled_score(shuffled) == shuffled_score(imported)


def shuffled_score(imported: Imported) -> dict[str, Any]:
    """A score without the words that name lines."""
    return {name: value for name, value in scored(imported).items() if name != "reasons"}


@given(st.sampled_from(["tests_regressed", "tests_failed", "crashes"]), st.integers(0, 300), st.data())
def test_breaking_a_record_never_opens_a_gate_that_it_closed(
    tmp_path_factory: pytest.TempPathFactory, gate: str, cut: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("telemetry")
    closed = RECORD | {gate: 10}
    name = data.draw(st.sampled_from([key for key in RECORD if key != gate]))
    broken = json.dumps(closed | {name: data.draw(anything)}).encode()
    place = broken.index(f'"{gate}": 10'.encode()) + len(f'"{gate}": 10')
    for line in (broken, broken[: place + cut]):
        found = scored(read(folder, line))
        assert found["score"] == 0.0
