"""Keys of 100,000 cells, against a bare loop of orjson and SHA-256 and against the rfc8785 package."""

import hashlib
from collections.abc import Callable
from typing import Any

import orjson
import rfc8785

from bench_pipeline.identity import IDENTITY_RECIPE, RUN_RECIPE, VERIFY_RECIPE, CellKeys, cell_keys, digest
from bench_pipeline_tests.benchmarks import Row, best_of

CELLS = 100_000
TASKS = 500


def measure() -> list[Row]:
    """Two rows: at most 3 times the bare loop; at most a fifth of the reference package's time."""
    columns = _columns()

    def ours() -> CellKeys:
        return cell_keys(**columns)

    def bare() -> list[bytes]:
        return _loop(columns, orjson.dumps)

    def reference() -> list[bytes]:
        return _loop(columns, rfc8785.dumps)

    if not ours().identity == bare() == reference():
        raise AssertionError("the three ways do not agree on the identities")
    mine = best_of(3, ours)
    return [
        Row("identity: keys of 100,000 cells / loop of orjson + SHA-256", mine, best_of(3, bare), 3.0),
        Row("identity: keys of 100,000 cells / loop of rfc8785 + SHA-256", mine, best_of(1, reference), 0.2),
    ]


def _columns() -> dict[str, Any]:
    """A plan of 500 tasks, 40 setups and 5 attempts; half of the tasks prepare their tree, all are replayed."""
    digests = {
        name: [digest([name, i]) for i in range(TASKS)]
        for name in ("task", "environment", "verify", "effect")
    }
    cells = range(CELLS)
    setups = [digest(["setup", i]) for i in range(40)]
    return {
        "task": [digests["task"][i % TASKS] for i in cells],
        "setup": [setups[i // TASKS % 40] for i in cells],
        "environment": [digests["environment"][i % TASKS] for i in cells],
        "effect": [None if i % 2 else digests["effect"][i % TASKS] for i in cells],
        "prediction": [digest(["prediction", i]) for i in cells],
        "attempt": [i // (TASKS * 40) + 1 for i in cells],
        "verify": [digests["verify"][i % TASKS] for i in cells],
    }


def _loop(columns: dict[str, list[Any]], dumps: Callable[[Any], bytes]) -> list[bytes]:
    """The same three records per cell; keys are written in their canonical order, so orjson needs no sorting."""
    identities = []
    for task, setup, environment, effect, prediction, attempt, verify in zip(*columns.values(), strict=True):
        run: dict[str, Any] = {
            "attempt": attempt,
            "effect": effect,
            "environment": environment,
            "prediction": prediction,
            "recipe": RUN_RECIPE,
            "setup": setup,
            "task": task,
        }
        check = {"environment": environment, "recipe": VERIFY_RECIPE, "verify": verify}
        both = {
            "recipe": IDENTITY_RECIPE,
            "run_key": hashlib.sha256(dumps(run)).hexdigest(),
            "verify_key": hashlib.sha256(dumps(check)).hexdigest(),
        }
        identities.append(hashlib.sha256(dumps(both)).digest())
    return identities
