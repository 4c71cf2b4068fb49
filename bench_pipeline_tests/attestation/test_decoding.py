"""Layers are peeled off whatever they are nested in, and no text makes it cost more than its limits."""

import base64
import gzip
import json
import tracemalloc
import zlib
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.attestation.decoding import (
    MAX_DECODED_CHARS,
    MAX_DEPTH,
    MAX_TOTAL_CHARS,
    Decoder,
    open_run,
)
from bench_pipeline.attestation.words import words_of

TEXT = "the pilot boards every vessel\nat 'Fair Head' before the tide turns"
WORDS = words_of(TEXT)


def _b64(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _shows(text: str) -> bool:
    size = len(WORDS)
    return any(
        words[at : at + size] == WORDS
        for layer in Decoder().layers(text)
        for words in [words_of(layer)]
        for at in range(len(words))
    )


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        json.dumps({"a": [{"b": TEXT}]}),
        json.dumps(json.dumps({"a": TEXT})),
        json.dumps({"a": TEXT})[:-2],
        "log: " + json.dumps(TEXT) + " end",
        json.dumps(TEXT + " \U0001f6a2"),
        f"x = {_b64(TEXT)};",
        f"data:text/plain;base64,{_b64(TEXT)}",
        f"some/path/{_b64(TEXT)}",
        base64.encodebytes((TEXT + "\n").encode() * 3).decode(),
        json.dumps(base64.encodebytes((TEXT + "\n").encode() * 3).decode()),
        base64.urlsafe_b64encode(("\u00ff\u00fe " + TEXT).encode()).decode().rstrip("="),
        _b64(TEXT.encode("utf-16-le")),
        TEXT.encode().hex(),
        TEXT.encode().hex().upper(),
        quote(TEXT),
        quote_plus(TEXT),
        quote(quote(TEXT, safe=""), safe=""),
        _b64(gzip.compress(TEXT.encode())),
        _b64(zlib.compress(TEXT.encode())),
        gzip.compress(TEXT.encode()).hex(),
        _b64(gzip.compress(gzip.compress(TEXT.encode()))),
        _b64(_b64(TEXT)),
        json.dumps({"payload": quote(_b64(gzip.compress(json.dumps([TEXT]).encode())))}),
        "".join(
            f"{number:6d}\t{line}\n" for number, line in enumerate(TEXT.replace(" ", "\n").split("\n"), 1)
        ),
        "".join(
            f"src/a.txt:{number}:{line}\n"
            for number, line in enumerate(TEXT.replace(" ", "\n").split("\n"), 1)
        ),
    ],
)
def test_a_text_is_found_in_its_encodings(text: str) -> None:
    assert _shows(text)


def test_honest_text_has_no_layers() -> None:
    assert list(Decoder().layers("def add(a, b):\n    return a + b\n")) == [
        "def add(a, b):\n    return a + b\n"
    ]


def test_nesting_deeper_than_the_limit_is_told() -> None:
    text = TEXT
    for _ in range(MAX_DEPTH + 2):
        text = _b64(text)
    decoder = Decoder()
    list(decoder.layers(text))
    assert decoder.exhausted


def test_a_gzip_bomb_is_cut_and_told() -> None:
    bomb = _b64(gzip.compress(b"tide " * (1 << 24), 9))
    decoder = Decoder()
    tracemalloc.start()
    total = sum(map(len, decoder.layers(bomb)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoder.exhausted
    assert total <= MAX_DECODED_CHARS + len(bomb)
    assert peak < 12 * MAX_DECODED_CHARS


def test_many_bombs_share_one_limit() -> None:
    bomb = _b64(gzip.compress(b"tide " * (3 << 20), 9))
    decoder = Decoder()
    total = sum(len(layer) for number in range(12) for layer in decoder.layers(f"{number} {bomb}"))
    assert decoder.exhausted
    assert total <= MAX_TOTAL_CHARS + 12 * (len(bomb) + 8)


@pytest.mark.parametrize(
    "text",
    ["A" * 400_000, "A " * 200_000, "\\" * 200_000, "%41" * 100_000, "[" * 400_000, ("A" * 15 + " ") * 20_000,
     "1:" * 200_000, "1\n" * 200_000, "\n" * 300_000, '{"a":' * 80_000, "\\u0041" * 60_000],
)  # fmt: skip
def test_a_text_made_to_be_slow_is_read(text: str) -> None:
    assert next(iter(Decoder().layers(text))) == text
    assert sum(1 for _ in Decoder().layers(text)) < 20
    open_run(text)


@given(st.text(max_size=300) | st.binary(max_size=300).map(_b64))
def test_any_text_is_read_without_an_error(text: str) -> None:
    layers = list(Decoder().layers(text))
    assert layers[0] == text
    assert len(layers) == len(set(layers))


def test_an_open_run_is_what_a_following_text_goes_on_with() -> None:
    assert open_run("see: QWxwaGEgQnJhdm8gQ2hhcmxpZSBE") == "QWxwaGEgQnJhdm8gQ2hhcmxpZSBE"
    assert open_run("an honest sentence without any run") == ""
    assert open_run("") == ""
