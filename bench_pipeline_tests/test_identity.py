"""Canonical JSON against its reference, and keys that hold on every machine and for ever."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.identity import CellKeys, canonical_json, cell_keys, digest, digest_bytes

VECTORS = json.loads((Path(__file__).parent / "golden" / "identity.json").read_text(encoding="utf-8"))
COMPONENTS = ("task", "setup", "environment", "effect", "prediction", "attempt", "verify")

text = st.text(st.characters(exclude_categories=("Cs",)))
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | text
scalars |= st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=30)


def keys(**components: Any) -> CellKeys:
    return cell_keys(**{name: [value] for name, value in components.items()})


@given(documents)
def test_canonical_json_is_what_the_reference_implementation_writes(document: Any) -> None:
    assert canonical_json(document) == rfc8785.dumps(document)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_survives_the_round_trip_in_the_reference_form(number: float) -> None:
    written = canonical_json(number)
    assert written == rfc8785.dumps(number)
    assert float(written) == number


@given(documents)
def test_canonical_json_reads_back_as_the_same_document(document: Any) -> None:
    assert json.loads(canonical_json(document), parse_int=float) == document


@given(st.dictionaries(text, scalars), st.randoms())
def test_the_order_of_keys_never_changes_a_digest(document: dict[str, Any], random: Any) -> None:
    items = list(document.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(document)


@given(documents, documents)
def test_two_documents_that_differ_have_two_digests(first: Any, second: Any) -> None:
    assert (digest(first) == digest(second)) == (rfc8785.dumps(first) == rfc8785.dumps(second))


@pytest.mark.parametrize("vector", VECTORS["canonical_json"], ids=lambda vector: vector["name"])
def test_frozen_canonical_forms_still_hold(vector: dict[str, Any]) -> None:
    assert canonical_json(vector["value"]) == vector["canonical"].encode("utf-8")
    assert digest(vector["value"]) == vector["sha256"] == digest_bytes(vector["canonical"].encode("utf-8"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1, float("nan")]}, r"\$\.a\[1\]: nan"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        (2**53, "no exact form"),
        (-(2**53), "no exact form"),
        ({"a": {1: "x"}}, r"\$\.a: the key 1 is not text"),
        ({"a": "x\ud800"}, "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"a": b"bytes"}, r"\$\.a: bytes has no canonical form"),
        ({1, 2}, "set has no canonical form"),
    ],
)
def test_what_has_no_exact_form_is_refused_naming_the_place(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        canonical_json(value)


def test_a_document_that_contains_itself_is_refused() -> None:
    document: list[Any] = []
    document.append(document)
    with pytest.raises(ValueError, match="nested deeper"):
        canonical_json(document)


@pytest.mark.parametrize(
    "pair",
    [
        ("A/B", "A_B"),
        ("A_B", "a_b"),
        ("x.y", "x,y"),
        ("\u00e9", "e\u0301"),
        ("1", "1.0"),
        ("true", "True"),
        ("", " "),
    ],
)
def test_ids_that_differ_only_in_case_separators_or_unicode_form_never_share_a_digest(
    pair: tuple[str, str],
) -> None:
    assert digest({"id": pair[0]}) != digest({"id": pair[1]})


@pytest.mark.parametrize("vector", VECTORS["cells"], ids=lambda vector: vector["name"])
def test_frozen_cell_keys_still_hold(vector: dict[str, Any]) -> None:
    result = keys(**vector["components"])
    assert result.run_key[0].hex() == vector["run_key"]
    assert result.verify_key[0].hex() == vector["verify_key"]
    assert result.identity[0].hex() == vector["identity"]


@pytest.mark.parametrize("vector", VECTORS["cells"], ids=lambda vector: vector["name"])
def test_keys_are_digests_of_the_canonical_form_of_the_documented_records(vector: dict[str, Any]) -> None:
    cell = vector["components"]
    run = {name: cell[name] for name in COMPONENTS if name != "verify"} | {"recipe": vector["recipes"]["run"]}
    verify = {name: cell[name] for name in ("verify", "environment")} | {
        "recipe": vector["recipes"]["verify"]
    }
    both = {"run_key": digest(run), "verify_key": digest(verify), "recipe": vector["recipes"]["identity"]}
    assert (vector["run_key"], vector["verify_key"]) == (both["run_key"], both["verify_key"])
    assert vector["identity"] == digest(both)


@pytest.mark.parametrize(
    ("component", "changes_run", "changes_verify"),
    [
        ("task", True, False),
        ("setup", True, False),
        ("effect", True, False),
        ("prediction", True, False),
        ("attempt", True, False),
        ("environment", True, True),
        ("verify", False, True),
    ],
)
def test_a_changed_component_gives_another_key_of_only_the_keys_it_belongs_to(
    component: str, changes_run: bool, changes_verify: bool
) -> None:
    base = VECTORS["cells"][0]["components"]
    other = base[component] + 1 if component == "attempt" else digest("changed")
    before, after = keys(**base), keys(**{**base, component: other})
    assert (before.run_key != after.run_key) == changes_run
    assert (before.verify_key != after.verify_key) == changes_verify
    assert before.identity != after.identity


def test_the_frozen_vector_sets_every_component_to_a_value_of_its_own() -> None:
    cell = VECTORS["cells"][0]["components"]
    assert set(cell) == set(COMPONENTS)
    assert cell["attempt"] != 1
    assert len({str(value) for value in cell.values()}) == len(COMPONENTS)
    assert None not in cell.values()


@pytest.mark.parametrize(
    "name",
    [
        "evaluation",
        "path",
        "pricing",
        "credentials",
        "concurrency",
        "tier",
        "measured_at",
        "label",
        "task_id",
    ],
)
def test_what_is_not_identity_cannot_be_handed_in(name: str) -> None:
    base = VECTORS["cells"][0]["components"]
    with pytest.raises(TypeError, match=name):
        keys(**base, **{name: digest(name)})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=20))
def test_keys_of_a_column_are_the_keys_of_its_rows_alone(rows: list[tuple[str, int]]) -> None:
    base = VECTORS["cells"][0]["components"]
    cells = [{**base, "setup": digest(name), "verify": digest([name]), "attempt": n} for name, n in rows]
    together = cell_keys(**{name: [cell[name] for cell in cells] for name in COMPONENTS})  # type: ignore[arg-type]
    alone = [keys(**cell) for cell in cells]
    assert together.run_key == [cell.run_key[0] for cell in alone]
    assert together.verify_key == [cell.verify_key[0] for cell in alone]
    assert together.identity == [cell.identity[0] for cell in alone]
    assert len(set(together.identity)) == len(set(rows))


def _broken(change: Callable[[dict[str, list[Any]]], None]) -> dict[str, list[Any]]:
    columns = {name: [value] for name, value in VECTORS["cells"][0]["components"].items()}
    change(columns)
    return columns


@pytest.mark.parametrize(
    "columns",
    [
        _broken(lambda c: c["task"].append(digest("more"))),
        _broken(lambda c: c.update(task=["A" * 64])),
        _broken(lambda c: c.update(setup=["a" * 63])),
        _broken(lambda c: c.update(setup=["a" * 64 + "\n"])),
        _broken(lambda c: c.update(verify=['a","x":"'])),
        _broken(lambda c: c.update(environment=[None])),
        _broken(lambda c: c.update(attempt=[0])),
        _broken(lambda c: c.update(attempt=[True])),
        _broken(lambda c: c.update(attempt=["1"])),
    ],
)
def test_columns_that_are_not_digests_or_differ_in_length_are_refused(columns: dict[str, list[Any]]) -> None:
    with pytest.raises(ValueError, match=r"length|digest|whole number"):
        cell_keys(**columns)


def test_no_cells_have_no_keys() -> None:
    empty: list[Any] = []
    result = cell_keys(
        task=empty,
        setup=empty,
        environment=empty,
        effect=empty,
        prediction=empty,
        attempt=empty,
        verify=empty,
    )
    assert result == CellKeys([], [], [])


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_keys_are_equal_under_another_hash_seed(seed: str) -> None:
    program = (
        "import json, sys\n"
        "from bench_pipeline.identity import cell_keys, digest\n"
        "doc = json.load(sys.stdin)\n"
        "keys = cell_keys(**{name: [value] for name, value in doc['cell'].items()})\n"
        "print(keys.identity[0].hex(), digest({k: list(doc['cell']) for k in set(doc['cell'])}))\n"
    )
    cell = VECTORS["cells"][0]["components"]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"cell": cell}),
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = digest({name: list(cell) for name in cell})
    assert done.stdout.split() == [VECTORS["cells"][0]["identity"], expected]
