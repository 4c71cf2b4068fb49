"""Case files are read strictly; the first check that fails decides, and names every place where it did."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError
from bench_pipeline.policies.cases import read_cases
from bench_pipeline.policies.inputs import InputError
from bench_pipeline_tests.policies.orchard import ORCHARD, written

GOOD = {"ID": "a", "Prompt": "p", "Expected": "e"}


def refused(path: Path, text: str | bytes, **options: int) -> InputError:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        read_cases(path, **options)
    return error.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cases.json"


def test_cases_keep_their_order_and_texts() -> None:
    cases = read_cases(ORCHARD / "cases.json").cases
    assert [case.id for case in cases] == ["orchard-ttl", "orchard-restore", "orchard-price"]
    assert cases[1].evidence == ("Restore receipt R-42: verification passed; final state ready.",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not valid JSON"),
        ("[", "is not valid JSON"),
        ('[{"ID":"a","Prompt":"p","Expected":"e"}] x', "is not valid JSON"),
        ('[{"ID":"a","Prompt":"p","Expected":"e"}][]', "is not valid JSON"),
        ("{}", "expected a list of cases"),
        ("null", "expected a list of cases"),
        ('["a"]', "expected a mapping"),
        ('[{"ID":1,"Prompt":"p","Expected":"e"}]', "expected text, found 1"),
        ('[{"ID":null,"Prompt":"p","Expected":"e"}]', "expected text, found nothing"),
        ('[{"ID":"a","Prompt":"p","Expected":"e","Evidence":"x"}]', "expected a list"),
        ('[{"ID":"a","Prompt":"p","Expected":"e","Evidence":[1]}]', "expected text, found 1"),
        ('[{"ID":"a","Prompt":"p","Expected":"e","More":1}]', "is not a known field"),
        ('[{"id":"a","Prompt":"p","Expected":"e"}]', "is not a known field"),
        ('[{"ID":"a","ID":"b","Prompt":"p","Expected":"e"}]', "is given twice"),
        ('[{"ID":"a","Prompt":"p","Expected":NaN}]', "NaN is not a JSON number"),
        ('[{"ID":"a","Prompt":"\\ud800","Expected":"e"}]', "half of a surrogate pair"),
        (b"\xef\xbb\xbf[]", "byte order mark"),
        (b'[{"ID":"\xff"}]', "is not UTF-8"),
    ],
)
def test_what_is_not_a_list_of_cases_does_not_decode(path: Path, text: str | bytes, said: str) -> None:
    error = refused(path, text)
    assert error.reason == "decode"
    assert said in str(error)
    assert "decode" in str(error)


@pytest.mark.parametrize("field", ["ID", "Prompt", "Expected"])
@pytest.mark.parametrize("blank", ["", " \t\n", "\u3000", None])
def test_a_blank_or_missing_field_is_invalid(path: Path, field: str, blank: str | None) -> None:
    record = {name: text for name, text in {**GOOD, field: blank}.items() if text is not None}
    error = refused(path, json.dumps([GOOD, record]))
    assert error.reason == "invalid"
    assert error.problems[0].field == f"[1].{field}"


def test_every_blank_field_is_named_with_its_line(path: Path) -> None:
    error = refused(
        path, '[\n{"ID":"a","Prompt":"","Expected":"e"},\n{"ID":"b","Prompt":"p","Expected":" "}]'
    )
    assert [(problem.line, problem.field) for problem in error.problems] == [
        (2, "[0].Prompt"),
        (3, "[1].Expected"),
    ]


def test_no_case_at_all_is_invalid(path: Path) -> None:
    assert refused(path, " [ ] ").reason == "invalid"


def test_a_repeated_id_is_a_conflict_and_a_repeated_prompt_is_not(path: Path) -> None:
    error = refused(path, json.dumps([GOOD, {**GOOD, "ID": "b"}, GOOD]))
    assert error.reason == "conflict"
    assert error.problems[0].field == "[2].ID"
    assert len(read_cases(written(path, [GOOD, {**GOOD, "ID": "b"}])).cases) == 2


@pytest.mark.parametrize("other", ["A", "a ", "\uff41", "a\u0301"])
def test_ids_are_compared_exactly(path: Path, other: str) -> None:
    assert len(read_cases(written(path, [GOOD, {**GOOD, "ID": other}])).cases) == 2


def test_size_is_checked_before_parsing(path: Path) -> None:
    assert refused(path, b"x" * ((1 << 20) + 1)).reason == "limit"
    padded = json.dumps([GOOD]).encode().ljust(1 << 20)
    path.write_bytes(padded)
    assert len(read_cases(path).cases) == 1


def test_the_number_of_cases_is_limited_and_the_limit_can_be_raised(path: Path) -> None:
    many = json.dumps([{**GOOD, "ID": str(number)} for number in range(1001)])
    assert refused(path, many).reason == "limit"
    assert len(read_cases(path, max_cases=1001).cases) == 1001


def test_the_first_failing_check_decides(path: Path) -> None:
    broken = [{**GOOD, "ID": ""}, GOOD, GOOD]
    assert refused(path, json.dumps(broken)).reason == "invalid"
    assert refused(path, json.dumps([*broken, {"x": 1}])).reason == "decode"
    assert refused(path, json.dumps([*broken, *[{"x": 1}] * 998])).reason == "limit"


def test_a_missing_file_is_said_to_be_missing(path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read: No such file"):
        read_cases(path)


def test_a_text_may_hold_anything_that_is_text(path: Path) -> None:
    odd = {"ID": "\x00\u2028\u202e", "Prompt": "<script>\x1b[31m", "Expected": "é\x85e"}
    assert read_cases(written(path, [odd])).cases[0].id == "\x00\u2028\u202e"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_cases(path)
