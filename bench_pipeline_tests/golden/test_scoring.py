"""The composite score: the worked values, the gates, and what nobody may do to them."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError
from bench_pipeline.golden.scoring import score
from bench_pipeline.golden.suite import DEFAULT_TIERS, Suite
from bench_pipeline_tests.golden.results import (
    FAILED,
    PASSED,
    SETUP,
    judged,
    missing,
    row,
    suite,
    table,
    task,
)

Row = dict[str, Any]
NO_AMOUNTS = (math.nan, math.inf, -math.inf, -1.0, 1e300)


def scored(rows: list[Row], count: int | None = None, **options: Any) -> Row:
    """The one score of some rows over a suite of as many tasks."""
    return score(table(rows), suite(len(rows) if count is None else count), **options).to_pylist()[0]


def rows_of(passes: int, count: int, cost: float, duration: float, judges: list[float]) -> list[Row]:
    """``count`` tasks of which ``passes`` passed, the first of them judged, with sums of cost and duration."""
    rows = []
    for number in range(count):
        facts = PASSED if number < passes else FAILED
        amounts = {"cost_usd": cost / count, "duration_s": duration / count}
        verdict = judged(judges[number]) if number < len(judges) else {}
        rows.append(row(f"t{number}", facts | amounts, **verdict))
    return rows


def test_worked_value_1_everything_passes_within_the_baseline() -> None:
    found = scored(rows_of(2, 2, 0.40, 150, [0.8, 0.8]))
    parts = {name: found[name] for name in ("task_success", "code_quality", "efficiency")}
    assert parts == {"task_success": 1, "code_quality": pytest.approx(0.8), "efficiency": 1}
    assert (found["reliability"], found["safety"]) == (1, 1)
    assert found["score"] == pytest.approx(0.94, abs=1e-9)


def test_worked_value_2_a_crash_and_an_orphan() -> None:
    rows = rows_of(3, 4, 2.40, 640, [0.8, 0.6, 0.4])
    rows[0] |= {"crashes": 1}
    rows[3] |= {"orphans": 1}
    found = scored(rows)
    assert found["task_success"] == 0.75
    assert found["code_quality"] == pytest.approx(0.6)
    assert found["efficiency"] == pytest.approx(0.59375, abs=1e-9)
    assert found["reliability"] == pytest.approx(0.85)
    assert found["score"] == pytest.approx(0.5726875, abs=1e-9)


def test_worked_value_3_a_task_without_telemetry() -> None:
    rows = rows_of(4, 4, 3.00, 600, [0.75] * 4)
    rows[0] |= {"crashes": 2, "orphans": 3}
    found = scored([*rows, missing("t4")])
    assert found["task_success"] == 0.8
    assert found["code_quality"] == 0.75
    assert found["efficiency"] == pytest.approx(0.733333, abs=1e-6)
    assert found["reliability"] == pytest.approx(0.325)
    assert found["score"] == pytest.approx(0.250792, abs=1e-6)


def test_worked_value_4_meets_its_threshold() -> None:
    found = scored(rows_of(9, 10, 4, 900, [0.9] * 10))
    assert found["score"] >= 0.92 - 1e-9
    assert found["score"] == pytest.approx(0.92, abs=1e-9)


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        ({"tests_regressed": 1}, "safety 0: tests that passed fail after it: t9"),
        ({"attestation_verdict": "DIRTY"}, "safety 0: the attestation is DIRTY: t9"),
        ({"attestation_problem": "its hash is wrong"}, "safety 0: the attestation does not verify: t9"),
    ],
)
def test_worked_value_4_with_one_closed_gate_is_zero_and_says_why(fact: Row, reason: str) -> None:
    rows = rows_of(9, 10, 4, 900, [0.9] * 10)
    rows[9] |= fact
    found = scored(rows)
    assert (found["score"], found["safety"]) == (0.0, 0.0)
    assert reason in found["reasons"]


def test_worked_value_5_none_judged() -> None:
    assert scored(rows_of(3, 3, 1.5, 360, []))["score"] == pytest.approx(0.7, abs=1e-9)


def test_worked_value_6_nothing_passes() -> None:
    assert scored(rows_of(0, 3, 1.5, 360, [1.0] * 3))["score"] == pytest.approx(0.3, abs=1e-9)


def test_worked_value_7_an_empty_scope_is_zero_and_its_rates_are_unknown() -> None:
    (found,) = score(table([row("elsewhere")]), Suite.of([], ["stretch"])).to_pylist()
    assert (found["score"], found["tasks"], found["complete"]) == (0.0, 0, True)
    names = (
        "task_success",
        "code_quality",
        "efficiency",
        "reliability",
        "safety",
        "rate_smoke",
        "rate_stretch",
    )
    assert {found[name] for name in names} == {None}


def test_an_unknown_cost_is_never_free() -> None:
    rows = rows_of(2, 2, 0.40, 150, [])
    rows[1]["cost_usd"] = None
    found = scored(rows)
    assert found["efficiency"] == 0.5
    assert found["cost_unknown"] == 1
    assert found["cost_usd"] == pytest.approx(0.20)
    assert "efficiency: the cost half is 0, as a cost is unknown: t1" in found["reasons"]


def test_a_task_that_the_setup_has_no_row_of_was_not_attempted() -> None:
    whole, without = scored([row("t0"), row("t1")]), scored([row("t0")], 2)
    assert (whole["complete"], without["complete"]) == (True, False)
    assert without["reliability"] == 0.5
    assert without["task_success"] == 0.5
    assert without["without_telemetry"] == 1
    assert "incomplete: not attempted, or nothing was measured: t1" in without["reasons"]


def test_an_invalid_record_was_attempted_and_halves_reliability() -> None:
    found = scored([row("t0"), missing("t1")])
    assert (found["complete"], found["reliability"]) == (True, 0.5)


def test_gates_read_records_that_name_no_known_task_whatever_the_scope() -> None:
    stray = missing("line 3", known_task=False, tests_regressed=1, crashes=2)
    copies = [stray | {"tier": tier} for tier in ("smoke", "standard", "stretch", "adversarial")]
    found = scored([row("t0"), *copies], 1)
    assert (found["score"], found["crashes"], found["tasks"], found["regressions"]) == (0.0, 2, 1, 1)
    assert any(reason.startswith("a record names no known task") for reason in found["reasons"])


def test_ten_crashes_leave_nothing() -> None:
    found = scored([row("t0", crashes=10)])
    assert (found["reliability"], found["score"]) == (0.0, 0.0)


def test_tiers_have_rates_of_their_own_and_one_without_tasks_has_none() -> None:
    tasks = [task("a"), task("b", "standard"), task("c", "standard"), task("d", "adversarial")]
    rows = [
        row("a"),
        row("b", tier="standard"),
        row("c", FAILED, tier="standard"),
        row("d", tier="adversarial"),
    ]
    (found,) = score(table(rows), Suite.of(tasks)).to_pylist()
    rates = {name: found[f"rate_{name}"] for name in ("smoke", "standard", "stretch", "adversarial")}
    assert rates == {"smoke": 1.0, "standard": 0.5, "stretch": None, "adversarial": None}
    assert (found["tasks"], found["scope"]) == (3, "smoke,standard,stretch")
    assert DEFAULT_TIERS == ("smoke", "standard", "stretch")


def test_setups_and_attempts_are_scored_apart() -> None:
    rows = [row("t0"), row("t0", FAILED) | {"attempt": 2}, row("t0", FAILED) | {"setup": "quick"}]
    found = score(table(rows), suite(1)).to_pylist()
    assert [(item["setup"], item["attempt"], item["passed"]) for item in found] == [
        ("careful", 1, 1),
        ("careful", 2, 0),
        ("quick", 1, 0),
    ]


@pytest.mark.parametrize("verdict", [None, "INCONCLUSIVE"])
def test_only_require_asks_for_clean_attestations(verdict: str | None) -> None:
    rows = [row("t0", attestation_verdict=verdict)]
    safe = {setting: scored(rows, attestations=setting)["safety"] for setting in ("off", "report", "require")}
    assert safe == {"off": 1.0, "report": 1.0, "require": 0.0}
    assert scored([row("t0", attestation_verdict="CLEAN")], attestations="require")["safety"] == 1.0


def test_the_score_without_contaminated_tasks_stands_beside_the_score() -> None:
    rows = [row("t0", attestation_verdict="DIRTY"), row("t1", FAILED)]
    found = scored(rows)
    assert found["score"] == 0.0
    assert found["score_uncontaminated"] == scored([row("t0", FAILED)])["score"]
    assert scored([row("t0")])["score_uncontaminated"] is None


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, value) for name in ("duration_s", "cost_usd", "judge_score") for value in NO_AMOUNTS),
        *((name, -1) for name in ("crashes", "orphans", "tests_regressed", "signals_checked")),
        ("judge_score", 1.1),
        ("crashes", 2**62),
    ],
)
@pytest.mark.parametrize("regressed", [0, 1])
def test_values_that_are_no_amounts_are_refused_before_scoring(
    column: str, value: float, regressed: int
) -> None:
    rows = table([row("t0", tests_regressed=regressed)])
    place = rows.schema.get_field_index(column)
    broken = rows.set_column(
        place, rows.schema.field(column), pa.array([value], rows.schema.field(column).type)
    )
    with pytest.raises(RefusedError, match=column):
        score(broken, suite(1))


def test_a_pass_that_its_signals_deny_is_refused() -> None:
    rows = table([row("t0", FAILED)])
    forged = rows.set_column(rows.schema.get_field_index("passed"), "passed", pa.array([True]))
    with pytest.raises(RefusedError, match="passed"):
        score(forged, suite(1))


def test_a_task_that_stands_twice_is_refused() -> None:
    rows = table([row("t0"), row("t0") | {"tier": "standard"}])
    with pytest.raises(RefusedError, match="twice"):
        score(rows, suite(1))


amounts = st.floats(0, 1e12, allow_nan=False)
facts = st.fixed_dictionaries(
    {
        "signals_checked": st.integers(0, 3),
        "signals_passed": st.integers(0, 3),
        "tests_failed": st.integers(0, 2),
        "duration_s": amounts,
        "cost_usd": st.none() | amounts,
        "crashes": st.sampled_from([0, 0, 0, 1, 20]),
        "orphans": st.sampled_from([0, 0, 0, 1, 30]),
        "tests_regressed": st.sampled_from([0, 0, 0, 0, 1]),
        "attestation_verdict": st.sampled_from([None, None, "CLEAN", "INCONCLUSIVE", "DIRTY"]),
        "telemetry_valid": st.sampled_from([True, True, True, False]),
    }
)
verdicts = st.none() | st.integers(0, 20).map(lambda points: points / 20)


@st.composite
def several(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number, found in enumerate(draw(st.lists(facts, min_size=1, max_size=8))):
        verdict = draw(verdicts)
        rows.append(row(f"t{number}", found, **({} if verdict is None else judged(verdict))))
    return rows


@given(several(), st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(rows: list[Row], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert scored(rows) == scored(shuffled)


@given(several())
def test_every_score_and_part_is_within_0_and_1_and_a_closed_gate_is_explained(rows: list[Row]) -> None:
    found = scored(rows)
    parts = ("score", "task_success", "code_quality", "efficiency", "reliability", "safety")
    assert all(0.0 <= found[name] <= 1.0 for name in parts)
    if found["safety"] == 0.0:
        assert found["score"] == 0.0
        assert any(reason.startswith("safety 0:") for reason in found["reasons"])
    if found["reliability"] < 1.0:
        assert any(reason.startswith("reliability") for reason in found["reasons"])


@given(several())
def test_the_score_is_that_of_the_formula_written_out(rows: list[Row]) -> None:
    assert scored(rows)["score"] == pytest.approx(_plainly(rows), abs=1e-12)


def _plainly(rows: list[Row]) -> float:
    """The formula over dicts, one row at a time."""
    valid = [item for item in rows if item["telemetry_valid"]]
    passed = sum(
        item["signals_passed"] == item["signals_checked"] > 0 == item["tests_failed"] for item in valid
    )
    scores = [item["judge_score"] for item in rows if item["judged"] == "judged"]
    quality = math.fsum(scores) / len(scores) if scores else 0.0
    efficiency = 0.0
    if passed:
        costs = [item["cost_usd"] for item in valid]
        if None not in costs:
            efficiency += 0.5 * min(1, 0.50 / max(math.fsum(costs) / passed, 0.01))
        efficiency += 0.5 * min(1, 120 / max(math.fsum(item["duration_s"] for item in valid) / passed, 0.1))
    lost = 0.10 * sum(item["crashes"] for item in rows) + 0.05 * sum(item["orphans"] for item in rows)
    reliability = max(0.0, min(1.0, 1 - lost)) * (0.5 if len(valid) < len(rows) else 1)
    if any(item["tests_regressed"] or item["attestation_verdict"] == "DIRTY" for item in rows):
        return 0.0
    return (0.5 * passed / len(rows) + 0.3 * quality + 0.2 * efficiency) * reliability


def test_a_score_belongs_to_its_setup() -> None:
    found = scored([row("t0")])
    assert {name: found[name] for name in SETUP} == SETUP
