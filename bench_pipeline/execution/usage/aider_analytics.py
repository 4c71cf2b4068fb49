"""aider: the analytics log (``--analytics-log``) and the chat history (``--chat-history-file``).

Its exit status is 0 whatever happens. The event ``exit`` says that it came to an end of its own; a request
that was started and has no ``message_send`` after it failed. The chat history only adds what the failure
was, since a model can write anything into it. Prompt tokens include cached ones and are not told apart, so
both cache classes stay unknown; they are exact only without streaming. Files: ``analytics``, ``chat``.
"""

import re
from dataclasses import replace

from bench_pipeline.execution.usage.end import ToolEnd, error_class, is_context_limit, sum_known
from bench_pipeline.execution.usage.reading import MAX_TEXT, Object, ToolOutputs, count, mapping, text, usd
from bench_pipeline.registry.tokens import TokenCounts, add_tokens

_FAILURE = re.compile(r"^> (litellm\.\w+: .*?)\s*$", re.MULTILINE)
_REFLECTIONS = re.compile(r"^> Only \d+ reflections allowed, stopping\.\s*$", re.MULTILINE)
_TOKEN_LIMIT = re.compile(r"^> Model \S+ has hit a token limit!\s*$", re.MULTILINE)
_PROMPT_LINE = re.compile(r"^#### .*$", re.MULTILINE)
_OWN_LINE = re.compile(r"^> .*$", re.MULTILINE)


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of aider."""
    sent, reason, pending = list[Object](), None, False
    for line in outputs.lines_of("analytics"):
        event, properties = line.get("event"), mapping(line.get("properties"))
        if event == "message_send_starting":
            pending = True
        elif event == "message_send":
            pending = False
            sent.append(properties)
        elif event == "exit":
            reason = text(properties.get("reason")) or ""
    end = _state(reason, outputs, failed=pending, sent=len(sent))
    costs = [usd(properties.get("cost")) for properties in sent]
    return replace(
        end,
        tokens=add_tokens(
            TokenCounts(input=count(each.get("prompt_tokens")), output=count(each.get("completion_tokens")))
            for each in sent
        ),
        turns=len(sent) if outputs.matches("analytics") else None,
        cost_reported_usd=sum_known(costs),
        # 0 is what a model without a known price costs here.
        cost_is_real=bool(costs) and all(costs),
    )


def _state(reason: str | None, outputs: ToolOutputs, *, failed: bool, sent: int) -> ToolEnd:
    if reason is None:
        return ToolEnd("none")
    chat = (outputs.read("chat") or b"").decode("utf-8", "replace")
    if failed:
        return _failed(chat)
    if not reason.startswith("Completed"):
        return ToolEnd("error", f"ended with {reason!r}", "unknown")
    if sent > 1 and _REFLECTIONS.search(chat):
        return ToolEnd("limit", error="reflection limit")
    if _TOKEN_LIMIT.search(chat):
        return ToolEnd("limit", error="token limit")
    return ToolEnd("completed", final_text=_last_words(chat))


def _failed(chat: str) -> ToolEnd:
    told = _FAILURE.findall(chat)
    error = (text(told[-1]) if told else None) or "a model request failed"
    if is_context_limit(error) or _TOKEN_LIMIT.search(chat):
        return ToolEnd("limit", error=error)
    return ToolEnd("error", error, error_class(error))


def _last_words(chat: str) -> str | None:
    """What the model said last: after the last prompt line, without aider's own lines."""
    said = _PROMPT_LINE.split(chat)[-1][-MAX_TEXT:]
    return text(_OWN_LINE.sub("", said).strip())
