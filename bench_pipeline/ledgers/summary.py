"""The sums of a ledger per route, exact in whatever order and pieces its rows are added.

What belongs here: adding up, and the documents that others rely on. What does not: printing. Nothing here averages,
adds or ranks across route kinds, counts of rows apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench_pipeline.ledgers.routes import FAIR, KINDS, ROUTER
from bench_pipeline.ledgers.validity import Judged

# Sums of fractions are kept as whole numbers of this unit, so that neither order nor pieces change them.
_UNIT = 2**60
_HALF_BITS = 30
# The line numbers that a person needs to find what is wrong.
SHOWN_LINES = 10
_INT64 = 2**63 - 1

SUMMED = ("input_tokens", "output_tokens", "steps")
AVERAGED = ("partial", "f2p")


@dataclass
class RouteSums:
    """What is known of one route; all but ``rows`` over its valid rows."""

    kind: str
    rows: int = 0
    valid: int = 0
    passes: int = 0
    units: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AVERAGED, 0))
    given: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*AVERAGED, *SUMMED), 0))
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))
    peak_context: int | None = None

    def add(self, other: "RouteSums") -> None:
        """Add what is known of the same route from other rows."""
        self.rows += other.rows
        self.valid += other.valid
        self.passes += other.passes
        for own, more in (
            (self.units, other.units),
            (self.given, other.given),
            (self.sums, other.sums),
        ):
            for name, value in more.items():
                own[name] += value
        peaks = [peak for peak in (self.peak_context, other.peak_context) if peak is not None]
        self.peak_context = max(peaks, default=None)

    def document(self, route: str | None) -> dict[str, Any]:
        """The row of a summary; null where no valid row has a value."""
        averages: dict[str, Any] = {}
        for name in AVERAGED:
            count = self.given[name]
            averages[f"avg_{name}"] = self.units[name] / (count * _UNIT) if count else None
            averages[f"{name}_n"] = count
        sums = {name: self.sums[name] if self.given[name] else None for name in SUMMED}
        return {
            "route": route,
            "kind": self.kind,
            "rows": self.rows,
            "valid": self.valid,
            "passes": self.passes,
            **averages,
            **sums,
            "peak_context": self.peak_context,
        }


@dataclass
class Summary:
    """A ledger, or a part of one, added up. ``lines`` counts the lines read, also those that are no rows."""

    routes: dict[str | None, RouteSums] = field(default_factory=dict)
    lines: int = 0
    unparsable_lines: int = 0
    unparsable_line_numbers: list[int] = field(default_factory=list)
    incomplete_tail: bool = False

    def add_rows(self, rows: Judged) -> None:
        """Add judged rows."""
        for route, sums in _by_route(rows).items():
            known = self.routes.setdefault(route, RouteSums(sums.kind))
            known.add(sums)

    def reject(self, lines: Sequence[int]) -> None:
        """Count lines that are no rows."""
        self.unparsable_lines += len(lines)
        room = SHOWN_LINES - len(self.unparsable_line_numbers)
        self.unparsable_line_numbers += lines[: max(room, 0)]

    def append(self, later: "Summary") -> None:
        """Add the part of the ledger that follows; its line numbers start from 1."""
        for route, sums in later.routes.items():
            self.routes.setdefault(route, RouteSums(sums.kind)).add(sums)
        shown = [self.lines + number for number in later.unparsable_line_numbers]
        self.unparsable_line_numbers = (self.unparsable_line_numbers + shown)[:SHOWN_LINES]
        self.unparsable_lines += later.unparsable_lines
        self.lines += later.lines
        self.incomplete_tail = later.incomplete_tail

    def route_rows(self) -> list[dict[str, Any]]:
        """A row for each route: by kind in the order of KINDS, then by name, a missing one first."""
        order = sorted(
            self.routes.items(),
            key=lambda item: (KINDS.index(item[1].kind), item[0] is not None, item[0] or ""),
        )
        return [sums.document(route) for route, sums in order]

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        rows = self.route_rows()
        total, valid = (sum(row[name] for row in rows) for name in ("rows", "valid"))
        fair = [row for row in rows if row["kind"] == FAIR]
        return {
            "total_rows": total,
            "valid_rows": valid,
            "invalid_rows": total - valid,
            "fair_agent_rows": sum(row["rows"] for row in fair),
            "valid_fair_agent_rows": sum(row["valid"] for row in fair),
            "router_only_rows": sum(row["rows"] for row in rows if row["kind"] == ROUTER),
            "unparsable_lines": self.unparsable_lines,
            "unparsable_line_numbers": self.unparsable_line_numbers,
            "incomplete_tail": self.incomplete_tail,
            "routes": rows,
        }

    def table_rows(self, ledger: str, digest: str) -> list[dict[str, Any]]:
        """The rows of ledger_summaries; a ledger without rows has one, which counts none."""
        rows = self.route_rows() or [RouteSums(KINDS[-1]).document(None)]
        for row in rows:
            for name in SUMMED:
                # A sum beyond what a column holds is not known to it.
                row[name] = row[name] if row[name] is None or row[name] <= _INT64 else None
        common = {
            "ledger": ledger,
            "digest": digest,
            "unparsable_lines": self.unparsable_lines,
            "incomplete_tail": self.incomplete_tail,
        }
        return [{**row, **common, "position": number} for number, row in enumerate(rows, 1)]

    def state(self) -> dict[str, Any]:
        """Everything, as JSON that ``from_state`` reads."""
        routes = [[route, asdict(sums)] for route, sums in self.routes.items()]
        return {**{name: value for name, value in vars(self).items() if name != "routes"}, "routes": routes}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Summary":
        """The summary that ``state`` was made of; KeyError or TypeError when it was none."""
        routes = {route: RouteSums(**sums) for route, sums in state["routes"]}
        return cls(**{**state, "routes": routes})


def _by_route(judged: Judged) -> dict[str | None, RouteSums]:
    """The sums of a block of rows."""
    found = [RouteSums(kind) for kind in judged.kinds]
    valid = judged.valid
    passed = (judged.rows["passed"] == 1) & valid
    for mask, name in ((slice(None), "rows"), (valid, "valid"), (passed, "passes")):
        for sums, count in zip(found, _counts(judged.route_of[mask], found), strict=True):
            setattr(sums, name, int(count))
    for name in (*AVERAGED, *SUMMED):
        given = ~np.isnan(judged.rows[name]) & valid
        _add_sums(found, name, judged.route_of[given], judged.rows[name][given])
    given = ~np.isnan(judged.rows["peak_context"]) & valid
    _add_peaks(found, judged.route_of[given], judged.rows["peak_context"][given])
    return dict(zip(judged.routes, found, strict=True))


def _counts(codes: Any, found: list[RouteSums], weights: Any = None) -> Any:
    return np.bincount(codes, weights, minlength=len(found))


def _add_sums(found: list[RouteSums], name: str, codes: Any, values: Any) -> None:
    whole = (values * _UNIT if name in AVERAGED else values).astype(np.int64)
    # Floating point adds halves of 30 bits without error.
    high = _counts(codes, found, whole >> _HALF_BITS)
    low = _counts(codes, found, whole & ((1 << _HALF_BITS) - 1))
    for sums, count, upper, lower in zip(found, _counts(codes, found), high, low, strict=True):
        sums.given[name] = int(count)
        into = sums.units if name in AVERAGED else sums.sums
        into[name] = (int(upper) << _HALF_BITS) + int(lower)


def _add_peaks(found: list[RouteSums], codes: Any, values: Any) -> None:
    peaks = np.full(len(found), -1.0)
    np.maximum.at(peaks, codes, values)
    for sums, peak in zip(found, peaks, strict=True):
        sums.peak_context = int(peak) if peak >= 0 else None
