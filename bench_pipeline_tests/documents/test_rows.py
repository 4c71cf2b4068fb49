"""JSON Lines: rows end at LF bytes only, and what is no row is named by its line."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.documents import Int, Name, StrictModel, Text, read_jsonl
from bench_pipeline.errors import DocumentError


class Row(StrictModel):
    task: Name
    patch: Text
    count: Int = 0


def write(folder: Path, data: bytes) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(data)
    return path


def rejected_line(folder: Path, data: bytes) -> tuple[int | None, str]:
    with pytest.raises(DocumentError) as caught:
        read_jsonl(write(folder, data))
    (problem,) = caught.value.problems
    return problem.line, problem.message


def test_line_separators_inside_strings_do_not_end_a_row(tmp_path: Path) -> None:
    texts = ["a\u2028b", "a\u2029b", "a\u0085b", "a\x0cb", "a\x0bb", "a\x1cb", "a\rb"]
    rows = [json.dumps({"t": text}, ensure_ascii=False).replace("\\f", "\x0c") for text in texts]
    data = "\n".join(row for row in rows if "\x0c" not in row).encode() + b"\n"
    found = read_jsonl(write(tmp_path, data))
    assert [row["t"] for row in found.rows] == [text for text in texts if text != "a\x0cb"]
    assert found.lines == list(range(1, len(texts)))


def test_an_escaped_form_feed_is_text_and_a_bare_one_is_no_json(tmp_path: Path) -> None:
    assert read_jsonl(write(tmp_path, b'{"t": "a\\fb"}\n')).rows == [{"t": "a\x0cb"}]
    line, message = rejected_line(tmp_path, b'{"t": 1}\n{"t": "a\x0cb"}\n')
    assert line == 2
    assert "control character" in message


def test_crlf_byte_order_mark_and_blank_lines_are_fine(tmp_path: Path) -> None:
    found = read_jsonl(write(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}\r\n\n{"a": 3}'))
    assert found.rows == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert found.lines == [1, 4, 6]
    assert not found.incomplete_tail
    assert read_jsonl(write(tmp_path, b"\xef\xbb\xbf\n")).rows == []
    assert read_jsonl(write(tmp_path, b"")).rows == []


def test_a_broken_line_stops_strict_reading_with_its_number(tmp_path: Path) -> None:
    assert rejected_line(tmp_path, b'{"a": 1}\n\n{"a": \n{"a": 3}\n')[0] == 3


def test_tolerant_reading_gives_the_rows_and_the_rejected_lines(tmp_path: Path) -> None:
    data = b'{"a": 1}\n{"a": \n{"a": NaN}\n{"a": 1, "a": 2}\n\xff\n{"a": 5}\n{"a": "cut'
    found = read_jsonl(write(tmp_path, data), tolerant=True)
    assert found.rows == [{"a": 1}, {"a": 5}]
    assert found.lines == [1, 6]
    assert [problem.line for problem in found.rejected] == [2, 3, 4, 5, 7]
    assert found.incomplete_tail
    assert "cut off" in found.rejected[-1].message


def test_half_a_last_line_is_reported_as_cut_off(tmp_path: Path) -> None:
    line, message = rejected_line(tmp_path, b'{"a": 1}\n{"a": 2')
    assert line == 2
    assert "cut off" in message
    assert "cut off" not in rejected_line(tmp_path, b'{"a": 1}\n{"a": 2\n')[1]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" is given twice'),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'{"a": "\xed\xa0\x80"}', "UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": 1} {"b": 2}', "Extra data"),
        (b"{'a': 1}", "column"),
    ],
)
def test_what_is_not_strict_json_is_refused(tmp_path: Path, row: bytes, words: str) -> None:
    line, message = rejected_line(tmp_path, b"{}\n" + row + b"\n")
    assert line == 2
    assert words in message


def test_surrogate_pairs_are_text(tmp_path: Path) -> None:
    assert read_jsonl(write(tmp_path, b'{"a": "\\ud83d\\ude00"}\n')).rows == [{"a": "\U0001f600"}]


def test_a_line_of_50_megabytes_is_refused_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("wb") as stream:
        stream.write(b'{"a": 1}\n{"a": "')
        for _ in range(50):
            stream.write(b"x" * (1 << 20))
        stream.write(b'"}\n{"a": 3}\n')
    found = read_jsonl(path, tolerant=True)
    assert found.rows == [{"a": 1}, {"a": 3}]
    assert [(p.line, "longer than" in p.message) for p in found.rejected] == [(2, True)]
    assert read_jsonl(path, max_line_bytes=64 << 20).lines == [1, 2, 3]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_longest_line_allowed_is_read_and_one_byte_more_is_not(tmp_path: Path, end: bytes) -> None:
    row = b'{"a": "' + b"x" * 91 + b'"}'
    assert read_jsonl(write(tmp_path, row + end), max_line_bytes=len(row)).lines == [1]
    assert read_jsonl(write(tmp_path, row + end), max_line_bytes=len(row) - 1, tolerant=True).lines == []


def test_rows_that_do_not_fit_their_model_name_line_and_field(tmp_path: Path) -> None:
    data = b'{"task": "a", "patch": ""}\n{"task": "", "count": "1", "extra": null}\n'
    with pytest.raises(DocumentError) as caught:
        read_jsonl(write(tmp_path, data), Row)
    assert [(p.line, p.field) for p in caught.value.problems] == [
        (2, "count"),
        (2, "extra"),
        (2, "patch"),
        (2, "task"),
    ]
    found = read_jsonl(tmp_path / "rows.jsonl", Row, tolerant=True)
    assert found.rows == [Row(task="a", patch="")]
    assert {p.line for p in found.rejected} == {2}


def test_what_cannot_be_read_is_a_document_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "absent", tmp_path, tmp_path / "pipe"):
        with pytest.raises(DocumentError):
            read_jsonl(path)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_rows_or_rejected_lines(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = write(tmp_path_factory.mktemp("rows"), data)
    found = read_jsonl(path, tolerant=True)
    assert len(found.rows) == len(found.lines)
    content = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b" \t\r\n")]
    assert len(found.lines) + len({p.line for p in found.rejected}) == len(content)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(_JSON, max_size=5), ascii_only=st.booleans(), end=st.sampled_from(["\n", "\r\n"]))
def test_rows_come_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, rows: list[object], ascii_only: bool, end: str
) -> None:
    text = "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in rows)
    assert read_jsonl(write(tmp_path_factory.mktemp("rows"), text.encode())).rows == rows
