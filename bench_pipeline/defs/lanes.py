"""What a lane adds to the code location, and how the partition shapes of all lanes become runs.

What belongs here: the shape of a lane. What does not: its assets (``assets/<lane>``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import dagster as dg


@dataclass(frozen=True)
class Lane:
    """One lane: its input files, its assets by the run that they share, and its own checks.

    Dagster runs assets of one partition shape together, and unpartitioned ones with either: ``by_tier`` are those
    over tier x attempt and the unpartitioned ones below them, ``by_attempt`` those over attempts and theirs,
    ``by_ledger`` those over ledgers and theirs. Each of these is a table of its name and gets the checks of that
    table; ``checks`` are further ones. ``pages`` are made for people, of all lanes, in a run of their own that comes
    last.
    """

    inputs: Sequence[dg.AssetSpec]
    by_tier: Sequence[dg.AssetsDefinition] = ()
    by_attempt: Sequence[dg.AssetsDefinition] = ()
    by_ledger: Sequence[dg.AssetsDefinition] = ()
    pages: Sequence[dg.AssetsDefinition] = ()
    checks: Sequence[dg.AssetChecksDefinition] = ()

    @property
    def assets(self) -> list[dg.AssetsDefinition]:
        """All of its assets."""
        return [*self.by_tier, *self.by_attempt, *self.by_ledger, *self.pages]

    @property
    def tables(self) -> list[str]:
        """The tables that its assets write."""
        written = (*self.by_tier, *self.by_attempt, *self.by_ledger)
        return [asset.key.to_user_string() for asset in written]


OWNERS = ["team:benchmarks"]


class AssetOptions(TypedDict):
    """What all table assets of a lane share."""

    group_name: str
    owners: list[str]
    kinds: set[str]
    code_version: str
    tags: dict[str, str]


def asset_options(lane: str) -> AssetOptions:
    """The options of a lane's assets, which are Parquet tables made by Python."""
    return {
        "group_name": lane,
        "owners": OWNERS,
        "kinds": {"python", "parquet"},
        "code_version": "1",
        "tags": {"lane": lane},
    }
