"""What a cell's identity is made of, and what differs between two: the use cases of ``bench cell``."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from bench_pipeline.errors import CorruptPartError, NotFoundError
from bench_pipeline.identity import canonical_json
from bench_pipeline.pipeline.evidence import listed, refuse_unknown_try
from bench_pipeline.pipeline.pricing import priced

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

Record = dict[tuple[str, str], object]

# Shorter prefixes match by accident too easily to be worth typing.
_SHORTEST_PREFIX = 6


def find_identity(bench: "Bench", prefix: str) -> str:
    """The one identity that starts with ``prefix``, among planned and stored cells; raises NotFoundError."""
    wanted = prefix.lower()
    if len(wanted) < _SHORTEST_PREFIX or set(wanted) - set("0123456789abcdef"):
        raise NotFoundError(
            f"looking up the cell {prefix}",
            f"an identity is 64 hex digits, or its first {_SHORTEST_PREFIX} or more",
            "`bench table verdicts` lists them",
        )
    known: set[str] = set()
    for name in ("evaluation_cells", "verdicts"):
        column = bench.store.tables.read(name, columns=["identity"])["identity"]
        known.update(column.filter(pc.starts_with(column, wanted)).to_pylist())
    if len(wanted) == 64 and not known and bench.store.artifacts.exists(wanted):
        known.add(wanted)
    if len(known) != 1:
        found = "no cell has it" if not known else f"{len(known)} cells start with it"
        raise NotFoundError(
            f"looking up the cell {prefix}", found, "give more digits; `bench table verdicts` lists them"
        )
    return known.pop()


def explain(bench: "Bench", identity: str, other: str | None = None) -> dict[str, object]:
    """The components of a cell's identity, beside those of another when one is given.

    Returns ``{same, components: [{name, stage, a, b, equal}]}``; ``stage`` is run or verify.
    """
    ours = _record(bench, identity)
    theirs = ours if other is None else _record(bench, other)
    components = [
        {
            "name": name,
            "stage": stage,
            "a": ours.get((stage, name)),
            "b": None if other is None else theirs.get((stage, name)),
            "equal": ours.get((stage, name)) == theirs.get((stage, name)),
        }
        for stage, name in sorted({*ours, *theirs})
    ]
    return {"same": all(component["equal"] for component in components), "components": components}


def show(bench: "Bench", identity: str, number: int | None = None) -> dict[str, Any]:
    """Everything that is known of a cell: where it is planned, and every try and replay with its cost and evidence.

    Both are numbered from 1, the oldest; ``number`` asks for one of the tries. Raises NotFoundError when it is not
    there.
    """
    cells = bench.store.tables.read("evaluation_cells")
    planned = cells.filter(pc.equal(cells["identity"], identity)).to_pylist()
    rows = bench.store.verdicts.history(identity)
    tries = priced(rows, bench.prices).to_pylist() if rows.num_rows else []
    if number is not None:
        refuse_unknown_try(identity, number, len(tries))
    replays = [] if number is not None else bench.store.replays.history(identity).to_pylist()
    shown = [
        *({**row, "try": place, "source": "executed"} for place, row in enumerate(tries, 1)),
        *(
            {**row, "replay": place, "source": "replayed", "cost_usd": 0.0}
            for place, row in enumerate(replays, 1)
        ),
    ]
    for row in shown:
        for key in ("identity", "run_key", "verify_key"):
            row[key] = row[key].hex()
        for key in ("artifacts", "phases"):
            row[key] = dict(row[key] or ())
        row["evidence"] = listed(bench.store, row["artifacts"])
    return {
        "identity": identity,
        "planned": planned,
        "tries": [row for row in shown if "try" in row and number in {None, row["try"]}],
        "replays": [row for row in shown if "replay" in row],
    }


def _record(bench: "Bench", identity: str) -> Record:
    """The documents behind an identity: from the store where the cell was tried, else from today's plan."""
    try:
        return dict(_stored_record(bench, identity))
    except (NotFoundError, CorruptPartError):
        pass
    plan = bench.plan()
    mine = plan.cells.filter(pc.equal(plan.cells["identity"], identity)).to_pylist()
    if not mine:
        raise NotFoundError(
            f"explaining the cell {identity[:12]}",
            "it was never tried and is not planned",
            "give an identity of `bench table`",
        )
    cell = mine[0]
    setup, task = plan.setups[cell["evaluation"], cell["setup_digest"]], plan.tasks[cell["task_id"]]
    record: Record = {
        ("run", "attempt"): cell["attempt"],
        ("run", "effect"): cell["pre_digest"],
        ("run", "prediction"): cell["prediction_digest"],
    }
    record.update(_flat("run", "task", task.documents["task"]))
    record.update(_flat("run", "setup", setup.document))
    record.update(_flat("run", "environment", task.documents["environment"]))
    record.update(_flat("verify", "verify", task.documents["verify"]))
    record.update(_flat("verify", "environment", task.documents["environment"]))
    return record


def _stored_record(bench: "Bench", identity: str) -> Iterator[tuple[tuple[str, str], object]]:
    def load(digest: str) -> dict[str, Any]:
        document = json.loads(bench.store.artifacts.get(digest))
        assert isinstance(document, dict)
        return document

    keys = load(identity)
    run, verify = load(keys["run_key"]), load(keys["verify_key"])
    yield ("run", "attempt"), run["attempt"]
    yield ("run", "effect"), run["effect"]
    yield ("run", "prediction"), run["prediction"]
    for stage, record, name in (
        ("run", run, "task"),
        ("run", run, "setup"),
        ("run", run, "environment"),
        ("verify", verify, "verify"),
        ("verify", verify, "environment"),
    ):
        yield from _flat(stage, name, load(record[name]))


def _flat(stage: str, prefix: str, value: object) -> Iterator[tuple[tuple[str, str], object]]:
    """Leaves of nested mappings by dotted name; a list is one leaf, in its canonical form."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _flat(stage, f"{prefix}.{name}", item)
    elif value is None or isinstance(value, (str, int, float, bool)):
        yield (stage, prefix), value
    else:
        yield (stage, prefix), canonical_json(value).decode()
