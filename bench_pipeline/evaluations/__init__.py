"""Evaluations: which setups are compared, and how often each tries every task.

What belongs here: the file's shape, its resolution into setups, labels, what of a setup decides its
candidates. What does not: tasks, running, and anything that needs a machine to be asked.
"""

from bench_pipeline.evaluations.documents import EvaluationDocument
from bench_pipeline.evaluations.finding import list_evaluations, load_evaluation, misnamed_evaluations
from bench_pipeline.evaluations.labels import file_safe
from bench_pipeline.evaluations.resolving import Resolution, resolve, resolve_one
from bench_pipeline.evaluations.setup import Setup, StepSetup, setup_digest, setup_document

__all__ = [
    "EvaluationDocument",
    "Resolution",
    "Setup",
    "StepSetup",
    "file_safe",
    "list_evaluations",
    "load_evaluation",
    "misnamed_evaluations",
    "resolve",
    "resolve_one",
    "setup_digest",
    "setup_document",
]
