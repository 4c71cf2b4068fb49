"""Tools, workflows and prices: YAML definitions, shipped and overlaid by users and projects.

What belongs here: what a tool is, which models and options it has, what tokens cost. What does not: which
setups an evaluation makes of them (``evaluations``) and running them (``execution``).
"""

from bench_pipeline.registry.definitions import Definition, ToolDefinition, WorkflowDefinition
from bench_pipeline.registry.documents import (
    Effect,
    Option,
    PricingDocument,
    ToolDocument,
    ToolModel,
    WorkflowDocument,
    WorkflowStep,
)
from bench_pipeline.registry.loading import Registry
from bench_pipeline.registry.pricing import PriceTable, cost_of_cell
from bench_pipeline.registry.tokens import TokenCounts

__all__ = [
    "Definition",
    "Effect",
    "Option",
    "PriceTable",
    "PricingDocument",
    "Registry",
    "TokenCounts",
    "ToolDefinition",
    "ToolDocument",
    "ToolModel",
    "WorkflowDefinition",
    "WorkflowDocument",
    "WorkflowStep",
    "cost_of_cell",
]
