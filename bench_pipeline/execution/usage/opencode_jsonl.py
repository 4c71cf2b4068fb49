"""opencode: standard output of ``opencode run --format json``.

There is no line for the end: the reason of the last finished step tells. ``stop`` is an end, ``length`` an
answer that hit the token limit, ``tool-calls`` last means a kill, and any ``error`` line a failed run. The
request for a session's title is counted nowhere by the program.
"""

from dataclasses import replace

from bench_pipeline.execution.usage.end import ToolEnd, error_class, is_context_limit, sum_known
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, count, mapping, text, usd
from bench_pipeline.registry.tokens import TokenCounts, add_tokens

_LIMIT_ERRORS = {"MessageOutputLengthError", "ContextOverflowError"}


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of opencode."""
    end, said = ToolEnd("none"), list[str]()
    failed: ToolEnd | None = None
    steps, calls, sessions = list[Object](), list[Object](), list[str | None]()
    for line in outputs.stdout_lines():
        kind, part = line.get("type"), mapping(line.get("part"))
        sessions.append(text(line.get("sessionID")))
        own = sessions[-1] == sessions[0]
        if kind == "error" and own:
            failed = failed or _failed(mapping(line.get("error")))
        elif kind == "tool_use":
            calls.append(part)
        elif kind == "step_finish":
            steps.append(part)
            end = _finished(part, "".join(said)) if own else end
        elif kind == "step_start" and own:
            said.clear()
        elif kind == "text" and own:
            said.append(text(part.get("text")) or "")
    end = failed or end
    # A sub-agent works in a session of its own, which is not always shown here: a sum without it is no sum.
    whole = len(set(sessions)) > 1 or not any(call.get("tool") == "task" for call in calls)
    cost = sum_known([usd(step.get("cost")) for step in steps]) if whole else None
    return replace(
        end,
        tokens=add_tokens(map(_tokens, steps)) if whole else TokenCounts(),
        turns=len(steps) if sessions and whole else None,
        tool_calls=len(calls) if sessions and whole else None,
        cost_reported_usd=cost,
        cost_is_real=cost is not None and all(usd(step.get("cost")) for step in steps),
    )


def _finished(step: Object, said: str) -> ToolEnd:
    reason = text(step.get("reason")) or "none"
    if reason == "stop":
        return ToolEnd("completed", final_text=text(said))
    if reason == "length":
        return ToolEnd("limit", error="answer cut at the token limit")
    if reason == "tool-calls":
        return ToolEnd("none")
    refused = reason == "content-filter"
    return ToolEnd("error", error=f"finish reason {reason}", error_class="refused" if refused else "unknown")


def _failed(error: Object) -> ToolEnd:
    name, data = text(error.get("name")) or "error", mapping(error.get("data"))
    message = text(data.get("message")) or name
    if name in _LIMIT_ERRORS or is_context_limit(message):
        return ToolEnd("limit", error=message)
    return ToolEnd("error", message, error_class(f"{name} {message}", count(data.get("statusCode"))))


def _tokens(step: Object) -> TokenCounts:
    """Counts of one step; ``output`` comes without reasoning here."""
    tokens = mapping(step.get("tokens"))
    cache = mapping(tokens.get("cache"))
    return TokenCounts(
        count(tokens.get("input")),
        count(cache.get("read")),
        count(cache.get("write")),
        sum_known([count(tokens.get("output")), count(tokens.get("reasoning", 0))]),
    )
