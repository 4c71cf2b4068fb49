"""What is different between two runs: the delta where they are comparable, flips and drift in any case.

Scores over different scopes or suites are no better or worse than one another. There, only the tasks that both have,
unchanged, are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bench_pipeline.golden.runs import PARTS, Result, Run
from bench_pipeline.golden.taxonomy import CATEGORIES


@dataclass(frozen=True)
class Comparison:
    """A run against an earlier one; ``document`` is JSON-able.

    Its keys: run, against, comparable, reason (why not), delta and parts (null when not comparable), shared_tasks,
    only_here, only_there, changed, passed_here, passed_there (of the shared ones), flips [{task, before, after}],
    drift {category: signed difference}.
    """

    document: Mapping[str, object]
    worse: tuple[str, ...]


def compare(run: Run, against: Run) -> Comparison:
    """``run`` against an earlier run."""
    here = {result.task: result for result in run.results}
    there = {result.task: result for result in against.results}
    both = sorted(here.keys() & there.keys())
    shared = [task for task in both if here[task].digest == there[task].digest]
    flips = [
        {"task": task, "before": _word(there[task]), "after": _word(here[task])}
        for task in shared
        if _word(there[task]) != _word(here[task])
    ]
    reason = _difference(run, against)
    document = {
        "run": run.run,
        "against": against.run,
        "comparable": reason is None,
        "reason": reason,
        "delta": _minus(run.score, against.score) if reason is None else None,
        "parts": {name: _minus(run.components.get(name), against.components.get(name)) for name in PARTS}
        if reason is None
        else None,
        "shared_tasks": len(shared),
        "only_here": sorted(here.keys() - there.keys()),
        "only_there": sorted(there.keys() - here.keys()),
        "changed": sorted(set(both) - set(shared)),
        "passed_here": sum(here[task].passed is True for task in shared),
        "passed_there": sum(there[task].passed is True for task in shared),
        "flips": flips,
        "drift": drift(run, against),
    }
    worse = tuple(str(flip["task"]) for flip in flips if flip["before"] == "passed")
    return Comparison(document, worse)


def drift(run: Run, against: Run) -> dict[str, int]:
    """By how many failures each category grew or shrank; categories that both lack are left out."""
    now, before = run.counts(), against.counts()
    return {
        name: now.get(name, 0) - before.get(name, 0) for name in CATEGORIES if name in now or name in before
    }


def _difference(run: Run, against: Run) -> str | None:
    """Why two scores are not comparable; None when they are."""
    if run.scope != against.scope:
        return f"the scopes differ: {','.join(run.scope)} and {','.join(against.scope)}"
    if run.suite_digest != against.suite_digest:
        return "the suites differ: tasks were added, removed or changed in between"
    return None


def _word(result: Result) -> str:
    return {True: "passed", False: "failed", None: "unknown"}[result.passed]


def _minus(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else round(now - before, 4)
