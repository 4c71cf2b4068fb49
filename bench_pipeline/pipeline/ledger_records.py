"""What the store remembers of ledgers: which file each is, what was asked for, and what its last reading came to.

What belongs here: these documents, under ``ledgers/`` in the store, so that Dagster's database can go. What does not:
deciding (``ledger_watch``) and reading (``ledger_tables``).
"""

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_pipeline.store import Store

_STATE = "ledgers/state.json"
LOCK = "ledgers-state"


@dataclass
class Known:
    """A ledger: the file that it is, the stamp at which its content was last looked at, and how often that changed."""

    name: str
    stamp: list[str | int]
    change: int = 1


@dataclass
class Asked:
    """What one run was asked for: ledgers, and the change of each that it has to have read."""

    changes: dict[str, int]
    tries: int = 1


@dataclass
class State:
    """Everything that is known between ticks.

    ``seen``: files that may still be growing, as the last tick saw them; ``waiting``: since when each is waited for.
    """

    ledgers: dict[str, Known] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    seen: dict[str, list[str | int]] = field(default_factory=dict)
    routes: str = ""
    waiting: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """The last whole reading of a ledger.

    ``offset`` is where its last line feed is, ``prefix`` the digest of the bytes up to there, and ``summary`` the state
    of the sums there; None where what follows cannot be read on its own (compressed, or a row without a line feed).
    """

    ledger: str
    name: str
    digest: str
    size: int
    change: int
    routes: str
    segments: int
    rows: list[dict[str, Any]]
    offset: int | None = None
    prefix: str = ""
    summary: dict[str, Any] | None = None


def read_state(store: "Store") -> State:
    """The state; one that is absent or damaged is made anew from the records, so that nothing is asked for twice."""
    try:
        document = json.loads(store.files.read(_STATE))
        return State(
            {key: Known(**known) for key, known in document["ledgers"].items()},
            {key: Asked(**asked) for key, asked in document["asked"].items()},
            document["seen"],
            document["routes"],
            document.get("waiting", {}),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        records = read_records(store)
    known = {record.ledger: Known(record.name, [record.size], record.change) for record in records}
    return State(known, routes=records[0].routes if records else "")


def write_state(store: "Store", state: State) -> None:
    """Keep the state."""
    store.files.write(_STATE, json.dumps(asdict(state)).encode())


def read_record(store: "Store", ledger: str) -> Record | None:
    """The last reading of a ledger; None where there is none, or it is damaged: then it is read anew."""
    return _record(store, _path(ledger))


def read_records(store: "Store") -> list[Record]:
    """The last readings of all ledgers, by key."""
    found = (_record(store, info.path) for info in store.files.list("ledgers/records"))
    return sorted((record for record in found if record is not None), key=lambda record: record.ledger)


def write_record(store: "Store", record: Record) -> None:
    """Keep a reading."""
    store.files.write(_path(record.ledger), json.dumps(asdict(record)).encode())


def _record(store: "Store", path: str) -> Record | None:
    try:
        return Record(**json.loads(store.files.read(path)))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _path(ledger: str) -> str:
    return f"ledgers/records/{ledger}.json"
