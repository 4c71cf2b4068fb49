"""Claude Code: standard output of ``--output-format stream-json --verbose``, and its session files.

The last ``result`` line says how the run ended; no such line means a kill, and then the session files are
the only place with the real output tokens. ``subtype`` is ``success`` on API errors too and decides nothing
alone. Files: ``session``, all session files of the run, those of sub-agents included.
"""

from dataclasses import dataclass, field, replace

from bench_pipeline.execution.usage.end import ToolEnd, error_class, is_context_limit, sum_known
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, count, items, mapping, text, usd
from bench_pipeline.registry.tokens import TokenCounts, add_tokens

_LIMITS = ("max_turns", "budget_exhausted", "error_max_turns", "error_max_budget_usd")
# The program's own words about an API error come as a message of this model.
_SYNTHETIC = "<synthetic>"


@dataclass
class _Messages:
    """Model requests by message id, with the usage last seen for each, and the tool calls they made."""

    usage: dict[str, Object] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)

    def add(self, line: Object) -> None:
        message = mapping(line.get("message"))
        identity = message.get("id")
        if (
            line.get("type") != "assistant"
            or message.get("model") == _SYNTHETIC
            or not isinstance(identity, str)
        ):
            return
        self.usage[identity] = mapping(message.get("usage"))
        for block in map(mapping, items(message.get("content"))):
            if block.get("type") == "tool_use":
                self.calls.add(str(block.get("id")))


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of Claude Code."""
    stream, result, session, is_stream = _Messages(), None, None, False
    for line in outputs.stdout_lines():
        if line.get("type") == "result" and isinstance(line.get("is_error"), bool):
            result = line
        elif line.get("type") in ("system", "assistant", "user"):
            is_stream = True
            session = session or line.get("session_id")
            stream.add(line)
    saved = _saved_messages(outputs, session or (result or {}).get("session_id"))
    counted = is_stream or bool(saved.usage)
    turns = len(stream.usage.keys() | saved.usage.keys()) if counted else None
    calls = len(stream.calls | saved.calls) if counted else None
    if result is None:
        return ToolEnd("none", tokens=_tokens_of_killed(stream, saved), turns=turns, tool_calls=calls)
    return _of_result(result, turns, calls)


def _of_result(result: Object, turns: int | None, calls: int | None) -> ToolEnd:
    used = [mapping(model) for model in mapping(result.get("modelUsage")).values()]
    cost = usd(result.get("total_cost_usd"))
    known_prices = all(model.get("costBasis") == "list" for model in used)
    return replace(
        _state(result),
        tokens=_tokens_of_models(result.get("modelUsage")),
        turns=turns,
        tool_calls=calls,
        cost_reported_usd=cost,
        # A zero for no use at all involves no price; versions that name no basis cannot tell a guess apart.
        cost_is_real=cost is not None and known_prices and (bool(used) or cost == 0),
    )


def _state(result: Object) -> ToolEnd:
    told = [line for line in map(text, items(result.get("errors"))) if line]
    words = text(result.get("result"))
    error = "; ".join(told) or words or "no reason given"
    if result.get("terminal_reason") in _LIMITS or result.get("subtype") in _LIMITS:
        return ToolEnd("limit", error=error)
    if result.get("stop_reason") == "refusal":
        return ToolEnd("error", error=error, error_class="refused")
    if not result["is_error"]:
        return ToolEnd("completed", final_text=words)
    if is_context_limit(error):
        return ToolEnd("limit", error=error)
    hint = f"{text(result.get('api_error_type')) or ''} {error}"
    return ToolEnd("error", error=error, error_class=error_class(hint, count(result.get("api_error_status"))))


def _tokens_of_models(models: object) -> TokenCounts:
    if not isinstance(models, dict):
        return TokenCounts()
    if not models:
        return TokenCounts(0, 0, 0, 0)
    keys = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
    used = [mapping(model) for model in models.values()]
    return TokenCounts(*(sum_known([count(model.get(key)) for model in used]) for key in keys))


def _saved_messages(outputs: ToolOutputs, session: object) -> _Messages:
    """The messages in the files of this session: named after it, or in its folder (sub-agents)."""
    saved = _Messages()
    for parts in outputs.matches("session"):
        if isinstance(session, str) and session not in {*parts, parts[-1].removesuffix(".jsonl")}:
            continue
        for line in outputs.lines_in(parts):
            saved.add(line)
    return saved


def _tokens_of_killed(stream: _Messages, saved: _Messages) -> TokenCounts:
    """What was answered, a lower bound; output tokens in the stream are those at a message's start."""
    requests = stream.usage | saved.usage
    return add_tokens(
        TokenCounts(
            count(usage.get("input_tokens")),
            count(usage.get("cache_read_input_tokens")),
            count(usage.get("cache_creation_input_tokens")),
            count(usage.get("output_tokens")) if identity in saved.usage else None,
        )
        for identity, usage in requests.items()
    )
