"""What a tool's own output says about its run, in one shape for all tools.

What belongs here: the parsed end, its classes of errors, and the sum over the steps of a workflow. What does
not: reading any particular tool's output (the modules beside this one) and what the end means for a cell
(execution/outcome).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from bench_pipeline.registry.tokens import TokenCounts, add_tokens

State = Literal["completed", "limit", "error", "none", "exit"]
ErrorClass = Literal["auth", "rate", "overload", "timeout", "refused", "unknown"]
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class ToolEnd:
    """How a tool's run ended by its own account, and what it used. None is: the tool does not say.

    ``state``: ``completed``, the tool says that it finished; ``limit``, it stopped at a limit on turns,
    tokens or spending; ``error``, the model's API failed or refused, of class ``error_class``; ``none``,
    its output holds no end, as after a kill; ``exit``, there is no output to parse and the exit status
    decides. ``turns`` counts model requests. ``cost_is_real`` says that ``cost_reported_usd`` comes from
    known prices and is no guess. ``unreadable`` tells why output that has to be readable was not.
    """

    state: State
    error: str | None = None
    error_class: ErrorClass | None = None
    tokens: TokenCounts = field(default_factory=TokenCounts)
    turns: int | None = None
    tool_calls: int | None = None
    cost_reported_usd: float | None = None
    cost_is_real: bool = False
    final_text: str | None = None
    unreadable: str | None = None


def merge_ends(ends: Sequence[ToolEnd]) -> ToolEnd:
    """The end of a workflow from its steps' ends, in order and at least one; sums where all are known.

    The state is that of the first step that failed or has no end, else ``limit`` when a step hit one, else
    the last step's; the final text is the last step's.
    """
    broken = next((end for end in ends if end.state in {"error", "none"} or end.unreadable), None)
    limited = next((end for end in ends if end.state == "limit"), None)
    decisive = broken or limited or ends[-1]
    return replace(
        decisive,
        tokens=add_tokens(end.tokens for end in ends),
        turns=sum_known([end.turns for end in ends]),
        tool_calls=sum_known([end.tool_calls for end in ends]),
        cost_reported_usd=sum_known([end.cost_reported_usd for end in ends]),
        cost_is_real=all(end.cost_is_real for end in ends),
        final_text=ends[-1].final_text,
    )


def sum_known(values: Sequence[_Number | None]) -> _Number | None:
    """The sum, or None when there is nothing to add or any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None


_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_CLASS_BY_STATUS: dict[int, ErrorClass] = {
    401: "auth",
    402: "auth",
    403: "auth",
    408: "timeout",
    429: "rate",
    504: "timeout",
}
# First match wins; exception names are one word, so a separator is optional.
_CLASS_BY_TEXT: tuple[tuple[str, ErrorClass], ...] = (
    (r"time.?out|timed out", "timeout"),
    (r"rate.?limit|too many requests|quota", "rate"),
    (r"authenticat|unauthori[sz]ed|forbidden|permission|api.?key|billing|credit", "auth"),
    (r"content.?(policy|filter)|usage polic|refus(al|ed to)|flagged", "refused"),
    (r"overload|high demand|server.?error|internal.?server|unavailable|gateway", "overload"),
    (r"connection|connect to|disconnected|unreachable|network", "overload"),
)
_CONTEXT = re.compile(r"context.?(window|length)|prompt is too long|maximum context", re.IGNORECASE)


def error_class(text: str, status: int | None = None) -> ErrorClass:
    """The class of an API error from its HTTP status, where one is known or named, else from its text.

    A server's own failures (5xx) and broken connections are ``overload``: trying again later may help.
    """
    if status is None and (named := _STATUS.search(text)):
        status = int(named[1])
    if status in _CLASS_BY_STATUS:
        return _CLASS_BY_STATUS[status]
    if status is not None and 500 <= status <= 599:
        return "overload"
    return next(
        (found for pattern, found in _CLASS_BY_TEXT if re.search(pattern, text, re.IGNORECASE)), "unknown"
    )


def is_context_limit(text: str) -> bool:
    """Whether an API error says that the conversation no longer fits the model: a token limit, no outage."""
    return _CONTEXT.search(text) is not None
