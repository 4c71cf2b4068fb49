"""One store: its tables, verdicts, candidates, artifacts and locks.

What belongs here: opening a location and handing out its parts. What does not: what they do. Opening touches
nothing and imports nothing heavy; folders come with the first write.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.store.files import Files, LocalFiles, open_files
from bench_pipeline.store.locks import LEASE_TERM_S, Locks
from bench_pipeline.store.quarantine import Quarantine, Quarantined

if TYPE_CHECKING:
    from bench_pipeline.store.artifacts import Artifacts
    from bench_pipeline.store.candidates import Candidates
    from bench_pipeline.store.maintenance import CompactReport, MigrateReport, VerifyReport
    from bench_pipeline.store.parts import PartLog, Surroundings
    from bench_pipeline.store.removal import ForgetReport, GcReport
    from bench_pipeline.store.replays import Replays
    from bench_pipeline.store.tables import Tables
    from bench_pipeline.store.verdicts import Verdicts


class Store:
    """Everything measured, at one location."""

    def __init__(self, files: Files, *, read_only: bool = False, lease_term_s: float = LEASE_TERM_S) -> None:
        self.files = files
        self.read_only = read_only
        self.quarantine = Quarantine(files, read_only=read_only)
        self.locks = Locks(files, lease_term_s=lease_term_s)

    @classmethod
    def open(
        cls, location: str | Path, *, read_only: bool = False, lease_term_s: float = LEASE_TERM_S
    ) -> "Store":
        """The store at a local path or an fsspec URL (``s3://``, ``memory://``, ``file://``).

        ``read_only`` moves and writes nothing, for dry runs. ``lease_term_s`` is how long a lock on an object
        store outlives its owner's last heartbeat. Nothing is read yet: a location that cannot be reached is a
        StoreError of the first use.
        """
        return cls(open_files(location), read_only=read_only, lease_term_s=lease_term_s)

    @property
    def location(self) -> str:
        """The folder or URL."""
        return self.files.location

    @property
    def root(self) -> Path | None:
        """The folder on this machine; None on an object store."""
        return self.files.root if isinstance(self.files, LocalFiles) else None

    @property
    def quarantined(self) -> list[Quarantined]:
        """The corrupt files found since this store was opened."""
        return self.quarantine.found

    @cached_property
    def tables(self) -> "Tables":
        """The tables that people read."""
        from bench_pipeline.store.tables import Tables

        return Tables(self._surroundings)

    @cached_property
    def verdicts(self) -> "Verdicts":
        """Verdicts and execution failures, by identity."""
        from bench_pipeline.store.verdicts import Verdicts

        return Verdicts(self._surroundings)

    @cached_property
    def candidates(self) -> "Candidates":
        """What tools left behind, by run key."""
        from bench_pipeline.store.candidates import Candidates

        return Candidates(self._surroundings)

    @cached_property
    def replays(self) -> "Replays":
        """What came of replaying cells, by identity; nothing that counts."""
        from bench_pipeline.store.replays import Replays

        return Replays(self._surroundings)

    @property
    def logs(self) -> "tuple[PartLog, ...]":
        """Everything that is kept in parts."""
        return (self.verdicts.log, self.candidates.log, self.replays.log)

    @cached_property
    def artifacts(self) -> "Artifacts":
        """Content by its digest."""
        from bench_pipeline.store.artifacts import Artifacts

        return Artifacts(self._surroundings)

    def refuse_read_only(self, tried: str) -> None:
        """Raise StoreError when the store was opened to read only."""
        self._surroundings.refuse_read_only(tried)

    @contextmanager
    def lock(self, name: str, *, wait_s: float | None = None) -> Iterator[None]:
        """Hold the named lock; see ``Locks.hold``."""
        with self.locks.hold(name, wait_s=wait_s):
            yield

    @contextmanager
    def cell_lock(self, identity: str, *, wait_s: float | None = None) -> Iterator[None]:
        """Hold the right to execute one identity (64 hex digits); see ``Locks.hold``."""
        from bench_pipeline.store.verdicts import as_key

        digest = as_key(identity).hex()
        with self.locks.hold(f"cells/{digest[:2]}/{digest}", wait_s=wait_s):
            yield

    def verify(self, *, put_aside: bool = False) -> "VerifyReport":
        """Read and check everything; see ``maintenance.verify``."""
        from bench_pipeline.store import maintenance

        return maintenance.verify(self, put_aside=put_aside)

    def compact(self) -> "CompactReport":
        """Merge small parts; see ``maintenance.compact``."""
        from bench_pipeline.store import maintenance

        return maintenance.compact(self)

    def migrate(self) -> "MigrateReport":
        """Bring old files to the current version; see ``maintenance.migrate``."""
        from bench_pipeline.store import maintenance

        return maintenance.migrate(self)

    def gc(self, *, dry_run: bool = False, grace_s: float | None = None) -> "GcReport":
        """Remove what nothing refers to; see ``removal.collect_garbage``."""
        from bench_pipeline.store import removal

        grace = removal.GRACE_S if grace_s is None else grace_s
        return removal.collect_garbage(self, dry_run=dry_run, grace_s=grace)

    def forget(self, identity: str) -> "ForgetReport":
        """Remove an identity and its evidence; see ``removal.forget``."""
        from bench_pipeline.store import removal

        return removal.forget(self, identity)

    @cached_property
    def _surroundings(self) -> "Surroundings":
        from bench_pipeline.store.parts import Surroundings

        return Surroundings(self.files, self.locks, self.quarantine, self.read_only)
