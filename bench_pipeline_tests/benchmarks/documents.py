"""Loading task files into strict models, against PyYAML's C loader without any model."""

import tempfile
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from bench_pipeline.documents import (
    Bool,
    Commit,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    StrictModel,
    Text,
    TextList,
    read_documents,
)
from bench_pipeline_tests.benchmarks import Row, best_of

FILES = 5000

_TASK = """\
apiVersion: bench.ber.run/v1alpha1
kind: Task
source:
  remote: https://example.com/owner/project.git
  pull_request: {number}
  base_commit: "{number:040x}"
  fix_commit: "{number:040d}"
tier: standard
timeout: 20m
environment:
  image: python:3.12
  setup:
    - python -m pip install -e .
  fingerprint: [python3 --version]
prompt: prompt.md
verify:
  network: false
  protected_paths: [tests/, conftest.py]
  tests_patch: tests.patch
  command: python -m pytest -q --junitxml=results.xml
  timeout: 5m
  results: {{format: junit, path: results.xml}}
reference_patch: reference.patch
validation:
  base_failed: true
  reference_passed: true
  tests: ["tests/test_parser.py::test_{number}"]
  seconds: 12.5
"""


class _Source(StrictModel):
    remote: Text
    pull_request: Int
    base_commit: Commit
    fix_commit: Commit


class _Environment(StrictModel):
    image: Text
    setup: TextList
    fingerprint: TextList


class _Results(StrictModel):
    format: Literal["junit", "tap"]
    path: RelativePath


class _Verify(StrictModel):
    network: Bool
    protected_paths: TextList
    tests_patch: RelativePath
    command: Text
    timeout: Duration
    results: _Results


class _Validation(StrictModel):
    base_failed: Bool
    reference_passed: Bool
    tests: TextList = Field(min_length=1)
    seconds: Float


class _Task(StrictModel):
    source: _Source
    tier: Name
    timeout: Duration
    environment: _Environment
    prompt: RelativePath
    verify: _Verify
    reference_patch: RelativePath
    validation: _Validation


def measure() -> list[Row]:
    """Seconds to load 5,000 files of 28 lines, ours and ``yaml.load(..., Loader=CSafeLoader)``."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"task-{number}.yaml" for number in range(FILES)]
        for number, path in enumerate(paths):
            path.write_text(_TASK.format(number=number), encoding="utf-8")

        def ours() -> None:
            documents, problems = read_documents(paths, {"Task": _Task})
            assert len(documents) == FILES, problems[:3]

        def peer() -> None:
            loaded = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in paths]
            assert len(loaded) == FILES

        return [Row(f"documents: {FILES} task files into models", best_of(3, ours), best_of(3, peer), 1.5)]
