"""Which lines are rows: the fast decoder and the exact one agree on every line, wherever it stands."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.ledgers.fields import READ, SPELLINGS, read_row
from bench_pipeline.ledgers.parsing import Parser
from bench_pipeline_tests.ledgers.writing import line

GOOD = line().encode()
MALFORMED = {
    "not UTF-8": b'{"route": "\xff"}',
    "an encoded surrogate": b'{"route": "\xed\xa0\x80"}',
    "cut off": b'{"route": "x", "valid": tr',
    "not an object": b'["route"]',
    "NaN": b'{"route": "x", "f2p": NaN}',
    "infinity in a field that is not ours": b'{"route": "x", "cost": -Infinity}',
    "a number that is none": b'{"route": "x", "cost": 1e999}',
    "half of a surrogate pair": b'{"route": "x", "note": "\\ud800"}',
    "the other half": b'{"route": "x", "note": {"a": ["\\udc00"]}}',
    "half of one in a key": b'{"route": "x", "\\ud83d": 1}',
    "a key twice": b'{"route": "x", "route": "x"}',
    "a key twice, one escaped": b'{"route": "x", "\\u0072oute": "x"}',
    "a key twice with space before the colon": b'{"route": "x", "route" : "x"}',
    "a key of another's twice": b'{"route": "x", "note": 1, "note": 2}',
    "a key twice inside": b'{"route": "x", "inner": [{"a": {"b": 1, "b": 1}}]}',
    "two objects": b'{"route": "x"} {"route": "y"}',
    "two objects without a space": b'{"route": "x"}{"route": "y"}',
    "a comma too many": b'{"route": "x",}',
    "text after it": b'{"route": "x"} x',
    "a raw control character": b'{"route": "a\x0cb"}',
    "a byte order mark": b'\xef\xbb\xbf{"route": "x"}',
    "half of an object": b'{"route": "x",',
    "the other half of an object": b'"valid": true}',
    "nested too deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_is_counted_with_its_number_wherever_it_stands(text: bytes) -> None:
    for before, after in ((0, 0), (1, 1), (40, 3)):
        block = b"\n".join([*[GOOD] * before, text, *[GOOD] * after, b""])
        parser = Parser()
        parser.parse(GOOD + b"\n", 1)
        parsed = parser.parse(block, 11)
        assert parsed.rejected == [11 + before]
        assert parsed.rows.num_rows == before + after
        assert parsed.lines == before + after + 1


def test_lines_end_at_line_feeds_only() -> None:
    text = '{"route": "a\u2028b\u0085c\\fd", "passed": true}'
    parsed = Parser().parse(f"{text}\r\n\n \t\r\n{text}\n".encode(), 1)
    assert parsed.rows["route"].to_pylist() == ["a\u2028b\u0085c\fd"] * 2
    assert sorted(parsed.rows["line"].to_pylist()) == [1, 4]
    assert (parsed.lines, parsed.rejected) == (4, [])


def test_an_object_over_two_lines_does_not_make_up_for_two_on_one() -> None:
    parser = Parser()
    parser.parse(b'{"route": "x"}\n', 1)
    parsed = parser.parse(b'{"route":\n"x"}\n{"route": "x"} {"route": "x"}\n{"route": "x"}\n', 1)
    assert (parsed.rejected, parsed.rows["line"].to_pylist()) == ([1, 2, 3], [4])
    parsed = parser.parse(b'\n{"route": "x"} {"route": "x"}\n', 1)
    assert (parsed.rejected, parsed.rows.num_rows) == ([2], 0)


def test_other_fields_are_kept_whole_and_null_differs_from_absent() -> None:
    rows = [
        {"route": "x", "passed": True, "model": "m", "cost": 1.5, "inner": {"a": [1, {"b": None}]}},
        {"route": "x", "passed": True, "model": None, "cost": 2},
        {"route": "x", "passed": True},
        {"route": "x", "passed": True, "model": "ü\u2028", "cost": "?", "inner": [12345678901234567890123]},
    ]
    block = "".join(json.dumps(row) + "\n" for row in rows).encode()
    parser = Parser(keep_extra=True)
    for first in (1, 5):
        table = parser.parse(block, first).rows.sort_by("line")
        extra = [None if text is None else json.loads(text) for text in table["extra"].to_pylist()]
        expected = [
            {key: value for key, value in row.items() if key not in {"route", "passed"}} for row in rows
        ]
        assert extra == [value or None for value in expected]


def test_a_ledger_of_more_keys_than_can_be_learned_is_read_all_the_same() -> None:
    lines = [json.dumps({"route": "x", f"key{number}": number}) for number in range(500)]
    parsed = Parser(keep_extra=True).parse("\n".join(lines).encode(), 1)
    rows = parsed.rows.sort_by("line")
    assert [json.loads(text)[f"key{at}"] for at, text in enumerate(rows["extra"].to_pylist())] == [
        *range(500)
    ]


def test_a_key_that_has_to_be_escaped_is_one_like_any_other() -> None:
    """It once ended the reading: the decoder that is made for the keys of a ledger takes no such name."""
    lines = [json.dumps({"route": "x", key: 1}) for key in ("\0", '"', "\\", "\n", "\x7f")]
    parsed = Parser(keep_extra=True).parse("\n".join(lines * 2).encode(), 1)
    assert (parsed.rows.num_rows, parsed.rejected) == (10, [])


KEYS = st.sampled_from([*(spelling for names in SPELLINGS.values() for spelling in names), "note", "x", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, 1.0, 0.5, "a", '":', '\\":', " :", "}\n{", "\u2028"]),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2)
)


@st.composite
def raw_lines(draw: st.DrawFn) -> bytes:
    """A line of a ledger: mostly an object, written in any of the ways of JSON; sometimes damaged."""
    items = draw(st.lists(st.tuples(KEYS, VALUES), max_size=6))
    colon, comma = draw(st.sampled_from([":", ": ", " : ", "\t:"])), draw(st.sampled_from([",", ", ", " ,"]))
    ascii_only = draw(st.booleans())
    pairs = [json.dumps(key) + colon + json.dumps(value, ensure_ascii=ascii_only) for key, value in items]
    data = ("{" + comma.join(pairs) + "}" + draw(st.sampled_from(["", "", "", " ", "\r", "x"]))).encode()
    if draw(st.integers(0, 9)) == 0 and data:
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + draw(st.sampled_from([b"", b"\xff", b'"', b"}", b"{", b"\\"])) + data[at + 1 :]
    return data


def expected(data: bytes) -> dict[str, Any] | None:
    """What a line says, by the slow way alone; {} for a blank line."""
    if not data.strip(b" \t\r"):
        return {}
    try:
        value = decode_json(data.decode())
    except (UnicodeDecodeError, RejectedJsonError):
        return None
    return read_row(value) if isinstance(value, dict) else None


@st.composite
def alike_lines(draw: st.DrawFn) -> list[bytes]:
    """Lines as one program writes them, in few forms: the same keys around other values; some of them damaged."""
    colon, comma = draw(st.sampled_from([":", ": ", "\t: "])), draw(st.sampled_from([",", ", "]))
    lines = []
    for keys in draw(st.lists(st.lists(KEYS, min_size=1, max_size=4), min_size=1, max_size=2)):
        for values in draw(st.lists(st.tuples(*[VALUES | ORDINARY for _ in keys]), min_size=8, max_size=14)):
            pairs = [
                json.dumps(key) + colon + json.dumps(value) for key, value in zip(keys, values, strict=True)
            ]
            data = ("{" + comma.join(pairs) + "}").encode()
            if draw(st.integers(0, 5)) == 0:
                at = draw(st.integers(0, len(data) - 1))
                data = data[:at] + draw(st.sampled_from(DAMAGE)) + data[at + draw(st.integers(0, 1)) :]
            lines.append(data)
    return draw(st.permutations(lines))


ORDINARY = st.sampled_from(
    [True, False, None, 0, 1, 0.25, 2**53 - 1, 10**15, -1, 1e-7, "x", "ü", "\U0001f600", '"']
)
DAMAGE = (
    b"", b'"', b"\\", b"}", b"{", b",", b"0", b"-", b".", b"e9", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\udc00",
    b"NaN", b"1e999", b"\x0c", b"\x00", b"\r", b'", "route": "', b' "note": 1,', b'"\\u0072oute": 1, ', b"00",
    b"\\u0000",
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.one_of(st.lists(raw_lines(), min_size=1, max_size=40), alike_lines()), st.booleans())
def test_every_line_is_read_as_the_exact_decoder_reads_it(lines: list[bytes], keep_extra: bool) -> None:
    lines = [part for data in lines for part in data.split(b"\n")]
    block = b"\n".join(lines) + b"\n"
    parser = Parser(keep_extra=keep_extra)
    for _ in range(2):
        parsed = parser.parse(block, 1)
        want = [(at, expected(data)) for at, data in enumerate(lines, 1)]
        assert parsed.rejected == [at for at, row in want if row is None]
        rows = {row["line"]: row for row in parsed.rows.to_pylist()}
        assert [*sorted(rows)] == [at for at, row in want if row]
        for at, row in want:
            if row:
                row["extra"] = row["extra"] if keep_extra else rows[at]["extra"]
                assert same(rows[at], row), (rows[at], row)


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_among_many_that_are_alike_is_counted(text: bytes) -> None:
    """Its own keys are in the form of the others, so that only what is wrong with it tells it apart."""
    usual = b'{"route": "x", "valid": true, "f2p": 0.5, "note": "n", "cost": 1.5, "inner": [{"a": {"b": 1}}]}'
    parser = Parser()
    for _ in range(2):
        parsed = parser.parse(b"\n".join([*[usual] * 20, text, *[usual] * 20, b""]), 1)
        assert (parsed.rejected, parsed.rows.num_rows) == ([21], 40)
    damaged = {
        b'"x"': [b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\x"', b'"a\x0cb"', b"'x'"],
        b"0.5": [b"NaN", b"-Infinity", b"1e999", b".5", b"5.", b"00.5", b"+1", b"0x1", b"1_0", b"0.5f", b"-"],
        b"1.5": [b"NaN", b"1e999", b"1" + b"0" * 400, b"01", b'"\\udc00"', b"True", b"nul"],
        b'"note"': [b'"route"', b'"\\u0072oute"', b'"\\ud83d"'],
        b'"b": 1': [b'"b": 1, "b": 1', b'"b": [1,]', b'"b"', b'"b": 1}, {"b": 1'],
    }
    for old, news in damaged.items():
        for new in news:
            line = usual.replace(old, new)
            wrong = expected(line) is None
            assert parser.parse(b"\n".join([*[usual] * 20, line, b""]), 1).rejected == [21] * wrong, new


def same(row: dict[str, Any], want: dict[str, Any]) -> bool:
    if row["fault"] or want["fault"]:
        # Of a row that is invalid anyhow, which of two values that differ is shown is open.
        return bool(row["fault"]) and bool(want["fault"]) and row["extra"] == want["extra"]
    return all(row[name] == want.get(name) for name in READ.names if name != "line")
