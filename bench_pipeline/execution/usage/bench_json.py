"""``bench-json``: a small format of our own, for tools that people write.

One JSON object, in the file ``result`` where the definition names one, else as the last line of standard
output that is not blank:

    {"state": "completed",            completed, limit or error; required
     "error": "...",                  what went wrong, with state error or limit
     "error_class": "rate",           auth, rate, overload, timeout, refused or unknown
     "tokens": {"input": 1, "cache_read": 0, "cache_write": 0, "output": 2},
     "turns": 3, "tool_calls": 2, "cost_usd": 0.01, "final_text": "..."}

``input`` is input that was neither read from nor written to a cache, ``output`` includes reasoning. What is
left out, or is of the wrong type, is unknown; so is a cost of 0. Other keys are passed over.
"""

from typing import cast, get_args

from bench_pipeline.execution.usage.end import ErrorClass, State, ToolEnd, error_class
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, count, json_value, mapping, text, usd
from bench_pipeline.registry.tokens import TokenCounts

_STATES = ("completed", "limit", "error")


def parse(outputs: ToolOutputs) -> ToolEnd:
    """The end of a run of a tool that reports in this format."""
    data = outputs.read("result") if outputs.files.get("result") else outputs.last_line()
    if not data:
        return ToolEnd("none")
    report = json_value(data)
    if not isinstance(report, dict) or report.get("state") not in _STATES:
        return ToolEnd("none", unreadable=f"no JSON object with a state of {', '.join(_STATES)}")
    state = cast("State", report["state"])
    # A tool that says what went wrong in its last words only said it all the same.
    said = text(report.get("error")) or text(report.get("final_text"))
    error = said if state == "error" else text(report.get("error")) if state == "limit" else None
    cost = usd(report.get("cost_usd"))
    tokens = mapping(report.get("tokens"))
    return ToolEnd(
        state=state,
        error=error,
        error_class=_class(report, error or "") if state == "error" else None,
        tokens=TokenCounts(
            *(count(tokens.get(key)) for key in ("input", "cache_read", "cache_write", "output"))
        ),
        turns=count(report.get("turns")),
        tool_calls=count(report.get("tool_calls")),
        cost_reported_usd=cost,
        cost_is_real=bool(cost),
        final_text=text(report.get("final_text")),
    )


def _class(report: Object, error: str) -> ErrorClass:
    named = report.get("error_class")
    return cast("ErrorClass", named) if named in get_args(ErrorClass) else error_class(error)
