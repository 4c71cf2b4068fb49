"""What live judges of a project have answered: one file in the store for each question, so that none is bought twice.

What belongs here: the identity of a question, its file. What does not: recordings that a person names
(``judging.judgements``) and asking. A question is the judge (endpoint, model, settings) and the whole prompt; the seed
of the coin is not in it, for both orders are asked whatever it says. Kept is whatever the model answered, readable or
not; a call that failed bought nothing that could be kept, and is made again the next time.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench_pipeline.errors import CorruptPartError
from bench_pipeline.identity import digest
from bench_pipeline.judging.judgements import Reply

if TYPE_CHECKING:
    from bench_pipeline.store import Store

RECIPE = "judge-question/1"
FOLDER = "runs/judgements"


class StoredReplies:
    """The replies of one judge in a store; threads may share it.

    Args:
        store: where they are.
        endpoint: the URL that is asked.
        model: the model that answers.
        settings: what is asked of it besides the prompt.
    """

    def __init__(self, store: "Store", endpoint: str, model: str, settings: Mapping[str, object]) -> None:
        self._store = store
        self._judge = {"endpoint": endpoint, "model": model, "settings": dict(settings)}
        self.model = model

    def find(self, question: str) -> Reply | None:
        """The reply to a question; None where there is none. A file that is corrupt is put aside, and is none."""
        path = self._path(question)
        try:
            data = self._store.files.read(path)
        except FileNotFoundError:
            return None
        try:
            kept = json.loads(data)
            return Reply(kept["reply"], kept["failure"])
        except (ValueError, TypeError, KeyError):
            error = CorruptPartError(f"reading {path}", "it is not the JSON of a judge's reply")
            self._store.quarantine.put(path, error, data)
            return None

    def add(self, scenario: str, question: str, reply: Reply) -> None:
        """Keep a reply that the model gave; it is durable when this returns. A call that failed is none."""
        if not reply.settled:
            return
        row = {
            "schema": 1,
            **self._judge,
            "scenario": scenario,
            "question": question,
            "reply": reply.text,
            "failure": reply.failure,
            "tokens_input": reply.tokens_input,
            "tokens_output": reply.tokens_output,
        }
        self._store.files.create(self._path(question), json.dumps(row, indent=1).encode() + b"\n")

    def _path(self, question: str) -> str:
        name = digest({"recipe": RECIPE, "judge": self._judge, "question": question})
        return f"{FOLDER}/{name[:2]}/{name}.json"
