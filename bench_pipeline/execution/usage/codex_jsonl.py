"""Codex: standard output of ``codex exec --json``, and its rollout files.

``turn.completed`` or ``turn.failed`` says how the run ended; neither means a kill. Lines of type ``error``
are retries and items of that type are warnings: both come in runs that go well. Input counts include cached
ones. Files: ``rollout``, one record per answered request, also of sub-agents and of runs that were killed.
"""

from dataclasses import replace

from bench_pipeline.execution.usage.end import ToolEnd, error_class, is_context_limit
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, count, mapping, text
from bench_pipeline.registry.tokens import TokenCounts, add_tokens

_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of Codex."""
    end, said, calls, thread = ToolEnd("none"), None, set[str](), None
    turns: list[TokenCounts] = []
    started = False
    for line in outputs.stdout_lines():
        kind = line.get("type")
        if kind == "thread.started":
            started, thread = True, thread or text(line.get("thread_id"))
        elif kind in ("item.started", "item.completed"):
            item = mapping(line.get("item"))
            if item.get("type") in _CALLS:
                calls.add(str(item.get("id")))
            elif item.get("type") == "agent_message":
                said = text(item.get("text"))
        elif kind == "turn.completed":
            end = ToolEnd("completed")
            turns.append(_tokens(mapping(line.get("usage"))))
        elif kind == "turn.failed":
            end = _failed(text(mapping(line.get("error")).get("message")) or "no reason given")
    requests = _requests(outputs, thread)
    return replace(
        end,
        tokens=_larger(add_tokens(turns), add_tokens((requests or {}).values())),
        turns=None if requests is None else len(requests),
        tool_calls=len(calls) if started else None,
        final_text=said if end.state == "completed" else None,
    )


def _failed(message: str) -> ToolEnd:
    if is_context_limit(message):
        return ToolEnd("limit", error=message)
    return ToolEnd("error", error=message, error_class=error_class(message))


def _tokens(usage: Object) -> TokenCounts:
    """Counts by class; a program version without a class reports nothing in it."""
    whole, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    read = count(usage.get("cached_input_tokens", 0))
    write = count(usage.get("cache_write_input_tokens", 0))
    fresh = None
    if whole is not None and read is not None and write is not None:
        fresh = count(whole - read - write)
    return TokenCounts(fresh, read, write, output)


def _requests(outputs: ToolOutputs, thread: str | None) -> dict[str, TokenCounts] | None:
    """Tokens by answered request of this run and its sub-agents; None when no rollout was kept."""
    if not outputs.matches("rollout"):
        return None
    requests: dict[str, TokenCounts] = {}
    for line in outputs.lines_of("rollout"):
        record = mapping(line.get("payload"))
        if line.get("type") != "token_usage_record":
            continue
        if thread is None or thread in (record.get("thread_id"), record.get("session_id")):
            requests[str(record.get("response_id"))] = _tokens(mapping(record.get("usage")))
    return requests


def _larger(stdout: TokenCounts, rollout: TokenCounts) -> TokenCounts:
    """The rollout's counts where they hold more: sub-agents and failed turns are only there."""
    if not rollout.known:
        return stdout
    return rollout if not stdout.known or _total(rollout) >= _total(stdout) else stdout


def _total(tokens: TokenCounts) -> int:
    return sum(value or 0 for value in (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output))
