"""What every gate of a project decides now, read off the tables.

What belongs here: the Safety gates of composite scores, and the comparisons under ``gates`` in config.yaml. What does
not: what they decided before (``notifying``), and how they decide (``golden.scoring``, ``gating``).

A gate that cannot decide, because cells are missing or the evidence does not suffice, is left out: it is neither passed
nor failed, and what it decided last still stands.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import BenchError
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.gating import GateTerms, gate
from bench_pipeline.pipeline.querying import json_rows
from bench_pipeline.pipeline.reading import repositories, stored_outcomes
from bench_pipeline.reports.messages import command_line
from bench_pipeline.reports.text import difference_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.project import WatchedGate

_SCORES, _OUTCOMES = "composite_scores", ("evaluation_cells", "verdicts")
_DECIDED = frozenset({"passed", "failed"})
_TERMS = ("margin", "alpha", "min_tasks", "min_rate", "max_cost")


@dataclass(frozen=True)
class Decision:
    """What a gate decided: whether it passes, over which numbers, why, and the command that shows more."""

    gate: str
    passes: bool
    numbers: str
    why: str
    command: str


def inputs_of_gates(bench: "Bench") -> str:
    """The digest of everything that gates decide over: as long as it stays, so do they."""
    gates = bench.project.config.gates
    tables = (_SCORES, *(_OUTCOMES if gates else ()))
    return digest(
        {
            "tables": {
                name: [
                    [sorted(partition.items()), content]
                    for partition, content in bench.store.tables.digests(name)
                ]
                for name in tables
            },
            "gates": {name: each.model_dump() for name, each in gates.items()},
        }
    )


def decisions(bench: "Bench") -> dict[str, Decision]:
    """The decision of each gate that can decide, by a key that stays the same from look to look."""
    return {**dict(_safety_gates(bench)), **dict(_comparisons(bench))}


def _safety_gates(bench: "Bench") -> Iterator[tuple[str, Decision]]:
    """The Safety gate of each composite score: closed by a test regression or by an attestation that is not clean."""
    rows = list(json_rows(bench.store.tables.read(_SCORES)))
    of_label = Counter(_label(row) for row in rows)
    for row in rows:
        # Missing tasks can close the gate and never open it.
        if row["tasks"] and row["safety"] is not None and (row["complete"] or row["safety"] == 0):
            own = row["setup_digest"] if of_label[_label(row)] > 1 else ""
            yield digest({"gate": "safety", "of": [*_label(row), own]}), _safety(row)


def _label(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a score is called; a setup keeps it when its version changes."""
    return row["setup"], row["attempt"], row["scope"]


def _safety(row: Mapping[str, Any]) -> Decision:
    setup, attempt = str(row["setup"]), str(row["attempt"])
    return Decision(
        gate=f"Safety of {setup}, attempt {attempt}, over {row['scope'].replace(',', ', ')}",
        passes=row["safety"] != 0,
        numbers=f"score {row['score']:.4f}, {row['passed']} of {row['tasks']} tasks passed",
        why="; ".join(reason for reason in row["reasons"] if reason.startswith("safety")),
        command=command_line("bench", "golden", "run", "--no-save", "--setup", setup, "--attempt", attempt),
    )


def _comparisons(bench: "Bench") -> Iterator[tuple[str, Decision]]:
    gates = bench.project.config.gates
    if not gates:
        return
    cells, verdicts = stored_outcomes(bench)
    clusters = repositories(bench)
    for name, watched in gates.items():
        terms = {term: value for term in _TERMS if (value := getattr(watched, term)) is not None}
        try:
            document = gate(
                cells,
                verdicts,
                evaluation=watched.evaluation,
                baseline=watched.baseline,
                candidate=watched.candidate,
                terms=GateTerms(**terms),
                clusters=clusters,
            ).document
        except BenchError:
            # A setup that is not there, or no more: `bench gate` says so to whoever asks.
            continue
        if document["reason"] in _DECIDED:
            yield (
                digest({"gate": name, "of": watched.model_dump()}),
                _compared(name, watched, document, terms),
            )


def _compared(
    name: str, watched: "WatchedGate", document: Mapping[str, Any], terms: Mapping[str, float]
) -> Decision:
    asked = [word for term, value in terms.items() for word in (f"--{term.replace('_', '-')}", f"{value:g}")]
    sides = ("--baseline", watched.baseline, "--candidate", watched.candidate)
    return Decision(
        gate=f"{name}: {document['candidate']} against {document['baseline']} in {watched.evaluation}",
        passes=document["passed"],
        numbers=difference_text(document),
        why=document["detail"],
        command=command_line("bench", "gate", watched.evaluation, *sides, *asked),
    )
