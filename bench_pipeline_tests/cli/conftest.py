"""Fixtures of the command-line tests."""

import importlib
import pkgutil

import pytest

import bench_pipeline.cli


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output as a wide terminal without colours, for every command."""
    for found in pkgutil.iter_modules(bench_pipeline.cli.__path__):
        module = importlib.import_module(f"bench_pipeline.cli.{found.name}")
        if hasattr(module, "wants_plain"):
            monkeypatch.setattr(module, "wants_plain", lambda plain: plain)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
