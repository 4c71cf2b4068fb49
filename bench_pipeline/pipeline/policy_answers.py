"""What a live model answered in an attempt that is under way: one file in the store for each call.

What belongs here: the folder of an attempt, its files, what of each policy's time they took. What does not: counting
answers (``policies``) and the tables, which hold all of it once the attempt is over; then its files go. Failed calls
are kept too: asked again, they would make the attempt a better one than it was.
"""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import CorruptPartError
from bench_pipeline.identity import digest
from bench_pipeline.policies.comparing import Begun
from bench_pipeline.policies.models import LATE, Reply

if TYPE_CHECKING:
    from bench_pipeline.policies.comparison import Comparison
    from bench_pipeline.policies.policy import PolicyName
    from bench_pipeline.store import Store

RECIPE = "policy-attempt/1"
FOLDER = "runs/answers"


class KeptAnswers:
    """The replies of one attempt of a comparison; threads may share it.

    An attempt is known by its number, the comparison's name and everything that its receipts must agree in.
    """

    def __init__(self, store: "Store", comparison: "Comparison", attempt: int) -> None:
        terms = comparison.terms
        name = digest(
            {
                "recipe": RECIPE,
                "comparison": comparison.name,
                "attempt": attempt,
                "dataset": comparison.cases.sha256,
                "model": comparison.config.sha256,
                "budget": terms.budget,
                "timeout_s": terms.timeout_s,
                "policies": [policy.name for policy in terms.policies],
            }
        )
        self._store = store
        self._folder = f"{FOLDER}/{name}"
        self._timeout_s = terms.timeout_s
        self._kept = dict(filter(None, map(self._read, self._paths())))

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def begun(self) -> dict[str, Begun]:
        """What each policy already took of its time; policies that were not begun are not in it."""
        found: dict[str, Begun] = {}
        for (policy, _), (_, reply, left_s) in self._kept.items():
            assert reply.started_at is not None
            before = found.get(policy, Begun(reply.started_at, 0.0))
            spent = max(before.spent_s, self._timeout_s - left_s)
            found[policy] = Begun(min(before.started_at, reply.started_at), spent)
        return found

    def find(self, policy: "PolicyName", number: int, prompt: str) -> Reply | None:
        """The reply to a policy's call of this number; None where there is none to this prompt."""
        asked, reply, left_s = self._kept.get((policy, number), (None, Reply(""), 0.0))
        if asked != prompt:
            return None
        return reply if left_s > 0 else reply._replace(failure=LATE, late=True)

    def add(self, policy: "PolicyName", number: int, prompt: str, reply: Reply, left_s: float) -> None:
        """Keep a reply; it is durable when this returns."""
        row = {
            "schema": 1,
            "policy": policy,
            "number": number,
            "prompt": prompt,
            "answer": reply.answer,
            "failure": reply.failure,
            "started_at": reply.started_at and reply.started_at.isoformat(),
            "latency_s": reply.latency_s,
            "tokens_input": reply.tokens_input,
            "tokens_output": reply.tokens_output,
            "left_s": left_s,
        }
        self._store.files.write(f"{self._folder}/{policy}-{number}.json", json.dumps(row).encode() + b"\n")

    def drop(self) -> None:
        """Remove the files, when what they hold is in the tables."""
        for path in self._paths():
            self._store.files.delete(path)

    def _paths(self) -> list[str]:
        return [file.path for file in self._store.files.list(self._folder)]

    def _read(self, path: str) -> tuple[tuple[str, int], tuple[str, Reply, float]] | None:
        """A call and what came of it; None for a file that is corrupt, which is put aside."""
        data = self._store.files.read(path)
        try:
            row: dict[str, Any] = json.loads(data)
            reply = Reply(
                row["answer"],
                row["failure"],
                started_at=datetime.fromisoformat(row["started_at"]),
                latency_s=row["latency_s"],
                tokens_input=row["tokens_input"],
                tokens_output=row["tokens_output"],
            )
            return (row["policy"], row["number"]), (row["prompt"], reply, row["left_s"])
        except (ValueError, TypeError, KeyError):
            error = CorruptPartError(f"reading {path}", "it is not the JSON of a model's reply")
            self._store.quarantine.put(path, error, data)
            return None
