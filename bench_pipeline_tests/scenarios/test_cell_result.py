"""Cell results: safe names, nothing overwritten, two readers that agree."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.scenarios import CellResult, file_name, read_cell, read_cells, write_cell
from bench_pipeline.scenarios.cell_result import _read_plainly, slug
from bench_pipeline_tests.scenarios.making import cell

REQUIRED = {"scenario": "s", "passed": True, "steps": 1, "seconds": 2, "missing_evidence": []}


def test_the_name_of_a_file_is_made_of_two_slugs_and_later_attempts() -> None:
    assert file_name("rust verification smoke", "a1_standard") == "rust-verification-smoke.a1-standard.json"
    assert file_name("s", "c", 2) == "s.c.a2.json"
    assert file_name("--A  b--", "C.d") == "a-b.c-d.json"


@pytest.mark.parametrize("name", ["", "...", "日本", "//"])
def test_an_empty_slug_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match="no letter or digit"):
        file_name(name, "c")
    with pytest.raises(RefusedError, match="no letter or digit"):
        file_name("s", name)


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(RefusedError, match="longer than"):
        file_name("x" * 300, "c")


@given(st.text(max_size=40))
def test_a_slug_is_safe_and_stays_itself(name: str) -> None:
    made = slug(name)
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert "--" not in made
    assert slug(made) == made


def test_an_earlier_result_is_replaced_by_force_only(tmp_path: Path) -> None:
    path = write_cell(tmp_path, cell(cell="a", steps=1))
    with pytest.raises(RefusedError, match="--force"):
        write_cell(tmp_path, cell(cell="a", steps=2))
    assert read_cell(path).steps == 1
    write_cell(tmp_path, cell(cell="a", steps=2), force=True)
    assert read_cell(path).steps == 2
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_two_names_with_one_slug_never_overwrite_each_other(tmp_path: Path) -> None:
    path = write_cell(tmp_path, cell(cell="A b"))
    for force in (False, True):
        with pytest.raises(RefusedError, match="it holds the result of"):
            write_cell(tmp_path, cell(cell="a_b"), force=force)
    assert read_cell(path).cell == "A b"


def test_an_older_file_needs_five_fields(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(REQUIRED))
    assert read_cell(path) == cell("s", steps=1, seconds=2)
    for name in REQUIRED:
        path.write_text(json.dumps({key: value for key, value in REQUIRED.items() if key != name}))
        with pytest.raises(DocumentError, match=name):
            read_cell(path)


def test_every_file_of_a_folder_that_is_no_result_is_named(tmp_path: Path) -> None:
    write_cell(tmp_path, cell(cell="a"))
    (tmp_path / "notes.txt").write_text("not read")
    (tmp_path / "cut.json").write_text('{"scenario": "s"')
    (tmp_path / "twice.json").write_text('{"scenario": "s", "scenario": "t"}')
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(DocumentError) as raised:
        read_cells(tmp_path)
    assert {Path(problem.file).name for problem in raised.value.problems} == {
        "cut.json",
        "twice.json",
        "folder.json",
    }


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        read_cells(tmp_path / "absent")


COUNT = st.none() | st.integers(0, 2**63 - 1)
TEXT = st.none() | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)
CELLS = st.builds(
    CellResult,
    scenario=st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=9),
    attempt=st.integers(1, 9),
    passed=st.booleans(),
    steps=st.integers(0, 99),
    seconds=st.integers(0, 99),
    missing_evidence=st.lists(TEXT.filter(lambda text: text is not None), max_size=3).map(tuple),
    cell=TEXT,
    mode=TEXT,
    harness=TEXT,
    model=TEXT,
    replay=TEXT,
    winning_artifact=TEXT,
    scenario_sha256=TEXT,
    max_steps=COUNT,
    max_seconds=COUNT,
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    over_steps=st.none() | st.booleans(),
    over_seconds=st.none() | st.booleans(),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CELLS, st.sampled_from([None, 0, 2]), st.booleans())
def test_both_readers_read_alike(
    tmp_path: Path, result: CellResult, indent: int | None, ascii_only: bool
) -> None:
    path = tmp_path / "cell.json"
    path.write_text(json.dumps(result.document(), indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    assert read_cell(path) == result
    assert _read_plainly(str(path)) in (result, None)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(cell("s").document())[:-1] + ', "steps": 4}',
        json.dumps(cell("s").document()).replace('"steps": 3', '"steps": -3'),
        json.dumps(cell("s").document()).replace('"steps": 3', '"steps": 3.0'),
        json.dumps(cell("s").document()).replace('"steps": 3', '"steps": true'),
        json.dumps(cell("s").document()).replace('"steps": 3', f'"steps": {2**63}'),
        json.dumps(cell("s").document()).replace('"passed": true', '"passed": 1'),
        json.dumps(cell("s").document()).replace('"attempt": 1', '"attempt": 0'),
        json.dumps(cell("s").document()).replace('"scenario": "s"', '"scenario": " "'),
        json.dumps(cell("s").document()).replace('"missing_evidence": []', '"missing_evidence": [1]'),
        json.dumps(cell("s", winning_artifact="X").document()).replace("X", "\\ud800"),
        json.dumps(cell("s").document()) + "{}",
        "\ufeff" + json.dumps(cell("s").document()) + "x",
        "[]",
        "NaN",
    ],
)
def test_what_the_strict_reader_refuses_the_fast_one_leaves_to_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cell.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert _read_plainly(str(path)) is None
    with pytest.raises(DocumentError):
        read_cell(path)


def test_a_usual_file_is_read_the_fast_way(tmp_path: Path) -> None:
    """The speed of judging rests on it."""
    result = cell(
        "s",
        cell="c",
        missing_evidence=("x",),
        winning_artifact='line\n"quoted" — ok',
        scenario_sha256="a" * 64,
    )
    assert _read_plainly(str(write_cell(tmp_path, result))) == result
