"""Sends messages to people through Apprise, from a process of its own.

What belongs here: one target, its messages, and what came of them. What does not: what is told to whom and how often it
is tried (``pipeline.notifying``), and words (``reports.messages``).

The URL of a target holds keys. It goes to the process by standard input, and nothing that the library says comes back
but a status code. A process, because what speaks to a hundred services may hang, log and keep threads: it is ended
after a time, and whoever asked goes on.
"""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

# Of the minute that Dagster gives a tick.
AT_MOST_S = 30.0
_SENT = "sent"
_STATUS = re.compile(r"\berror=(\d{3})\b")


@dataclass(frozen=True)
class Message:
    """A title and a plain text; ``bad``: something failed."""

    title: str
    text: str
    bad: bool


@dataclass(frozen=True)
class Delivery:
    """How many of the messages were taken, in their order, and why the next one was not."""

    sent: int
    problem: str | None = None


def deliver(url: str, messages: Sequence[Message], at_most_s: float = AT_MOST_S) -> Delivery:
    """Send messages to the target of a URL, one after the other, until one is not taken. Never raises for a target."""
    asked = json.dumps({"url": url, "messages": [asdict(message) for message in messages]}).encode()
    problem: str | None = "the process that sends ended without an answer"
    try:
        said = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=at_most_s,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        problem = f"no answer within {at_most_s:g} s"
    lines = said.decode().splitlines()
    sent = lines.count(_SENT)
    if sent == len(messages):
        return Delivery(sent)
    return Delivery(sent, next((line for line in lines if line != _SENT), problem))


class _Status(logging.Handler):
    """Remembers the status code of what the library complains about, and nothing else of it."""

    code: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        found = _STATUS.search(record.getMessage())
        self.code = found[1] if found else self.code


def _send() -> None:
    """Do what standard input asks for; a line on standard output for each message."""
    from apprise import Apprise, AppriseAsset, NotifyFormat, NotifyType

    asked, status = json.load(sys.stdin), _Status()
    logger = logging.getLogger("apprise")
    logger.handlers, logger.propagate = [status], False
    # Where a message is redirected to is nobody that the project named.
    asset = AppriseAsset(app_id="bench_pipeline", app_desc="bench_pipeline", http_redirects=False)
    target = Apprise.instantiate(asked["url"], asset=asset)
    if target is None:
        _say("it is no URL that Apprise knows")
        return
    targets = Apprise(asset=asset)
    targets.add(target)
    for message in asked["messages"]:
        kind = NotifyType.FAILURE if message["bad"] else NotifyType.SUCCESS
        if not targets.notify(message["text"], message["title"], kind, body_format=NotifyFormat.TEXT):
            _say(f"the server answered {status.code}" if status.code else "no connection, or no answer")
            return
        _say(_SENT)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _send()
