"""What setups are called, and the file names that are made of labels."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.evaluations import file_safe
from bench_pipeline.evaluations.labels import setup_label


def label(**parts: object) -> str:
    values = {"version": None, "model": None, "effort": None, "options": {}, "steps": {}} | parts
    return setup_label("agent", **values)  # type: ignore[arg-type]


def test_a_label_is_tool_version_model_effort_then_what_is_not_at_its_default_sorted() -> None:
    assert label() == "agent/-/-"
    assert label(model="opus-5", effort="high", version="1.10") == "agent@1.10/opus-5/high"
    extras = {"options": {"turns": "9", "notes": "off"}, "steps": {"plan.model": "x", "build.effort": "low"}}
    assert label(**extras) == "agent/-/-+build.effort=low+notes=off+plan.model=x+turns=9"


def test_a_label_has_no_line_breaks_and_stays_short_with_long_values_told_apart() -> None:
    long = "x" * 5000
    found = {label(options={"command": f"a\n{long}{end}"}) for end in "bc"}
    assert len(found) == 2
    assert all(len(text) < 120 and text.isprintable() for text in found)
    assert label(options={"command": "a\nb\u202ec"}) == "agent/-/-+command=a%0Ab%E2%80%AEc"


NAMES = [
    "A/B",
    "A_B",
    "a_b",
    "x.y",
    "x,y",
    "x...y",
    "_hidden",
    "é",
    "e\u0301",
    ".x",
    "-x",
    "..",
    ".",
    "",
    "CON",
    "%41",
    "A",
]


@pytest.mark.parametrize("name", [*NAMES, "n" * 300, "N" * 300, "n" * 299 + "m"])
def test_a_file_name_of_a_label_is_one_part_of_a_path(name: str) -> None:
    found = file_safe(name)
    assert re.fullmatch(r"[a-z0-9@+=_%A-F][a-z0-9@+=_.%A-F~-]*|", found)
    assert len(found) <= 200
    assert found not in {".", ".."}


def test_labels_that_only_differ_in_case_separators_or_unicode_form_have_file_names_of_their_own() -> None:
    found = {file_safe(name).casefold() for name in [*NAMES, "n" * 300, "N" * 300, "n" * 299 + "m"]}
    assert len(found) == len(NAMES) + 3


@given(st.text(max_size=80), st.text(max_size=80))
def test_file_names_are_equal_exactly_when_labels_are(left: str, right: str) -> None:
    assert (file_safe(left).casefold() == file_safe(right).casefold()) is (left == right)


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_label_can_be_read_back_from_a_short_file_name(text: str) -> None:
    assert unquote(file_safe(text)) == text
