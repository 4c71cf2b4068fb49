"""Pairs of setups: shared tasks, flips, intervals, p-values, sums side by side, and who is meant."""

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench_pipeline.errors import NotFoundError, UsageError
from bench_pipeline.pipeline.comparing import (
    Flip,
    SideBySide,
    compare_all,
    compare_setups,
    detectable_by_evaluation,
    resolve_setup,
    task_repositories,
)
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.outcomes import sha, tables, tasks


def with_column(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))


A = tasks(*map(bool, [1, 1, 1, 0, 1, 0, 1, 1, 0, 1]))
B = tasks(*map(bool, [1, 0, 1, 0, 0, 0, 1, 1, 0, 0]))


def test_a_pair_has_its_difference_interval_p_value_and_flips() -> None:
    (result,) = compare_setups(*tables({"a": A, "b": B}), "a", "b")
    assert result.row == {
        "evaluation": "nightly",
        "setup_a": "a",
        "setup_b": "b",
        "shared_tasks": 10,
        "only_a": 0,
        "only_b": 0,
        "difference": pytest.approx(0.3),
        "diff_low": pytest.approx(-0.045550, abs=1e-6),
        "diff_high": pytest.approx(0.645550, abs=1e-6),
        "p_value": 0.25,
        "p_holm": 0.25,
        "method": "paired t, independent tasks, n=10 tasks; exact McNemar n=10 tasks",
    }
    assert result.flips == (Flip("t001", 1, 0), Flip("t004", 1, 0), Flip("t009", 1, 0))
    assert (result.passed, result.measured) == ((7, 4), (10, 10))
    assert result.rates == (0.7, 0.4)


def test_the_first_setup_that_was_named_is_a() -> None:
    (result,) = compare_setups(*tables({"a": A, "b": B}), "b", "a")
    assert result.row["setup_a"] == "b"
    assert result.row["difference"] == pytest.approx(-0.3)
    assert result.flips[0] == Flip("t001", 0, 1)


def test_setups_measured_on_50_and_30_tasks_are_compared_on_the_28_they_share() -> None:
    wide = {**tasks(*[True] * 20, *[False] * 30), **tasks("timeout", None, start=50)}
    narrow = {
        **tasks(*[True] * 14, *[False] * 14),
        **tasks(*[None] * 22, start=28),
        **tasks(True, True, start=50),
    }
    (result,) = compare_setups(*tables({"wide": wide, "narrow": narrow}), "wide", "narrow")
    assert (result.row["shared_tasks"], result.row["only_a"], result.row["only_b"]) == (28, 22, 2)
    assert result.row["difference"] == pytest.approx(6 / 28)
    assert result.only_b == ("t050", "t051")
    assert len(result.only_a) == 22


def test_several_attempts_are_compared_by_sign_flips_over_tasks() -> None:
    a = {f"t{place}": [True, True, place % 2 == 0] for place in range(6)}
    b = {f"t{place}": [True, False, False] for place in range(6)}
    (result,) = compare_setups(*tables({"a": a, "b": b}), "a", "b")
    assert result.row["p_value"] == pytest.approx(2 / 64)
    assert result.row["diff_low"] is None
    assert result.row["method"] == (
        "no interval: fewer than 10 tasks, n=6 tasks; sign-flip n=6 tasks (6 differ), exact enumeration"
    )


def test_setups_without_a_shared_task_have_neither_difference_nor_p_value() -> None:
    (result,) = compare_setups(*tables({"a": tasks(True, None), "b": tasks(None, True)}), "a", "b")
    assert (result.row["shared_tasks"], result.row["difference"], result.row["p_value"]) == (0, None, None)
    assert (result.row["only_a"], result.row["only_b"], result.rates) == (1, 1, (None, None))


def test_sums_are_over_the_cells_where_both_sides_know_the_value() -> None:
    cells, verdicts = tables({"a": tasks(True, True, False, "timeout"), "b": tasks(True, True, True, True)})
    costs: list[object] = [1.0, 2.0, None, 9.0, 0.5, None, 0.5, 0.5]
    (result,) = compare_setups(cells, with_column(verdicts, "cost_usd", costs), "a", "b")
    assert result.sums[0] == SideBySide("cost_usd", 1.0, 0.5, 1, 3)
    assert result.sums[1] == SideBySide("tokens", None, None, 0, 3)


def test_all_pairs_are_corrected_together_and_one_pair_has_the_same_p() -> None:
    results = {"c": tasks(*[True] * 12), "a": tasks(*[False] * 12), "b": tasks(*[True] * 6, *[False] * 6)}
    cells, verdicts = tables(results)
    table = compare_all(cells, verdicts)
    assert table.schema.equals(table_schema("paired_comparisons").schema)
    assert [(row["setup_a"], row["setup_b"]) for row in table.to_pylist()] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert table["p_value"].to_pylist() == pytest.approx([0.03125, 0.000488281, 0.03125], abs=1e-8)
    assert table["p_holm"].to_pylist() == pytest.approx([0.0625, 0.001464844, 0.0625], abs=1e-8)
    (one,) = compare_setups(cells, verdicts, "c", "a")
    assert one.row["p_holm"] == table["p_holm"][1].as_py()


def test_the_order_of_the_tables_changes_nothing() -> None:
    cells, verdicts = tables({"a": A, "b": B, "c": tasks(*[True] * 10)})
    backwards = list(range(29, -1, -1))
    assert compare_all(cells, verdicts).equals(compare_all(cells.take(backwards), verdicts.take(backwards)))


def test_tasks_of_shared_repositories_are_clustered() -> None:
    repositories = {f"t{place:03}": f"repository {place % 4}" for place in range(8)}
    cells, verdicts = tables({"a": A, "b": B})
    (result,) = compare_setups(cells, verdicts, "a", "b", clusters=repositories)
    assert "clustered by 6 repositories" in str(result.row["method"])
    assert compare_all(cells, verdicts, clusters=repositories)["method"].to_pylist() == [result.row["method"]]


def test_the_repository_of_a_task_is_its_own_remote_or_the_projects() -> None:
    tasks_of_project = [
        SimpleNamespace(id="own", source=SimpleNamespace(remote="https://x.example/r")),
        SimpleNamespace(id="default", source=SimpleNamespace(remote=None)),
        SimpleNamespace(id="folder", source=SimpleNamespace(path="/p")),
    ]
    assert task_repositories(tasks_of_project, "https://d.example/r") == {
        "own": "https://x.example/r",
        "default": "https://d.example/r",
    }
    assert task_repositories(tasks_of_project, None) == {"own": "https://x.example/r"}


def test_each_evaluation_that_has_both_setups_gives_a_row_of_its_own() -> None:
    pairs = [tables({"a": A, "b": B}, evaluation=name) for name in ("two", "one")]
    cells, verdicts = (pa.concat_tables(pair) for pair in zip(*pairs, strict=True))
    assert [item.row["evaluation"] for item in compare_setups(cells, verdicts, "a", "b")] == ["one", "two"]
    (only,) = compare_setups(cells, verdicts, "a", "b", evaluation="two")
    assert only.row["evaluation"] == "two"


def test_setups_of_different_evaluations_are_compared_on_their_common_tasks() -> None:
    pairs = [tables({"a": A}, evaluation="one"), tables({"b": B}, evaluation="two")]
    cells, verdicts = (pa.concat_tables(pair) for pair in zip(*pairs, strict=True))
    (result,) = compare_setups(cells, verdicts, "a", "b")
    assert (result.row["evaluation"], result.row["shared_tasks"]) == ("one+two", 10)
    changed = with_column(
        cells,
        "task_digest",
        [sha("new") if n == 0 else v for n, v in enumerate(cells["task_digest"].to_pylist())],
    )
    (result,) = compare_setups(changed, verdicts, "a", "b")
    assert (result.row["shared_tasks"], result.mixed) == (9, ("t000",))


def test_a_setup_is_found_by_label_or_by_the_start_of_its_digest() -> None:
    cells, _ = tables({"tool/model/high": A, "tool/model/low": B})
    assert resolve_setup(cells, "tool/model/low") == sha("tool/model/low")
    assert resolve_setup(cells, sha("tool/model/low")[:8].upper()) == sha("tool/model/low")


def test_an_unknown_setup_names_the_nearest() -> None:
    cells, verdicts = tables({"claude-code/opus/high": A, "codex/gpt/low": B})
    with pytest.raises(NotFoundError, match="nearest: claude-code/opus/high"):
        resolve_setup(cells, "claude-code/opus")
    with pytest.raises(NotFoundError, match="no setup"):
        compare_setups(cells, verdicts, "codex/gpt/low", sha("codex/gpt/low")[:3])
    with pytest.raises(NotFoundError, match="bench run"):
        resolve_setup(cells.slice(0, 0), "a")


def test_a_name_for_two_setups_is_refused_with_their_digests() -> None:
    cells, _ = tables({"a": A, "b": B})
    same = with_column(cells, "setup", ["same"] * 20)
    with pytest.raises(UsageError, match=sha("a")[:12]):
        resolve_setup(same, "same")
    clash = with_column(cells, "setup_digest", ["abcd1" + d[5:] for d in cells["setup_digest"].to_pylist()])
    with pytest.raises(UsageError, match="2 setups"):
        resolve_setup(clash, "abcd")


def test_a_setup_is_not_compared_with_itself() -> None:
    cells, verdicts = tables({"a": A, "b": B})
    with pytest.raises(UsageError, match="same setup"):
        compare_setups(cells, verdicts, "a", sha("a"))


def test_the_plan_says_what_difference_it_could_show() -> None:
    cells, _ = tables({"a": {f"t{n}": [None] * 10 for n in range(1260)}, "b": {"t0": [None]}})
    shown = detectable_by_evaluation(cells)["nightly"]
    assert shown.difference == pytest.approx(0.03, abs=1e-5)
    assert "assumed" in shown.assumptions
    few = cells.filter(pc.is_in(cells["task_id"], pa.array(["t0", "t1"])))
    assert detectable_by_evaluation(few)["nightly"].difference is not None
    once = few.filter(pc.equal(few["attempt"], 1))
    assert detectable_by_evaluation(once)["nightly"].difference is None
    assert detectable_by_evaluation(cells.slice(0, 0)) == {}
