"""Repository and golden tasks: load, check, harvest from a commit, and the Git and patch work that this needs.

What belongs here: the task documents and their folders, base trees out of repositories, patches, validation
fingerprints, leak checks. What does not: running anything of a task (``execution``), and which cells exist
(``evaluations``).
"""

from bench_pipeline.tasks.bases import Bases
from bench_pipeline.tasks.documents import TIERS, TaskDocument, Tier
from bench_pipeline.tasks.git import GitError
from bench_pipeline.tasks.golden import GoldenSet, GoldenTask, load_golden
from bench_pipeline.tasks.loading import TaskSet, load_tasks
from bench_pipeline.tasks.patches import PatchError
from bench_pipeline.tasks.signals import Signal, SignalCheck
from bench_pipeline.tasks.task import (
    DirectorySource,
    RemoteSource,
    Task,
    TaskEnvironment,
    TaskResults,
    TaskValidation,
    TaskVerify,
    brought_by_tests,
    hidden_test_files,
    task_components,
    touched_by_reference,
    verify_components,
)
from bench_pipeline.tasks.trees import Dropped, copy_tree, tree_digest
from bench_pipeline.tasks.validation import stale, validation_fingerprint, write_validation

__all__ = [
    "TIERS",
    "Bases",
    "DirectorySource",
    "Dropped",
    "GitError",
    "GoldenSet",
    "GoldenTask",
    "PatchError",
    "RemoteSource",
    "Signal",
    "SignalCheck",
    "Task",
    "TaskDocument",
    "TaskEnvironment",
    "TaskResults",
    "TaskSet",
    "TaskValidation",
    "TaskVerify",
    "Tier",
    "brought_by_tests",
    "copy_tree",
    "hidden_test_files",
    "load_golden",
    "load_tasks",
    "stale",
    "task_components",
    "touched_by_reference",
    "tree_digest",
    "validation_fingerprint",
    "verify_components",
    "write_validation",
]
