"""Which lines are rows: the compiled pass and the exact decoder agree on every line, wherever it stands."""

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.ledgers import parsing
from bench_pipeline.ledgers.fields import NUMBERS, SPELLINGS, extra_text, read_row
from bench_pipeline.ledgers.parsing import Parsed, Parser, Scanning
from bench_pipeline_tests.ledgers.scanners import plain_scanning
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


WAYS = {"exact": None, "scanned": plain_scanning()}


def rows_of(parsed: Parsed) -> list[dict[str, Any]]:
    """The rows of a block in the order of its lines, with what they say."""
    found = []
    for rows in parsed.rows:
        texts = {name: column.to_pylist() for name, column in rows.texts.items()}
        for at, line_number in enumerate(rows.lines.tolist()):
            numbers = {name: None if (value := float(rows[name][at])) != value else value for name in NUMBERS}
            said = {name: column[at] for name, column in texts.items()}
            found.append({"line": line_number, "fault": rows.faults.get(at), **numbers, **said})
    return sorted(found, key=itemgetter("line"))


@pytest.fixture(params=WAYS)
def scanning(request: pytest.FixtureRequest) -> Scanning | None:
    return WAYS[request.param]


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_is_counted_with_its_number_wherever_it_stands(
    text: bytes, scanning: Scanning | None
) -> None:
    for before, after in ((0, 0), (1, 1), (40, 3)):
        block = b"\n".join([*[GOOD] * before, text, *[GOOD] * after, b""])
        parsed = Parser(scanning=scanning).parse(block, 11)
        assert parsed.rejected == [11 + before]
        assert len(rows_of(parsed)) == before + after
        assert parsed.lines == before + after + 1


def test_lines_end_at_line_feeds_only(scanning: Scanning | None) -> None:
    text = '{"route": "a\u2028b\u0085c\\fd", "passed": true}'
    parsed = Parser(scanning=scanning).parse(f"{text}\r\n\n \t\r\n{text}\n".encode(), 1)
    assert [(row["line"], row["route"]) for row in rows_of(parsed)] == [
        (at, "a\u2028b\u0085c\fd") for at in (1, 4)
    ]
    assert (parsed.lines, parsed.rejected) == (4, [])


def test_an_object_over_two_lines_does_not_make_up_for_two_on_one(scanning: Scanning | None) -> None:
    block = b'{"route":\n"x"}\n{"route": "x"} {"route": "x"}\n{"route": "x"}\n'
    parsed = Parser(scanning=scanning).parse(block, 1)
    assert (parsed.rejected, [row["line"] for row in rows_of(parsed)]) == ([1, 2, 3], [4])


def test_other_fields_are_kept_whole_and_null_differs_from_absent(scanning: Scanning | None) -> None:
    others = [
        {"model": "m", "cost": 1.5, "inner": {"a": [1, {"b": None}]}},
        {"model": None, "cost": 2},
        {},
        {"model": "ü\u2028", "cost": "?", "inner": [12345678901234567890123, -0.0, 1e300, {}]},
        {"\0": 1, '"': "\\", "\\": "\n", "/": "a/b", "é": [], "": {"": ""}},
    ]
    for spaces in ((", ", ": "), (",", ":"), (" ,\t", " : ")):
        for ascii_only in (True, False):
            lines = [
                json.dumps({"route": "x", **row, "passed": True}, separators=spaces, ensure_ascii=ascii_only)
                for row in others
            ]
            parsed = Parser(keep=True, scanning=scanning).parse("\n".join(lines).encode(), 1)
            assert [row["extra"] for row in rows_of(parsed)] == [extra_text(row) for row in others]


def test_rows_of_more_keys_than_are_scanned_are_read_all_the_same(scanning: Scanning | None) -> None:
    rows = [{"route": "x", **{f"key{at}": at for at in range(count)}} for count in (254, 255, 256, 300)]
    block = "\n".join(map(json.dumps, rows)).encode()
    parsed = Parser(keep=True, scanning=scanning).parse(block, 1)
    assert [len(json.loads(row["extra"])) for row in rows_of(parsed)] == [254, 255, 256, 300]
    twice = json.dumps(rows[1]).replace('"key200"', '"key0"').encode()
    assert Parser(scanning=scanning).parse(twice, 1).rejected == [1]


def test_a_block_of_more_lines_than_are_read_at_once_is_read_whole(
    scanning: Scanning | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "_MOST_ROWS", 3)
    monkeypatch.setattr(parsing, "_MOST_ODD", 2)
    lines = [GOOD, b"?", b"", b"?", b"?", *[GOOD] * 7, b"?"]
    parsed = Parser(scanning=scanning).parse(b"\n".join(lines), 1)
    assert (parsed.lines, parsed.rejected) == (13, [2, 4, 5, 13])
    assert [row["line"] for row in rows_of(parsed)] == [1, *range(6, 13)]


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


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.lists(raw_lines(), min_size=1, max_size=40), alike_lines()), st.booleans())
def test_every_line_is_read_as_the_exact_decoder_reads_it(lines: list[bytes], keep: bool) -> None:
    lines = [part for data in lines for part in data.split(b"\n")]
    assert_read_exactly(lines, keep=keep, scanning=WAYS["scanned"])


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_among_many_that_are_alike_is_counted(text: bytes) -> None:
    """Its own keys are in the form of the others, so that only what is wrong with it tells it apart."""
    usual = b'{"route": "x", "valid": true, "f2p": 0.5, "note": "n", "cost": 1.5, "inner": [{"a": {"b": 1}}]}'
    damaged = {
        b'"x"': [b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\x"', b'"a\x0cb"', b"'x'"],
        b"0.5": [b"NaN", b"-Infinity", b"1e999", b".5", b"5.", b"00.5", b"+1", b"0x1", b"1_0", b"0.5f", b"-"],
        b"1.5": [b"NaN", b"1e999", b"1" + b"0" * 400, b"01", b'"\\udc00"', b"True", b"nul"],
        b'"note"': [b'"route"', b'"\\u0072oute"', b'"\\ud83d"'],
        b'"b": 1': [b'"b": 1, "b": 1', b'"b": [1,]', b'"b"', b'"b": 1}, {"b": 1'],
    }
    lines = [usual.replace(old, new) for old, news in damaged.items() for new in news]
    among = [usual, usual, text, *[other for line in lines for other in (usual, usual, line)], usual]
    assert_read_exactly(among, keep=False, scanning=WAYS["scanned"])


DIGITS = st.integers(0, 10**20) | st.builds(
    lambda power, off: abs(2**power + off), st.integers(50, 64), st.integers(-3, 3)
)


@given(DIGITS, st.integers(0, 25), st.sampled_from(["", "e0", "E-3", "e+22", "e-22", "e23", "e-330"]))
def test_a_fraction_is_the_double_nearest_to_it(digits: int, places: int, power: str) -> None:
    text = str(digits).zfill(places + 1)
    text = (f"{text[:-places]}.{text[-places:]}" if places else text) + power
    lines = [f'{{"{name}": {sign}{text}}}'.encode() for name in ("partial", "steps") for sign in ("", "-")]
    assert_read_exactly(lines, keep=False, scanning=WAYS["scanned"])


def test_nothing_is_odd_in_what_programs_write() -> None:
    """Each odd line costs as much as fifty others."""
    shares = [passed / total for total in range(1, 25) for passed in range(total + 1)]
    rows = [{"route": "x", "valid": True, "partial": share, "steps": at} for at, share in enumerate(shares)]
    rows += [
        {**rows[0], "note": {"a": ["\U0001f600\n", None, {}, 1e-300]}},
        {"input_tokens": 12.0, "f2p": None},
    ]
    text = "\n".join(map(json.dumps, rows))
    scanner = Parser(scanning=WAYS["scanned"])._scanner
    assert scanner is not None
    for spaced in (text, text.replace(" ", ""), text.replace(":", " :\t")):
        assert scanner.read(spaced.encode(), 1)[2] == []


def assert_read_exactly(lines: Sequence[bytes], *, keep: bool, scanning: Scanning | None) -> None:
    """Hold each line's reading against that of the slow way."""
    block = b"\n".join(lines) + b"\n"
    parsed = Parser(keep=keep, scanning=scanning).parse(block, 1)
    want = [(at, expected(data)) for at, data in enumerate(lines, 1)]
    assert parsed.lines == len(lines)
    assert parsed.rejected == [at for at, row in want if row is None]
    rows = {row["line"]: row for row in rows_of(parsed)}
    assert [*rows] == [at for at, row in want if row]
    for at, row in want:
        if row:
            found = rows[at]
            assert found == {
                **dict.fromkeys(found),
                **{name: row[name] for name in found if name in row},
                "line": at,
            }
