"""Which kind of failure a failed task is, and what deserves a warning on one that passed.

What belongs here: the categories, their order (the first that matches decides) and their words. What does not: how
facts come about (``telemetry``, ``measured``) and what they cost in points (``scoring``).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# In the order in which they are looked at.
SEVERITIES: Mapping[str, str] = MappingProxyType(
    {
        "test_regression": "critical",
        "timeout": "high",
        "scope_creep": "high",
        "conflict": "high",
        "hallucination": "high",
        "orientation_miss": "medium",
        "incomplete": "medium",
        "context_miss": "medium",
    }
)
CATEGORIES = tuple(SEVERITIES)
# Names in a sentence before the rest is only counted.
_NAMED = 5


def classify(rows: pa.Table) -> pa.Table:
    """``rows`` of task_results with their failure columns and warnings, from their other columns."""
    number = _categories(rows)
    failed = pa.array(number >= 0)
    names = pa.array(CATEGORIES).take(pa.array(np.maximum(number, 0)))
    severities = pa.array(list(SEVERITIES.values())).take(pa.array(np.maximum(number, 0)))
    nothing = pa.scalar(None, pa.string())
    crept = pc.equal(names, "scope_creep")
    columns = {
        "failure_category": pc.if_else(failed, names, nothing),
        "failure_severity": pc.if_else(failed, severities, nothing),
        "failure_details": _details(rows, number),
        "failure_files": pc.if_else(
            failed,
            pc.if_else(crept, rows["out_of_scope"], rows["modified_files"]),
            pa.scalar(None, pa.list_(pa.string())),
        ),
        "warnings": _warnings(rows, ~(number >= 0)),
    }
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), _flat(values))
    return rows


def over_time(rows: pa.Table) -> np.ndarray:
    """Which tasks ran out of time, by their own word or by the clock; a limit of 0 is none."""
    limit = _numbers(rows, "max_duration_s")
    return _flags(rows, "timed_out") | ((limit > 0) & (_numbers(rows, "duration_s") > limit))


def _categories(rows: pa.Table) -> np.ndarray:
    """The place of each row's category in CATEGORIES; -1 for a task that passed or that nobody knows."""
    read, modified = _numbers(rows, "files_read"), _numbers(rows, "files_modified", np.inf)
    checked, passed = _numbers(rows, "signals_checked"), _numbers(rows, "signals_passed")
    conditions = {
        "test_regression": _numbers(rows, "tests_regressed") > 0,
        "timeout": over_time(rows),
        "scope_creep": _lengths(rows, "out_of_scope") > 0,
        "conflict": _flags(rows, "conflict"),
        "hallucination": _flags(rows, "compile_error") | (_lengths(rows, "invented_names") > 0),
        "orientation_miss": read > modified,
        "incomplete": (passed < checked) | ~_flags(rows, "telemetry_valid"),
        "context_miss": np.ones(rows.num_rows, dtype=bool),
    }
    found = np.select([conditions[name] for name in CATEGORIES], list(range(len(CATEGORIES))), -1)
    return np.where(_flags(rows, "passed") | ~_flags(rows, "known_task"), -1, found)


def _details(rows: pa.Table, number: np.ndarray) -> pa.Array:
    """A sentence for each failed row, made category by category and put back in the order of rows."""
    order = np.argsort(number, kind="stable")
    texts = [pa.nulls(int((number < 0).sum()), pa.string())]
    texts += [
        _SENTENCES[name](rows.take(pa.array(np.flatnonzero(number == place))))
        for place, name in enumerate(CATEGORIES)
    ]
    return pa.concat_arrays([_flat(text) for text in texts]).take(pa.array(np.argsort(order, kind="stable")))


def _regression(rows: pa.Table) -> pa.Array:
    sentence = _join(_text(rows, "tests_regressed"), " tests that passed before the work fail after it")
    problem = _text(rows, "telemetry_problem")
    return pc.if_else(pc.is_valid(problem), _join(sentence, "; the record is invalid: ", problem), sentence)


def _timeout(rows: pa.Table) -> pa.Array:
    took = _join("took ", _text(rows, "duration_s"), " s, ", _text(rows, "max_duration_s"), " s are allowed")
    return pc.if_else(pc.fill_null(rows["timed_out"], False), "ran out of time", took)


def _scope(rows: pa.Table) -> pa.Array:
    return _join("changed outside its files: ", _listed(rows["out_of_scope"]))


def _conflict(rows: pa.Table) -> pa.Array:
    return _same(rows, "the change does not apply")


def _hallucination(rows: pa.Table) -> pa.Array:
    named = pc.greater(pc.fill_null(pc.list_value_length(rows["invented_names"]), 0), 0)
    return pc.if_else(
        named, _join("refers to what does not exist: ", _listed(rows["invented_names"])), "does not compile"
    )


def _orientation(rows: pa.Table) -> pa.Array:
    return _join("read ", _text(rows, "files_read"), " files and changed ", _text(rows, "files_modified"))


def _incomplete(rows: pa.Table) -> pa.Array:
    count = _join(_text(rows, "signals_passed"), " of ", _text(rows, "signals_checked"), " signals passed")
    problem = pc.coalesce(_text(rows, "telemetry_problem"), _same(rows, "no telemetry"))
    return pc.if_else(rows["telemetry_valid"], count, problem)


def _context(rows: pa.Table) -> pa.Array:
    failed = _join(_text(rows, "tests_failed"), " tests failed, though every signal passed")
    unchecked = pc.equal(pc.fill_null(rows["signals_checked"], 0), 0)
    return pc.if_else(unchecked, "no signal was checked", failed)


_SENTENCES: Mapping[str, Callable[[pa.Table], pa.Array]] = MappingProxyType(
    {
        "test_regression": _regression,
        "timeout": _timeout,
        "scope_creep": _scope,
        "conflict": _conflict,
        "hallucination": _hallucination,
        "orientation_miss": _orientation,
        "incomplete": _incomplete,
        "context_miss": _context,
    }
)


def _warnings(rows: pa.Table, passed: np.ndarray) -> pa.Array:
    """Of tasks that passed: outside their files, over their time, over their cost."""
    texts = {
        "scope": (_lengths(rows, "out_of_scope") > 0, _scope),
        "time": (over_time(rows), _timeout),
        "cost": (_numbers(rows, "cost_usd") > _numbers(rows, "max_cost_usd", np.inf), _cost),
    }
    found: dict[int, list[str]] = {}
    for mask, sentence in texts.values():
        places = np.flatnonzero(mask & passed & _flags(rows, "passed"))
        words = _flat(sentence(rows.take(pa.array(places)))).to_pylist()
        for place, text in zip(places.tolist(), words, strict=True):
            found.setdefault(place, []).append(text)
    if not found:
        return pa.nulls(rows.num_rows, pa.list_(pa.string()))
    return pa.array([found.get(place) for place in range(rows.num_rows)], pa.list_(pa.string()))


def _cost(rows: pa.Table) -> pa.Array:
    return _join("cost ", _text(rows, "cost_usd"), " USD, ", _text(rows, "max_cost_usd"), " USD are allowed")


def _flags(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(pc.fill_null(rows[name], False), dtype=bool)


def _numbers(rows: pa.Table, name: str, unknown: float = 0) -> np.ndarray:
    return np.asarray(pc.fill_null(rows[name].cast(pa.float64(), safe=False), float(unknown)))


def _lengths(rows: pa.Table, name: str) -> np.ndarray:
    return np.asarray(pc.fill_null(pc.list_value_length(rows[name]), 0))


def _text(rows: pa.Table, name: str) -> pa.Array:
    return rows[name].cast(pa.string())


def _join(*parts: object) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _listed(lists: pa.Array) -> pa.Array:
    """The first few names of each list, and how many more there are."""
    more = pc.subtract(pc.list_value_length(lists), _NAMED)
    shown = pc.binary_join(pc.list_slice(lists, 0, _NAMED), ", ")
    return pc.if_else(pc.greater(more, 0), _join(shown, " and ", more.cast(pa.string()), " more"), shown)


def _same(rows: pa.Table, text: str) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows.num_rows)


def _flat(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of what may have come in chunks."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
