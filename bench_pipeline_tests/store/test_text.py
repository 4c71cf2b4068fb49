"""Any text can be stored after the one documented replacement, and ordinary text stays as it was."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.store import clean_text


@given(st.text(st.characters()))
def test_any_text_fits_a_column_afterwards(text: str) -> None:
    cleaned = clean_text(text)
    assert pa.array([cleaned]).to_pylist() == [cleaned]
    assert cleaned is not None
    assert len(cleaned) == len(text)
    assert clean_text(cleaned) == cleaned


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00")))
def test_text_without_surrogates_and_nul_stays_as_it_was(text: str) -> None:
    assert clean_text(text) == text


def test_the_replacements_are_the_documented_ones() -> None:
    assert clean_text("a\ud800b\x00c") == "a\N{REPLACEMENT CHARACTER}b\N{SYMBOL FOR NULL}c"


def test_unknown_stays_unknown_and_empty_stays_empty() -> None:
    assert clean_text(None) is None
    assert clean_text("") == ""
