"""The record of what went through a gateway for one cell: a line per event, written before anything depends on it.

What belongs here: the events, and what they add up to. What does not: making them (``door``). The file outlives the
gateway: a request that was sent and never settled counts with what was held for it, and says so.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench_pipeline.execution.usage.reading import json_bytes
from bench_pipeline.registry.tokens import CLASSES, TokenCounts, add_tokens

# What a cell whose last request failed so did not measure: nothing of it is the agent's fault.
OUTAGES = ("auth", "rate", "overload", "timeout")


class LedgerFile:
    """Appends events; each is one write, so that a killed process leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event."""
        self._file.write(json_bytes(event) + b"\n")

    def close(self) -> None:
        """No more events."""
        self._file.close()


@dataclass(frozen=True)
class Exchange:
    """One request as it was sent, and what came of it.

    ``tokens`` are exact unless ``estimated``, when they are what was held for it. ``failure`` is the class of what went
    wrong, or None.
    """

    api: str
    model: str
    upstream: str
    tokens: TokenCounts
    reasoning: int | None = None
    estimated: bool = False
    status: int | None = None
    failure: str | None = None
    told: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Traffic:
    """What went through the gateway for one use of a tool.

    ``refused`` counts requests that were not sent, ``cap`` says in words which cap refused one, and ``outage`` the
    class and words of the failure that the last request ended with, side requests left aside. Of a replay, ``diverged``
    says which request is not in the recording, and ``unasked`` which one of it was not asked.
    """

    exchanges: tuple[Exchange, ...] = ()
    refused: tuple[str, ...] = ()
    cap: str | None = None
    outage: tuple[str, str] | None = None
    diverged: str | None = None
    unasked: str | None = None

    @property
    def tokens(self) -> TokenCounts:
        """All tokens that were used; nothing at all is zero of each."""
        return add_tokens([TokenCounts(0, 0, 0, 0), *(each.tokens for each in self.exchanges)])

    @property
    def estimated(self) -> int:
        """How many requests have no exact count."""
        return sum(each.estimated for each in self.exchanges)

    @property
    def answered(self) -> int:
        """How many requests were answered by a model."""
        return sum(each.failure is None and each.status == 200 for each in self.exchanges)

    def document(self) -> dict[str, object]:
        """The traffic as a JSON-able mapping."""
        return {
            "requests": len(self.exchanges),
            "answered": self.answered,
            "estimated": self.estimated,
            "refused": list(self.refused),
            "cap": self.cap,
            "outage": None if self.outage is None else {"class": self.outage[0], "said": self.outage[1]},
            "diverged": self.diverged or self.unasked,
            "tokens": asdict(self.tokens),
            "exchanges": [
                {
                    "api": each.api,
                    "model": each.model,
                    "upstream": each.upstream,
                    **asdict(each.tokens),
                    "reasoning": each.reasoning,
                    "estimated": each.estimated,
                    "status": each.status,
                    "failure": each.failure,
                    "seconds": each.seconds,
                }
                for each in self.exchanges
            ],
        }


def main_requests(offering: Mapping[int, bool]) -> list[int]:
    """The requests that go on with an agent's work, of all those that are given with whether they offer tools.

    A side request (a title, a commit message) offers none where others do. Where none does, all are of the work.
    """
    return [number for number, offers in offering.items() if offers] or list(offering)


@dataclass
class _Reading:
    sent: dict[int, dict[str, Any]] = field(default_factory=dict)
    exchanges: dict[int, Exchange] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    cap: str | None = None
    settled: list[int] = field(default_factory=list)
    diverged: str | None = None
    unasked: str | None = None

    @property
    def outage(self) -> tuple[str, str] | None:
        """The failure that the last request ended with; a side request hides none."""
        main = main_requests({n: bool(self.sent[n].get("offers_tools")) for n in self.settled})
        last = self.exchanges[main[-1]] if main else None
        return (last.failure, last.told or "") if last is not None and last.failure in OUTAGES else None

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "sent":
            self.sent[event["n"]] = event
            self.exchanges[event["n"]] = _exchange(event, {"held": True})
        elif event["event"] == "settled":
            self.exchanges[event["n"]] = _exchange(self.sent[event["n"]], event)
            self.settled.append(event["n"])
        elif event["event"] == "unasked":
            self.unasked = event["why"]
        else:
            if event["event"] == "diverged":
                self.diverged = self.diverged or event["why"]
            self.refused.append(event["why"])
            self.cap = self.cap or (event["why"] if event["event"] == "capped" else None)


def read_ledger(path: Path) -> Traffic:
    """What the ledger of a cell adds up to; nothing where there is none."""
    reading = _Reading()
    for event in _events(path):
        reading.take(event)
    return Traffic(
        tuple(reading.exchanges[n] for n in sorted(reading.exchanges)),
        tuple(reading.refused),
        reading.cap,
        reading.outage,
        reading.diverged,
        reading.unasked,
    )


def _events(path: Path) -> Iterable[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    # What follows the last line feed is a line that a kill has cut.
    for line in lines[:-1]:
        yield json.loads(line)


def _exchange(sent: Mapping[str, Any], settled: Mapping[str, Any]) -> Exchange:
    use = settled.get("use")
    counts = use or dict.fromkeys(CLASSES, 0) | {
        "input": sent["held"]["input"],
        "output": sent["held"]["output"],
    }
    return Exchange(
        api=sent["api"],
        model=sent["model"],
        upstream=sent["upstream"],
        tokens=TokenCounts(*(counts[name] for name in CLASSES)),
        reasoning=use.get("reasoning") if use else None,
        estimated=use is None,
        status=settled.get("status"),
        failure=settled.get("failure"),
        told=settled.get("told"),
        seconds=settled.get("seconds"),
    )
