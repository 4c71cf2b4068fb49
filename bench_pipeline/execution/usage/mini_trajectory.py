"""mini-swe-agent: the trajectory file (``-o``); its standard output is for people.

``info.exit_status`` says how the run ended: empty means killed between steps, no file killed in the first
one. Usage is in OpenAI's shape, where prompt tokens include cached ones, and stands on messages of every
role: an answer that was no valid call is kept only inside the complaint about it. Files: ``trajectory``.
"""

from dataclasses import replace

from bench_pipeline.execution.usage.end import ToolEnd, error_class, is_context_limit
from bench_pipeline.execution.usage.reading import (
    Object,
    ToolOutputs,
    count,
    items,
    json_value,
    mapping,
    text,
    usd,
)
from bench_pipeline.registry.tokens import TokenCounts, add_tokens

# The last is the program giving up on a model that keeps answering without a call: a limit of its own.
_LIMITS = {"LimitsExceeded", "TimeExceeded", "RepeatedFormatError", "ContextWindowExceededError"}


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of mini-swe-agent."""
    if not outputs.matches("trajectory"):
        return ToolEnd("none")
    whole = json_value(outputs.read("trajectory") or b"")
    if not isinstance(whole, dict):
        return ToolEnd("none", unreadable="the trajectory is no JSON object, or too large")
    info, messages = mapping(whole.get("info")), [mapping(each) for each in items(whole.get("messages"))]
    stats = mapping(info.get("model_stats"))
    status = text(info.get("exit_status")) or ""
    end = _state(status, text(info.get("submission")), messages)
    cost = usd(stats.get("instance_cost"))
    return replace(
        end,
        tokens=add_tokens(_usages(messages)),
        turns=count(stats.get("api_calls")),
        tool_calls=_calls(messages, submitted=status == "Submitted"),
        cost_reported_usd=cost,
        # 0.0 is what a model without a known price costs here.
        cost_is_real=bool(cost),
    )


def _state(status: str, submission: str | None, messages: list[Object]) -> ToolEnd:
    if not status:
        return ToolEnd("none")
    if status == "Submitted":
        return ToolEnd("completed", final_text=(submission or "").strip())
    said = text(messages[-1].get("content")) if messages else None
    error = said or status
    if status in _LIMITS or is_context_limit(error):
        return ToolEnd("limit", error=error)
    return ToolEnd("error", error, error_class(f"{status} {error}"))


def _usages(messages: list[Object]) -> list[TokenCounts]:
    responses = [mapping(mapping(message.get("extra")).get("response")) for message in messages]
    return [_tokens(mapping(response["usage"])) for response in responses if response.get("usage")]


def _tokens(usage: Object) -> TokenCounts:
    """Counts by class; chat completions have no count of cache writes unless the provider bills them."""
    details = mapping(usage.get("prompt_tokens_details"))
    read = count(details.get("cached_tokens") or 0)
    write = count(usage.get("cache_creation_input_tokens") or details.get("cache_creation_tokens") or 0)
    prompt, fresh = count(usage.get("prompt_tokens")), None
    if prompt is not None and read is not None and write is not None:
        fresh = count(prompt - read - write)
    return TokenCounts(fresh, read, write, count(usage.get("completion_tokens")))


def _calls(messages: list[Object], *, submitted: bool) -> int:
    """Commands that the model ran; the one that submits is how a run ends and does no work."""
    actions = [
        len(items(mapping(message.get("extra")).get("actions")))
        for message in messages
        if message.get("role") == "assistant"
    ]
    return max(0, sum(actions) - submitted)
