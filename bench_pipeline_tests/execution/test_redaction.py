"""No form of a credential is left in what is stored, and nothing else is changed."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench_pipeline.execution import redaction
from bench_pipeline.execution.redaction import MIN_SECRET_BYTES, Redactor

QUOTED = '"in/quotes" & <more>\\'
KEY = 'sk-ant-api03-AbC_dEf-0123456789+/=xyz"\\quoted'
# Characters of secrets and of the text around them are apart, so that a match can only be the secret.
SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="xyz .\0"), min_size=8, max_size=60).filter(
    lambda value: len(value.strip().encode()) >= MIN_SECRET_BYTES
)
AROUND = st.text("xyz .", max_size=30)


def _forms(value: str) -> dict[str, bytes]:
    data = value.encode()
    in_json = json.dumps(value)[1:-1]
    forms = {
        "raw": value,
        "json": in_json,
        "json, not ascii": json.dumps(value, ensure_ascii=False)[1:-1],
        "json in json": json.dumps(in_json)[1:-1],
        "json in json in json": json.dumps(json.dumps(in_json)[1:-1])[1:-1],
        "json with solidus": in_json.replace("/", "\\/"),
        "url": quote(value, safe=""),
        "url path": quote(value),
        "url form": quote_plus(value),
        "url in lower case": re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quote(value, safe="")),
        "xml": html.escape(value),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
    }
    return {name: form.encode() for name, form in forms.items()}


@pytest.mark.parametrize("value", [KEY, QUOTED])
@pytest.mark.parametrize("form", sorted(_forms(KEY)))
def test_each_form_of_a_key_is_replaced_whole(form, value):
    text = b"before " + _forms(value)[form] + b" after"
    assert Redactor({"API_KEY": value}).redact(text) == b"before [redacted:API_KEY] after"


@given(SECRETS, AROUND, AROUND, st.sampled_from(sorted(_forms(KEY))))
def test_any_secret_is_replaced_in_every_form_and_nothing_around_it(value, before, after, form):
    written = _forms(value.strip())[form]
    text = before.encode() + written + after.encode()
    assert Redactor({"K": value}).redact(text) == before.encode() + b"[redacted:K]" + after.encode()


@given(SECRETS, st.binary(max_size=7), st.binary(max_size=7), st.booleans())
def test_base64_is_found_at_any_alignment_in_both_alphabets(value, before, after, url_safe):
    value = value.strip()
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    clean = Redactor({"K": value}).redact(encode(before + value.encode() + after))
    assert b"[redacted:K]" in clean
    # What is left around the mark decodes to less than the secret, wherever it is cut.
    left = clean.replace(b"[redacted:K]", b"")
    assert len(left) <= (len(before) + len(after)) * 8 // 6 + 6


@pytest.mark.parametrize("line_break", [b"\n", b"\r\n", b"\\n", b"\\r\\n", b"\\\\n"])
@pytest.mark.parametrize("width", [16, 64, 76])
@pytest.mark.parametrize("before", [0, 1, 2, 50])
def test_base64_is_found_when_it_is_broken_into_lines(line_break, width, before):
    value = "".join(chr(33 + number * 7 % 90) for number in range(120))
    whole = base64.b64encode(b"x" * before + value.encode() + b"tail")
    lines = line_break.join(whole[at : at + width] for at in range(0, len(whole), width))
    clean = Redactor({"K": value}).redact(lines)
    assert clean.count(b"[redacted:K]") == 1
    assert len(clean) < before * 2 + 40


def test_a_key_in_a_basic_authorization_header_is_found():
    header = b"Authorization: Basic " + base64.b64encode(f"user:{KEY}".encode())
    assert b"[redacted:API_KEY]" in Redactor({"API_KEY": KEY}).redact(header)


@given(st.binary(max_size=500))
def test_text_without_secrets_is_left_as_it_is(data):
    assume(b"AbC" not in data)
    redactor = Redactor({"API_KEY": KEY, "EMPTY": "", "SHORT": "true"})
    assert redactor.redact(data) == data
    assert Redactor({}).redact(data) == data


def test_a_short_value_is_left_alone_and_named():
    redactor = Redactor({"FLAG": "true", "PIN": "1234567", "KEY": "12345678", "NONE": " "})
    assert redactor.redact(b"true 1234567 12345678") == b"true 1234567 [redacted:KEY]"
    assert redactor.too_short == ("FLAG", "PIN")


def test_of_two_secrets_the_one_that_holds_the_other_is_replaced_whole():
    redactor = Redactor({"SHORT": "abcdefgh", "LONG": "abcdefgh12345678"})
    assert redactor.redact(b"abcdefgh12345678 abcdefgh") == b"[redacted:LONG] [redacted:SHORT]"


def test_white_space_around_a_value_is_not_part_of_it():
    assert Redactor({"K": "abcdefgh\n"}).redact(b"xabcdefghx") == b"x[redacted:K]x"


def test_a_secret_of_many_lines_is_found_in_a_json_string():
    pem = "-----BEGIN KEY-----\nabc/def+\n-----END KEY-----"
    assert Redactor({"PEM": pem}).redact(json.dumps({"out": pem}).encode()) == b'{"out": "[redacted:PEM]"}'


def test_text_is_redacted_too():
    redactor = Redactor({"API_KEY": KEY})
    assert redactor.redact_text(f"é {KEY} \udc80") == "é [redacted:API_KEY] \udc80"


def test_a_value_that_is_no_utf8_is_found():
    value = b"\xff\xfe secret \x80".decode("utf-8", "surrogateescape")
    assert Redactor({"K": value}).redact(b"a \xff\xfe secret \x80 b") == b"a [redacted:K] b"


def test_backslashes_for_ever_end(tmp_path):
    """A run of backslashes must not make the pattern try every way of sharing them out."""
    redactor = Redactor({"K": "abcd" + "\\" * 30 + '"' * 10 + "z"})
    text = b"abcd" + b"\\" * 20_000 + b'"' * 9
    assert redactor.redact(text) == text


class TestFiles:
    @given(st.lists(st.sampled_from(["filler", KEY, KEY[:20], "é", "\n"]), max_size=30), st.integers(1, 60))
    def test_chunks_of_any_size_give_what_the_whole_gives(self, tmp_path_factory, parts, chunk):
        path = tmp_path_factory.mktemp("files") / "log"
        data = "".join(parts).encode()
        path.write_bytes(data)
        redactor = Redactor({"API_KEY": KEY})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redaction, "_CHUNK", chunk)
            assert redactor.redact_file(path) == (redactor.redact(data) != data)
        assert path.read_bytes() == redactor.redact(data)
        assert list(path.parent.iterdir()) == [path]

    def test_a_file_without_secrets_is_not_written(self, tmp_path):
        path = tmp_path / "log"
        path.write_bytes(b"nothing")
        path.chmod(0o444)
        before = path.stat()
        assert not Redactor({"API_KEY": KEY}).redact_file(path)
        assert path.stat() == before
