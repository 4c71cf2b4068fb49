"""What the lines of a cell's traffic add up to."""

import json
from pathlib import Path

import pytest

from bench_pipeline.execution.gateway.ledger import read_ledger


def sent(number: int, *, offers_tools: bool) -> dict[str, object]:
    held = {"input": 10, "output": 10}
    whom = {"api": "chat-completions", "model": "m", "upstream": "u"}
    return {"event": "sent", "n": number, **whom, "offers_tools": offers_tools, "held": held}


def settled(number: int, failure: str | None = None) -> dict[str, object]:
    status = 200 if failure is None else 401
    return {
        "event": "settled",
        "n": number,
        "status": status,
        "failure": failure,
        "told": failure,
        "use": None,
    }


@pytest.mark.parametrize(
    ("events", "outage"),
    [
        ([(1, True, "auth"), (2, False, None)], ("auth", "auth")),
        ([(1, True, None), (2, False, "auth")], None),
        ([(1, True, "auth"), (2, True, None)], None),
        ([(1, False, None), (2, False, "rate")], ("rate", "rate")),
        ([(1, False, "rate"), (2, False, None)], None),
        ([], None),
    ],
)
def test_an_outage_is_of_the_conversation_and_hidden_by_no_side_request(
    tmp_path: Path, events: list[tuple[int, bool, str | None]], outage: tuple[str, str] | None
) -> None:
    lines = [sent(number, offers_tools=tools) for number, tools, _ in events]
    lines += [settled(number, failure) for number, _, failure in events]
    path = tmp_path / "ledger"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_ledger(path).outage == outage
