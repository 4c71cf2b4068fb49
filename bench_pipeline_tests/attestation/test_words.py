"""What looks the same to a reader is the same text, and nothing becomes nothing silently."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.attestation.words import words_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Return the SUM of a and b.", "return the sum, of a and b!"),
        ("\uff52\uff45\uff54\uff55\uff52\uff4e x", "return x"),
        ("STRASSE", "stra\u00dfe"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01le", "file"),
        ("in\u200bvis\u00adible", "invisible"),
        ("a\u00a0b\u2003c\u2028d", "a b c d"),
        ("__init__ _private_ 'quoted' -flag", "init private quoted flag"),
        ("x=[1,2];y=x[0]", "x 1 2 y x 0"),
    ],
)
def test_spellings_of_one_text_have_the_same_words(one: str, other: str) -> None:
    assert words_of(one) == words_of(other) != []


def test_identifiers_stay_whole() -> None:
    assert words_of("total_price2 = sum_of(total_price2)") == [b"total_price2", b"sum_of", b"total_price2"]


def test_a_script_without_spaces_gives_a_word_a_character() -> None:
    assert words_of("\u6e2f\u306e\u706f") == [word.encode() for word in "\u6e2f\u306e\u706f"]
    assert len(words_of("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35")) == 6
    assert words_of("see \u6e2f8 now") == [b"see", "\u6e2f".encode(), b"8", b"now"]


def test_vowel_signs_belong_to_their_word() -> None:
    assert words_of("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e") == [
        "\u0939\u093f\u0928\u094d\u0926\u0940".encode(),
        "\u092d\u093e\u0937\u093e".encode(),
    ]


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_way_for_ascii_finds_the_same_words(text: str) -> None:
    assert words_of(text) == words_of(text + " \u00e9")[:-1]


@given(st.text())
def test_words_are_stable_and_never_raise(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(word.decode() for word in words)) == words


@given(st.text(st.characters(categories=["L", "N"], exclude_characters="\u115f\u1160"), min_size=1))
def test_letters_and_digits_never_vanish(text: str) -> None:
    assert words_of(text)


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert words_of("left \ud800 right")[0] == b"left"
