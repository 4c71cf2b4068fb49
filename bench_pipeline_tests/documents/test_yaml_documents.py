"""YAML documents say what they say: text stays text, and every problem names file, line and field."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from bench_pipeline.documents import (
    Bool,
    Commit,
    Document,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    StrictModel,
    Text,
    TextOrList,
    load_yaml_bytes,
    read_document,
    read_documents,
)
from bench_pipeline.errors import DocumentError, Problem

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Sample\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Remote(StrictModel):
    remote: Text
    base_commit: Commit | None = None


class Directory(StrictModel):
    directory: RelativePath


class Block(StrictModel):
    tool: Name
    tool_version: TextOrList = ()
    effort: TextOrList = ()
    options: dict[Name, TextOrList] = Field(default_factory=dict)


class Sample(StrictModel):
    tier: Literal["smoke", "standard"] = "standard"
    attempts: Annotated[Int, Field(ge=1)] = 1
    share: Float = 0.9
    network: Bool = False
    cell_timeout: Duration | None = None
    commit: Commit | None = None
    source: Remote | Directory | None = None
    tools: tuple[Block, ...] = ()
    note: Text = ""


def write(folder: Path, body: str | bytes, name: str = "sample.yaml") -> Path:
    path = folder / name
    path.write_bytes(body if isinstance(body, bytes) else (HEAD + body).encode())
    return path


def read(folder: Path, body: str | bytes) -> Document[Sample]:
    return read_document(write(folder, body), Sample, "Sample")


def problems(folder: Path, body: str | bytes) -> list[Problem]:
    with pytest.raises(DocumentError) as caught:
        read(folder, body)
    return list(caught.value.problems)


def only(folder: Path, body: str | bytes) -> Problem:
    found = problems(folder, body)
    assert len(found) == 1, found
    return found[0]


def test_text_fields_keep_the_text_as_it_was_written(tmp_path: Path) -> None:
    body = """\
tools:
  - tool: on
    tool_version: [1.10, 1.1, "1.1"]
    effort: no
    options: {turns: [12e03, 1, 1.0, true, "1", 0x1F, 1_000, 12:30, 2026-01-01, .inf], on: off}
"""
    block = read(tmp_path, body).model.tools[0]
    assert block.tool == "on"
    assert block.tool_version == ("1.10", "1.1", "1.1")
    assert block.effort == ("no",)
    turns = ("12e03", "1", "1.0", "true", "1", "0x1F", "1_000", "12:30", "2026-01-01", ".inf")
    assert block.options == {"turns": turns, "on": ("off",)}
    assert {type(text) for text in (*turns, block.tool, *block.options)} == {str}


@pytest.mark.parametrize("text", ["null", "~", "", "NULL"])
def test_text_is_never_null_but_an_optional_field_may_be(tmp_path: Path, text: str) -> None:
    problem = only(tmp_path, f"cell_timeout: {text}\nnote: {text}\n")
    assert (problem.line, problem.field) == (4, "note")
    assert "nothing (null)" in problem.message
    assert read(tmp_path, f'cell_timeout: {text}\nnote: "{text}"\n').model.note == text


@pytest.mark.parametrize(
    "written", ["12:30", "20", "1.5", "-5m", "0s", "20 m", "m", '"20"', "1e3s", "9999999h", "[1m]"]
)
def test_durations_without_a_unit_or_out_of_bounds_are_refused(tmp_path: Path, written: str) -> None:
    problem = only(tmp_path, f"attempts: 1\ncell_timeout: {written}\n")
    assert (problem.line, problem.field) == (4, "cell_timeout")
    assert "20m" in problem.message


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("20m", 1200.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("500ms", 0.5), ('"2h"', 7200.0), ("1m0.5s", 60.5)],
)
def test_durations_are_seconds(tmp_path: Path, written: str, seconds: float) -> None:
    assert read(tmp_path, f"cell_timeout: {written}\n").model.cell_timeout == seconds


def test_a_bare_commit_is_an_error_that_says_to_quote_it(tmp_path: Path) -> None:
    digits = "1234567890" * 4
    for bare in ("1234567", digits, "1234567e10", COMMIT):
        problem = only(tmp_path, f"commit: {bare}\n")
        assert (problem.file, problem.line, problem.field) == (str(tmp_path / "sample.yaml"), 3, "commit")
        assert "quotes" in problem.message
        assert bare in problem.message
    assert f'"{digits}"' in only(tmp_path, f"commit: {digits}\n").message
    assert read(tmp_path, f'commit: "{digits}"\n').model.commit == digits


@pytest.mark.parametrize("written", ['"abc"', f'"{COMMIT.upper()}"', f'"{COMMIT} "', f'"{COMMIT}0"', "[]"])
def test_a_commit_has_40_lower_case_digits(tmp_path: Path, written: str) -> None:
    assert only(tmp_path, f"commit: {written}\n").field == "commit"


def test_duplicate_keys_are_refused_at_any_depth_naming_both_lines(tmp_path: Path) -> None:
    found = problems(tmp_path, 'note: a\ntools:\n  - tool: x\n    "tool": y\nnote: b\n')
    assert [(p.line, p.field) for p in found] == [(6, "tools[0].tool"), (7, "note")]
    assert "line 5" in found[0].message
    assert "line 3" in found[1].message


def test_all_problems_of_a_document_come_at_once_in_file_order(tmp_path: Path) -> None:
    body = """\
tier: smok
attempts: 0
attemts: 2
share: "0.5"
network: yes
tools:
  - effort: [a, [b]]
    options: {a: {b: c}}
  - tool: ""
note: [text]
"""
    found = problems(tmp_path, body)
    assert [(p.line, p.field) for p in found] == [
        (3, "tier"),
        (4, "attempts"),
        (5, "attemts"),
        (6, "share"),
        (7, "network"),
        (9, "tools[0].effort[1]"),
        (9, "tools[0].tool"),
        (10, "tools[0].options.a"),
        (11, "tools[1].tool"),
        (12, "note"),
    ]
    messages = {p.field: p.message for p in found}
    assert "did you mean attempts?" in messages["attemts"]
    assert "'smoke' or 'standard'" in messages["tier"]
    assert "at least 1" in messages["attempts"]
    assert "without quotes" in messages["share"]
    assert "required" in messages["tools[0].tool"]


def test_of_several_possible_models_only_the_best_fit_is_told(tmp_path: Path) -> None:
    problem = only(tmp_path, "source:\n  remote: x\n  base_commit: 1234567\n")
    assert (problem.line, problem.field) == (5, "source.base_commit")
    problem = only(tmp_path, "source:\n  directory: ../x\n")
    assert problem.field == "source.directory"


@pytest.mark.parametrize(
    "written", ["/etc", "..", "../a", "a/../../b", '""', ".", "a\\\\b", '"a\\nb"', '"a\\0b"']
)
def test_paths_stay_inside_their_folder(tmp_path: Path, written: str) -> None:
    assert (
        only(tmp_path, f"source: {{directory: {written}}}\n".replace("\\\\", "\\")).field
        == "source.directory"
    )


def test_paths_are_normalised(tmp_path: Path) -> None:
    source = read(tmp_path, "source: {directory: ./a//b/../c/}\n").model.source
    assert source == Directory(directory="a/c")


@pytest.mark.parametrize(
    ("written", "value"), [("1", 1), ("-0", 0), ("+7", 7), ("010", 10), ("0o17", 15), ("0x1F", 31)]
)
def test_whole_numbers_follow_yaml_1_2(tmp_path: Path, written: str, value: int) -> None:
    body = f"attempts: {written}\n"
    if value >= 1:
        assert read(tmp_path, body).model.attempts == value
    else:
        assert "at least 1" in only(tmp_path, body).message


@pytest.mark.parametrize(
    "written", ['"1"', "1.0", "1_000", "1e3", "true", "12:30", "9" * 30, "[1]", "{a: 1}", "0b1"]
)
def test_what_is_no_whole_number_is_refused(tmp_path: Path, written: str) -> None:
    assert "whole number" in only(tmp_path, f"attempts: {written}\n").message


@pytest.mark.parametrize("written", ['"1"', ".nan", ".inf", "-.inf", "1e999", "nan", "1_0.5", "true", "0x1F"])
def test_what_is_no_finite_number_is_refused(tmp_path: Path, written: str) -> None:
    assert "finite number" in only(tmp_path, f"share: {written}\n").message


@pytest.mark.parametrize(("written", "value"), [("1", 1.0), ("12e03", 12000.0), (".5", 0.5), ("-1.", -1.0)])
def test_numbers_follow_yaml_1_2(tmp_path: Path, written: str, value: float) -> None:
    assert read(tmp_path, f"share: {written}\n").model.share == value


@pytest.mark.parametrize("written", ["yes", "no", "on", "off", "y", '"true"', "1", "tRUE"])
def test_only_true_and_false_are_booleans(tmp_path: Path, written: str) -> None:
    assert "true or false" in only(tmp_path, f"network: {written}\n").message


def test_another_version_or_kind_is_named_with_its_line(tmp_path: Path) -> None:
    found = problems(tmp_path, b"kind: Evaluation\nnote: x\napiVersion: v1\nunknown: 1\n")
    assert [(p.line, p.field) for p in found] == [(1, "kind"), (3, "apiVersion")]
    assert "expected Sample, found Evaluation" in found[0].message
    found = problems(tmp_path, b"nothing: here\n")
    assert [p.field for p in found] == ["apiVersion", "kind", "nothing"]


def test_a_misspelt_kind_does_not_hide_the_other_problems(tmp_path: Path) -> None:
    found = problems(tmp_path, b"apiVersion: bench.ber.run/v1alpha1\nkind: sample\nattempts: 0\n")
    assert [p.field for p in found] == ["kind", "attempts"]


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"\xef\xbb\xbfa: 1\n", 1, "byte order mark"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        ("a: é\n".encode("utf-16"), 1, "not UTF-8"),
        (b"a: 1\nb: \0\n", 2, "NUL"),
        (b"a: 1\nb: \x07\n", 2, "not allow"),
        (b"a: [1\n", 2, "not valid YAML"),
        (b"a: 1\n\tb: 2\n", 2, "not valid YAML"),
        (b"a: 1\n---\na: 2\n", 2, "second YAML document"),
        (b"%YAML 1.1\n---\na: 1\n", 1, "YAML 1.2"),
        (b"a: *nowhere\n", 1, "not defined"),
        (b"a: &a [*a]\n", 1, "contains itself"),
        (b"a: " + b"[" * 70 + b"]" * 70 + b"\n", 1, "nested deeper"),
        (b'a: "\\ud800"\n', 1, "not valid YAML"),
        (b"", 1, "empty file"),
        (b"# only a comment\n", 1, "empty file"),
        (b"- a\n", 1, "a list"),
        (b"text\n", 1, "text"),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(tmp_path: Path, data: bytes, line: int, words: str) -> None:
    problem = only(tmp_path, data)
    assert problem.line == line
    assert words in problem.message


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ("note: !!str 5\n", "note", "!!str"),
        ("note: !python/object:os.system x\n", "note", "tag"),
        ("<<: {note: a}\n", "", "merge keys"),
        ("? [a, b]\n: c\n", "", "keys are text"),
        ("? \n: c\n", "", "a key is empty"),
        ("note: &x a\n*x : b\n", "", "alias"),
    ],
)
def test_what_yaml_offers_and_documents_do_not_use_is_refused(
    tmp_path: Path, body: str, field: str, words: str
) -> None:
    problem = only(tmp_path, body)
    assert problem.field == field
    assert words in problem.message


def test_anchors_are_allowed_and_bombs_are_not(tmp_path: Path) -> None:
    body = "tools:\n  - tool: a\n    options: &o {turns: [1, 2]}\n  - tool: b\n    options: *o\n"
    blocks = read(tmp_path, body).model.tools
    assert blocks[0].options == blocks[1].options == {"turns": ("1", "2")}
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    problem = only(tmp_path, bomb)
    assert "aliases repeat" in problem.message
    assert problem.line is not None


def test_a_document_has_at_most_one_mebibyte(tmp_path: Path) -> None:
    assert "1048576" in only(tmp_path, b"# " + b"x" * (1 << 20)).message
    body = b"note: |\n" + b"  x\n" * 10
    padding = (1 << 20) - len(HEAD) - len(body) - 2
    assert read(tmp_path, HEAD.encode() + body + b"#" + b"x" * padding + b"\n").model.note == "x\n" * 10


def test_problems_of_a_hostile_document_are_bounded(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "".join(f"key{i}: 1\n" for i in range(5000)))) < 300
    assert len(problems(tmp_path, "note: a\n" * 5000)) < 300
    long = only(tmp_path, f"{'k' * 900}: 1\n")
    assert len(long.field) < 100


def test_a_name_has_no_control_characters_and_is_not_empty(tmp_path: Path) -> None:
    for written in ('""', '" a"', '"a\\nb"', '"a\\u2028b"', '"\\x1b[1m"'):
        assert only(tmp_path, f"tools: [{{tool: {written}}}]\n").field == "tools[0].tool"
    assert only(tmp_path, 'tools: [{tool: x, options: {"": a}}]\n').line == 3


def test_what_is_no_regular_file_is_a_problem_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "absent", tmp_path / "a\0b"):
        with pytest.raises(DocumentError) as caught:
            read_document(path, Sample, "Sample")
        assert caught.value.problems[0].file == str(path)


def test_a_document_tells_the_line_of_a_field_for_later_checks(tmp_path: Path) -> None:
    document = read(
        tmp_path, "tools:\n  - tool: x\n    effort:\n      - low\n      - high\n  - &b\n    tool: y\n"
    )
    assert document.line("tools", 0, "effort", 1) == 7
    assert document.line("tools", 1, "tool") == 9
    assert document.line("tools", 1, "model") == 8
    assert document.line("absent") == 1
    problem = document.problem(("tools", 0, "effort", 1), "is not an effort")
    assert str(problem) == f"{tmp_path / 'sample.yaml'}:7: tools[0].effort[1]: is not an effort"


def test_many_files_of_mixed_kinds_give_documents_and_the_problems_of_the_rest(tmp_path: Path) -> None:
    class Other(StrictModel):
        name: Name

    good = write(tmp_path, "note: a\n", "a.yaml")
    other = write(tmp_path, b"apiVersion: bench.ber.run/v1alpha1\nkind: Other\nname: b\n", "b.yaml")
    bad = write(tmp_path, b"apiVersion: bench.ber.run/v1alpha1\nkind: Otter\nname: ''\n", "c.yaml")
    models: dict[str, type[StrictModel]] = {"Sample": Sample, "Other": Other}
    documents, found = read_documents([good, other, bad], models)
    assert [(d.kind, d.path) for d in documents] == [("Sample", good), ("Other", other)]
    assert [(p.file, p.line, p.field) for p in found] == [(str(bad), 2, "kind"), (str(bad), 3, "name")]
    assert "did you mean Other?" in found[0].message


def test_a_model_with_a_scalar_that_coerces_cannot_be_made() -> None:
    for annotation in (
        str,
        int | None,
        dict[str, float],
        tuple[bool, ...],
        list[Annotated[int, Field(ge=1)]],
    ):
        with pytest.raises(TypeError, match="strict type"):
            type("Lax", (StrictModel,), {"__annotations__": {"field": annotation}})


def value_or_problems(data: bytes) -> object:
    """What reading gives: a value, or the problems; any other exception is a defect of the reader."""
    try:
        return load_yaml_bytes(data, "fuzz")
    except DocumentError as error:
        return error.problems


_ENCODED = st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300) | _ENCODED)
def test_any_bytes_are_a_value_or_a_document_error(data: bytes) -> None:
    value = value_or_problems(data)
    assert value is None or isinstance(value, (str, list, dict, tuple))


_MARKS = list("[]{},:-?&*!|>'\"%#@`~ \n\t\r\\\u00e9\u2028\x85\ufeff0a")
_WORDS = [
    "- ",
    ": ",
    "? ",
    "&a ",
    "*a",
    "<<: ",
    "---\n",
    "...\n",
    "!!str ",
    "\r\n",
    "  ",
    "key: ",
    "null",
    "|\n",
    ">-\n",
]


@settings(max_examples=500, deadline=None)
@given(pieces=st.lists(st.sampled_from([*_MARKS, *_WORDS]), max_size=40))
def test_any_yaml_like_text_is_a_value_or_a_document_error(pieces: list[str]) -> None:
    value = value_or_problems("".join(pieces).encode())
    assert value is None or isinstance(value, (str, list, dict, tuple))


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20)


@settings(max_examples=200, deadline=None)
@given(
    value=st.recursive(
        _TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3)
    )
)
def test_quoted_text_comes_back_unchanged(value: object) -> None:
    def flow(item: object) -> str:
        if isinstance(item, list):
            return f"[{', '.join(map(flow, item))}]"
        if isinstance(item, dict):
            return "{" + ", ".join(f"{flow(key)}: {flow(entry)}" for key, entry in item.items()) + "}"
        return "'" + str(item).replace("'", "''") + "'"

    written = flow(value)
    if any(mark in written for mark in "\ufeff\ufffe\uffff\u2028\u2029\x85"):
        return
    assert load_yaml_bytes(written.encode(), "round trip") == value


_FIELDS = [
    "tier",
    "attempts",
    "share",
    "source",
    "tools",
    "tool",
    "options",
    "commit",
    "remote",
    "directory",
    "x",
]
_WRITTEN = st.sampled_from(
    ["1", "no", "null", '"a"', "1.10", "smoke", "20m", "''", "12:30", ".nan", "a/b", COMMIT]
)
_DOCUMENTS = st.recursive(
    _WRITTEN,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=4).map(
            lambda entries: "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(fields=st.dictionaries(st.sampled_from(_FIELDS), _DOCUMENTS, max_size=5))
def test_any_fields_give_a_model_or_problems_with_lines(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, str]
) -> None:
    body = "".join(f"{key}: {value}\n" for key, value in fields.items())
    path = write(tmp_path_factory.mktemp("fuzz"), body)
    _, found = read_documents([path], {"Sample": Sample})
    for problem in found:
        assert problem.message
        assert problem.line is not None
        first = problem.field.split(".")[0].split("[")[0]
        assert problem.line == 1 or list(fields)[problem.line - 3] == first
