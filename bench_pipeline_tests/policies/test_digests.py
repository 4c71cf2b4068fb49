"""Digests are those of the public fixture, and the encoding behind them is Go's."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.policies.cases import read_cases
from bench_pipeline.policies.digests import compact_json, indented_json
from bench_pipeline.policies.models import ModelConfig, Settings
from bench_pipeline.policies.recordings import Replay, read_recording
from bench_pipeline_tests.policies.orchard import ORCHARD, case_set

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


def test_the_fixture_has_its_published_digests() -> None:
    cases, model = read_cases(ORCHARD / "cases.json"), Replay(read_recording(ORCHARD / "recording.json"))
    assert cases.sha256 == "bd210045d336a39c571b3b95db324c338d3eb82b0c477175ba70e8c4317d9524"
    assert model.config.recording_sha256 == "b18a7879fa6d94ba217149a665bdffd27871b4174f778e9f6617759e99f23f4b"
    assert model.config.sha256 == "713ad2a41b3b2118e0385f252ac9a952d5a20da6d0fead24d851a74f7f99e90c"


def test_a_live_configuration_has_its_published_digest() -> None:
    url = "http://127.0.0.1:11434/v1/chat/completions"
    config = ModelConfig("http", "m", Settings(temperature=0, max_tokens=128), url)
    assert config.sha256 == "d7db32c569e89f94bd11247ebe65e6ca192a490fa9726a54572d8e66d6a3352c"


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("<a&b>\u2028\u2029é𝄞", '"\\u003ca\\u0026b\\u003e\\u2028\\u2029é𝄞"'),
        ('"\\\n\r\t\x01\x7f', '"\\"\\\\\\n\\r\\t\\u0001\x7f"'),
        (0.0, "0"),
        (-0.0, "0"),
        (2.0, "2"),
        (0.7, "0.7"),
        (1e-7, "1e-7"),
        (0.00001, "0.00001"),
        ([], "[]"),
        ({}, "{}"),
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
    ],
)
def test_values_have_one_compact_form(value: object, form: str) -> None:
    assert compact_json(value) == form


@given(JSON)
def test_both_forms_say_the_same_as_the_value(value: object) -> None:
    assert json.loads(compact_json(value)) == json.loads(indented_json(value)) == value


def test_evidence_is_in_the_digest_and_left_out_when_empty() -> None:
    bare, empty = case_set(("a", "p", "e")), case_set(("a", "p", "e", []))
    assert bare.sha256 == empty.sha256 != case_set(("a", "p", "e", ["x"])).sha256
    text = b'[{"ID":"a","Prompt":"p","Expected":"e"}]'
    assert bare.sha256 == hashlib.sha256(text).hexdigest()
