"""An answer is correct when it is the expected one after the documented normalisation, and only then."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.policies.answers import is_correct, normalise

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("15 minutes", "15minutes"),
        ("yes", "yes!"),
        ("10 ms", "100 ms"),
        ("é", "e\u0301"),
        ("11", "711"),
        ("11", "11!"),
        ("11", "11.0"),
        ("11", "\uff11\uff11"),
        ("11", "$11"),
        ("½", "1/2"),
        ("Straße", "STRASSE"),
        ("a", "a\x1c"),
        ("a", "a\x1f"),
        ("ready", ""),
    ],
)
def test_what_differs_by_more_than_space_and_case_is_wrong(expected: str, answer: str) -> None:
    assert not is_correct(expected, answer)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("15 minutes", "  15\n\tMinutes\r\n"),
        ("11", " 11\r\n"),
        ("a b", "A\u3000\u2028\x85\xa0B"),
        ("½", "½"),
        ("i", "İ"),
        ("οδοσ", "ΟΔΟΣ"),
        ("é", "É"),
    ],
)
def test_space_and_case_do_not_count(expected: str, answer: str) -> None:
    assert is_correct(expected, answer)


def test_a_final_sigma_stays_what_it_is() -> None:
    assert not is_correct("ὀδός", "ὈΔΌΣ")
    assert normalise("ΟΔΟΣ") == "οδοσ"


def test_each_character_is_lowered_alone_and_by_its_simple_mapping() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if normalise(char) == "":
            continue
        lowered = char.lower()
        assert normalise(char) == (lowered if len(lowered) == 1 else "i"), hex(code)
        assert normalise(f"x{char}x") == f"x{normalise(char)}x", hex(code)
        assert normalise(f"\u0391{char}") == f"\u03b1{normalise(char)}", hex(code)


def test_white_space_is_that_of_unicode() -> None:
    separators = {chr(code) for code in range(sys.maxunicode + 1) if not normalise(chr(code))}
    by_category = {
        chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in {"Zs", "Zl", "Zp"}
    }
    assert separators == by_category | set("\t\n\v\f\r\x85")


@given(ANY_TEXT)
def test_a_blank_expectation_is_never_met_and_no_text_raises(text: str) -> None:
    assert not is_correct(" \t\u3000", text)
    assert is_correct(text, text) is bool(normalise(text))


@given(ANY_TEXT)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
