"""Which ledgers are new or have changed, and what has to be asked for; told from listings, hashing only in doubt.

What belongs here: deciding, over what is there, what is known and what is running, and remembering it in the store.
What does not: Dagster (``defs.sensors``, ``cli.launching``), reading ledgers (``ledger_tables``).

Everything that is asked for stays in the state until its reading is recorded, under the run key that it was first asked
with. So a tick that is cut off, a restart, and a deleted Dagster database lose nothing and ask nothing twice.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_pipeline.identity import digest
from bench_pipeline.pipeline.asking import MOST_TRIES, Run
from bench_pipeline.pipeline.ledger_files import LedgerFile, LedgerFolder
from bench_pipeline.pipeline.ledger_reading import project_routes
from bench_pipeline.pipeline.ledger_records import (
    LOCK,
    Asked,
    Known,
    Record,
    State,
    read_record,
    read_state,
    write_state,
)
from bench_pipeline.pipeline.ledger_tables import routes_digest

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

# A file that nobody has written for this long is whole when it is first seen; a younger one when two ticks agree.
SETTLED_S = 60.0
# A ledger that never rests is read as it is after this long, and again each time that it passes.
LONGEST_WAIT_S = 600.0
# Time for hashing in one tick, of the minute that Dagster gives it.
_HASHING_S = 20.0
_CHUNK = 1 << 20
_LONGEST_KEY = 64
# A run that ended well has not read a ledger whose reading is not recorded.
_AGAIN = {"failed", "done"}


@dataclass(frozen=True)
class Request:
    """One run over a range of ledgers that stand beside each other; ``key`` is asked for at most once."""

    key: str
    first: str
    last: str
    ledgers: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a look came to: the keys that Dagster does not know yet, in their order, and the runs to ask for."""

    new_keys: list[str]
    requests: list[Request]


def look(
    bench: "Bench",
    partitions: Sequence[str],
    run_of: Callable[[str], Run],
    *,
    now: float | None = None,
    settle: bool = True,
) -> Found:
    """Look at the ledgers once and remember what was seen.

    Args:
        bench: the project and its store.
        partitions: the keys that Dagster knows, in its order.
        run_of: what became of the run of a key.
        now: the time, in seconds since 1970.
        settle: wait for files that may still be growing; without, they are taken as they are.
    """
    folder = LedgerFolder(bench.project)
    files = folder.files()
    if not files and not read_state(bench.store).ledgers:
        return Found([], [])
    routes = routes_digest(project_routes(bench.project))
    with bench.store.lock(LOCK):
        before, state = read_state(bench.store), read_state(bench.store)
        watch = _Watch(bench, folder, state, time.time() if now is None else now, settle=settle)
        if state.routes != routes:
            watch.changed.update(state.ledgers)
            state.routes = routes
        watch.compare(files)
        for ledger in sorted(watch.changed):
            state.ledgers[ledger].change += 1
        listed = set(partitions)
        new_keys = [ledger for ledger in state.ledgers if ledger not in listed]
        order = [*partitions, *new_keys]
        requests = [*watch.ask_again(order, run_of), *watch.ask(order, [*watch.changed, *watch.new])]
        if state != before:
            write_state(bench.store, state)
    return Found(new_keys, requests)


class _Watch:
    """One look: what is known, changed step by step."""

    def __init__(
        self, bench: "Bench", folder: LedgerFolder, state: State, now: float, *, settle: bool
    ) -> None:
        self._bench = bench
        self._folder = folder
        self._state = state
        self._now = now
        self._settle = settle
        self._deadline = time.monotonic() + _HASHING_S
        self._seen = state.seen
        self._waiting = state.waiting
        # Partition keys become folder names, which some systems compare without letter case.
        self._taken = {key.lower() for key in state.ledgers}
        self.changed: set[str] = set()
        self.new: list[str] = []

    def compare(self, files: Sequence[LedgerFile]) -> None:
        """Compare the files that are there with those that are known."""
        state = self._state
        by_name = {file.name: file for file in files}
        names = {known.name for known in state.ledgers.values()}
        gone = {key: known for key, known in state.ledgers.items() if known.name not in by_name}
        self._seen, state.seen = state.seen, {}
        self._waiting, state.waiting = state.waiting, {}
        for key, known in state.ledgers.items():
            file = by_name.get(known.name)
            if file is not None and known.stamp != file.stamp and self._settled(file):
                self._look_at(key, known, file)
        for file in files:
            if file.name not in names:
                self._take(file, gone)

    def _look_at(self, key: str, known: Known, file: LedgerFile) -> None:
        """A ledger whose file has another stamp: it was written, or touched, or copied anew."""
        same = self._same_content(key, file)
        if same is None:
            # No time left: the next tick looks again.
            self._state.seen[file.name] = file.stamp
            return
        known.stamp = file.stamp
        if not same:
            self.changed.add(key)

    def _take(self, file: LedgerFile, gone: dict[str, Known]) -> None:
        """A file under a name that is not known: a ledger that was renamed, or a new one."""
        moved = next((key for key, known in gone.items() if file.inode and known.stamp == file.stamp), None)
        if moved is None:
            if not self._settled(file):
                return
            moved = next((key for key in gone if self._same_content(key, file)), None)
        if moved is not None:
            known = gone.pop(moved)
            known.name, known.stamp = file.name, file.stamp
            return
        key = _free_key(file.name, self._taken)
        self._taken.add(key.lower())
        self._state.ledgers[key] = Known(file.name, file.stamp)
        self.new.append(key)

    def _settled(self, file: LedgerFile) -> bool:
        """Whether a file is as the last look saw it, old, or waited for too long; if not, it is remembered."""
        old = file.modified is not None and self._now - file.modified > SETTLED_S
        if not self._settle or old or self._seen.get(file.name) == file.stamp:
            return True
        since = self._waiting.get(file.name, self._now)
        if self._now - since >= LONGEST_WAIT_S:
            return True
        self._state.seen[file.name] = file.stamp
        self._state.waiting[file.name] = since
        return False

    def _same_content(self, key: str, file: LedgerFile) -> bool | None:
        """Whether a file holds what was read last; None when there is no time left to hash it."""
        record = self._record_of_now(key)
        if record is None or record.size != file.size:
            return False
        found = self._hash(file.name)
        return None if found is None else found == record.digest

    def _record_of_now(self, key: str) -> Record | None:
        """The last reading of a ledger, unless a change that it does not know of was asked for since."""
        record = read_record(self._bench.store, key)
        return record if record and record.change >= self._state.ledgers[key].change else None

    def _hash(self, name: str) -> str | None:
        seen = hashlib.sha256()
        with self._folder.open(name) as (stream, _):
            while data := stream.read(_CHUNK):
                seen.update(data)
                if time.monotonic() > self._deadline:
                    return None
        return seen.hexdigest()

    def ask(self, order: Sequence[str], ledgers: Iterable[str], tries: int = 1) -> Iterator[Request]:
        """Ask for runs over these ledgers, one for each stretch of neighbours in Dagster's order."""
        for stretch in _stretches(order, set(ledgers)):
            changes = {key: self._state.ledgers[key].change for key in stretch}
            run_key = digest({"recipe": "ledger-run/1", "changes": changes, "tries": tries})
            self._state.asked[run_key] = Asked(changes, tries)
            yield Request(run_key, stretch[0], stretch[-1], tuple(stretch))

    def ask_again(self, order: Sequence[str], run_of: Callable[[str], Run]) -> Iterator[Request]:
        """What was asked for and has not been read: once more where no run came of it, or a failed one."""
        for run_key, asked in list(self._state.asked.items()):
            waiting = [key for key, change in asked.changes.items() if not self._is_read(key, change)]
            run = run_of(run_key) if waiting else "going"
            if not waiting or run == "given_up" or (run in _AGAIN and asked.tries >= MOST_TRIES):
                del self._state.asked[run_key]
            elif run in _AGAIN:
                del self._state.asked[run_key]
                yield from self.ask(order, waiting, asked.tries + 1)
            elif run == "absent":
                stretches = list(_stretches(order, set(asked.changes)))
                if len(stretches) == 1:
                    (stretch,) = stretches
                    yield Request(run_key, stretch[0], stretch[-1], tuple(stretch))
                else:
                    # Dagster's order is another than when this was asked for: its database was made anew.
                    del self._state.asked[run_key]
                    yield from self.ask(order, waiting, asked.tries)

    def _is_read(self, key: str, change: int) -> bool:
        record = read_record(self._bench.store, key)
        return record is not None and record.change >= change


def _stretches(order: Sequence[str], wanted: set[str]) -> Iterator[list[str]]:
    """The wanted keys in the given order, neighbours together."""
    stretch: list[str] = []
    for key in order:
        if key in wanted:
            stretch.append(key)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _free_key(name: str, taken: set[str]) -> str:
    """A partition key for a file: its name without the ending, made of letters, digits, hyphen and underscore."""
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", name.partition(".jsonl")[0]).strip("-")[:_LONGEST_KEY] or "ledger"
    number, key = 1, stem
    while key.lower() in taken:
        number += 1
        key = f"{stem}-{number}"
    return key
