"""TOML, JSON and front matter are as strict as YAML, and know their lines too."""

from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.documents import (
    Bool,
    Commit,
    Duration,
    Int,
    Name,
    Size,
    StrictModel,
    Text,
    TextOrList,
    json_schema,
    load_yaml_bytes,
    read_front_matter,
    read_json,
    read_toml,
)
from bench_pipeline.documents.positions import json_fields, json_lines
from bench_pipeline.errors import DocumentError, Problem


class Part(StrictModel):
    name: Name
    count: Int = 1
    tags: TextOrList = ()


class Whole(StrictModel):
    title: Text = ""
    enabled: Bool = True
    limit: Duration | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = ()


def write(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def places(problems: tuple[Problem, ...]) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.field) for problem in problems]


def test_toml_problems_name_their_lines(tmp_path: Path) -> None:
    text = '''\
title = """
enabled = 1
"""
enabled = "yes"

[part]
name = ""
count = 1.5

[[parts]]
name = "a"
[[parts]]
name = "b"
coun = 2
'''
    with pytest.raises(DocumentError) as caught:
        read_toml(write(tmp_path, text, "a.toml"), Whole)
    assert places(caught.value.problems) == [
        (4, "enabled"),
        (7, "part.name"),
        (8, "part.count"),
        (14, "parts[1].coun"),
    ]


def test_a_toml_syntax_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        read_toml(write(tmp_path, "title = 'a'\ntitle = \n", "a.toml"), Whole)
    assert places(caught.value.problems) == [(2, "")]


def test_toml_and_json_documents_read_into_models(tmp_path: Path) -> None:
    expected = Whole(title="x", limit="1m", part=Part(name="p", count=2, tags=["a"]))  # type: ignore[arg-type]
    toml = 'title = "x"\nlimit = "1m"\npart = {name = "p", count = 2, tags = "a"}\n'
    document = read_toml(write(tmp_path, toml, "a.toml"), Whole)
    assert document.model == expected
    assert document.line("limit") == 2
    json_text = '{"title": "x",\n "limit": "1m",\n "part": {"name": "p", "count": 2,\n "tags": "a"}}'
    found = read_json(write(tmp_path, json_text, "a.json"), Whole)
    assert found.model == expected
    assert found.line("part", "tags") == 4


def test_json_problems_name_their_lines(tmp_path: Path) -> None:
    text = '{\n "title": 5,\n "parts": [\n  {"name": "a"},\n  {"name": "b",\n   "count": "1"}\n ]\n}\n'
    with pytest.raises(DocumentError) as caught:
        read_json(write(tmp_path, text, "a.json"), Whole)
    assert places(caught.value.problems) == [(2, "title"), (6, "parts[1].count")]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n"title": "a",\n"title": "b"}', 3, "given twice"),
        ('{"part": {\n"name": "title"},\n"parts": [{"name": 1},\n{"name": 1, "name": 2}]}', 4, "given twice"),
        ('{\n"title": NaN}', 2, "NaN"),
        ('{\n"title": "NaN", \n"a": 1e400}', 3, "too large"),
        ('{\n"title": }', 2, "column"),
    ],
)
def test_json_says_everything_once(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(write(tmp_path, text, "a.json"), Whole)
    assert places(caught.value.problems) == [(line, "")]
    assert words in caught.value.problems[0].message


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a.md"])
@pytest.mark.parametrize("data", [b"\xff", b"\xef\xbb\xbf{}", b"{}\0"])
def test_other_encodings_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DocumentError):
        {"a.json": read_json, "a.toml": read_toml, "a.md": read_front_matter}[name](path, Whole)


def test_front_matter_gives_fields_and_the_text_after_them(tmp_path: Path) -> None:
    path = write(tmp_path, "---\ntitle: no\nparts:\n  - name: a\n---\n# Body\n---\nmore\n", "a.md")
    document, body = read_front_matter(path, Whole)
    assert document.model == Whole(title="no", parts=(Part(name="a"),))
    assert body == "# Body\n---\nmore\n"
    assert document.line("parts", 0, "name") == 4


def test_front_matter_may_be_empty_and_use_crlf(tmp_path: Path) -> None:
    assert read_front_matter(write(tmp_path, "---\n---\nbody", "a.md"), Whole)[1] == "body"
    path = tmp_path / "b.md"
    path.write_bytes(b"---\r\ntitle: x\r\n---\r\nbody\r\n")
    document, body = read_front_matter(path, Whole)
    assert (document.model.title, body) == ("x", "body\r\n")


def test_front_matter_problems_count_lines_from_the_top_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "---\ntitle: a\ntitle: b\nenabled: no\n---\nbody\n", "a.md")
    with pytest.raises(DocumentError) as caught:
        read_front_matter(path, Whole)
    assert places(caught.value.problems) == [(3, "title"), (4, "enabled")]
    with pytest.raises(DocumentError) as caught:
        read_front_matter(write(tmp_path, "---\ntitle: [\n---\n", "b.md"), Whole)
    assert caught.value.problems[0].line in {2, 3}


@pytest.mark.parametrize("text", ["", "body", "---\ntitle: a\n", "--- x\n---\n"])
def test_a_text_without_front_matter_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_front_matter(write(tmp_path, text, "a.md"), Whole)
    assert "front matter" in caught.value.problems[0].message


_KEYS = st.text(st.characters(codec="utf-8"), max_size=6)


@settings(max_examples=200, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | _KEYS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    ),
    indent=st.sampled_from([None, 0, 2]),
)
def test_every_json_field_has_the_line_it_stands_on(value: object, indent: int | None) -> None:
    import json

    def fields(item: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
        entries = (
            enumerate(item) if isinstance(item, list) else item.items() if isinstance(item, dict) else ()
        )
        return [p for key, below in entries for p in ((*path, key), *fields(below, (*path, key)))]

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert [path for path, _ in json_fields(text)] == fields(value)
    rows = text.split("\n")
    for path, line in json_lines(text).items():
        if isinstance(path[-1], str):
            assert json.dumps(path[-1], ensure_ascii=False) in rows[line - 1]


class Everything(StrictModel):
    text: Text
    name: Name
    whole: Int
    flag: Bool
    limit: Duration
    size: Size
    commit: Commit
    many: TextOrList


def test_the_json_schema_accepts_what_the_reader_accepts() -> None:
    schema = json_schema(Everything, "Everything")
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {
        "apiVersion": "bench.ber.run/v1alpha1",
        "kind": "Everything",
        "text": "no",
        "name": "x",
        "whole": 3,
        "flag": True,
        "limit": "1h30m",
        "size": "4GiB",
        "commit": "a" * 40,
        "many": ["1.10", "on"],
    }
    jsonschema.validate(good, schema)
    # An editor reads a plain 1.10 as a number: for a text field that is no mistake.
    jsonschema.validate({**good, "text": 1.10, "many": [1, True]}, schema)
    for field, value in {
        "kind": "Other",
        "limit": "12:30",
        "size": 4,
        "commit": 1,
        "whole": "3",
        "more": 1,
    }.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, field: value}, schema)
    text = "\n".join(
        f"{key}: {value}" for key, value in good.items() if key not in {"apiVersion", "kind", "commit"}
    )
    value = load_yaml_bytes(f"{text}\ncommit: '{'a' * 40}'\n".encode(), "good")
    assert isinstance(value, dict)
    assert Everything.model_validate(value | {"flag": True, "many": ["a"]}).size == 4 << 30
