"""Which model APIs a run's tools reach, under which caps, and whether they can: asked before anything is spent.

What belongs here: from a project's ``upstreams`` and ``spending`` to a gateway, and the refusal of a run whose tools
would not reach their models. What does not: the gateway itself (``execution.gateway``).
"""

import os
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from bench_pipeline.errors import RefusedError
from bench_pipeline.pipeline.programs import leaves_to_run

if TYPE_CHECKING:
    from bench_pipeline.evaluations import StepSetup
    from bench_pipeline.execution.gateway import Gateway
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.planning import Plan
    from bench_pipeline.pipeline.selection import ModelUse, RunOptions


def gateway_of(bench: "Bench", use: "ModelUse | None") -> "Gateway":
    """The gateway of one run; its process starts with the first tool that needs it. That of a replay leads nowhere."""
    from bench_pipeline.execution.gateway import Caps, Gateway, Route, UpstreamSettings

    if use is not None and use.replay:
        return Gateway({}, {})
    max_cost_usd = use.max_cost_usd if use is not None else None

    spending, upstreams = bench.project.config.spending, bench.project.config.upstreams
    return Gateway(
        {
            name: UpstreamSettings(each.base_url, each.key_env, each.concurrency, each.requests_per_minute)
            for name, each in upstreams.items()
        },
        {
            model: Route(name, bench.prices.price(model))
            for name, each in upstreams.items()
            for model in each.models
            if unroutable(bench, model) is None
        },
        run_caps=Caps(spending.max_requests, spending.max_tokens, _dollars(_run_cap(bench, max_cost_usd))),
        cell_caps=Caps(
            spending.cell.max_requests, spending.cell.max_tokens, _dollars(spending.cell.max_cost_usd)
        ),
    )


def _run_cap(bench: "Bench", own: float | None) -> float | None:
    return own if own is not None else bench.project.config.spending.max_cost_usd


def _dollars(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(repr(value))


def refuse_unreachable_models(bench: "Bench", plan: "Plan", actions: pa.Table, options: "RunOptions") -> None:
    """Raise RefusedError, naming each tool and model, when a cell that would run a tool could not reach its model."""
    problems: dict[str, None] = {}
    capped = _run_cap(bench, options.max_cost_usd) is not None
    for leaf, _ in leaves_to_run(plan, actions):
        problem = upstream_problem(bench, leaf, capped=capped)
        if problem is not None:
            problems[f"{leaf.tool}: {problem}"] = None
    if problems:
        listed = "\n  ".join(sorted(problems))
        raise RefusedError("reaching model APIs", f"tools would not reach their models\n  {listed}")


def upstream_problem(bench: "Bench", leaf: "StepSetup", *, capped: bool = False) -> str | None:
    """Why one use of a tool would not reach its model, with what to do; None when it would, or needs none.

    ``capped``: the run has a cap in USD, which needs a price.
    """
    if not leaf.definition.model_apis:
        return None
    closed = door_problem(bench, leaf)
    if closed is not None:
        return closed
    if leaf.model_id is None:
        return "it needs a model: name one in the evaluation"
    capped = capped or bench.project.config.spending.cell.max_cost_usd is not None
    if capped and bench.prices.price(leaf.model_id) is None:
        return f"no price of {leaf.model_id} is known, so a cap in USD cannot be kept: add it to pricing.yaml"
    return unroutable(bench, leaf.model_id) or _unopened(bench, leaf.model_id)


def door_problem(bench: "Bench", leaf: "StepSetup") -> str | None:
    """Why one use of a tool would not even reach the gateway; None when it would, or needs none."""
    if leaf.definition.model_apis and bench.sandbox.loopback == "closed":
        return f"the {bench.sandbox.name} sandbox gives cells no way to model APIs: use --sandbox bubblewrap"
    return None


def _unopened(bench: "Bench", model: str) -> str | None:
    """Why the upstream of a model would turn requests away: its key is not there."""
    for name, each in bench.project.config.upstreams.items():
        if model in each.models and each.key_env and not os.environ.get(each.key_env, "").strip():
            return f"the key of the upstream {name} is not set: export {each.key_env}"
    return None


def unroutable(bench: "Bench", model: str) -> str | None:
    """Why requests for a model go nowhere, with what to do; None when exactly one upstream names it."""
    named = [name for name, each in bench.project.config.upstreams.items() if model in each.models]
    if not named:
        return f"no upstream names the model {model}: add it to the models of one under `upstreams:` in config.yaml"
    if len(named) > 1:
        return f"the upstreams {' and '.join(named)} both name the model {model}: keep it in one"
    return None
