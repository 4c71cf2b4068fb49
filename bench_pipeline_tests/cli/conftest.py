"""Fixtures of the command-line tests."""

import importlib
import pkgutil

import pytest

import bench_pipeline.cli


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output as a wide terminal without colours, for every command."""
    names = [found.name for found in pkgutil.iter_modules(bench_pipeline.cli.__path__)]
    # All are imported before any is patched: a later import would keep the patched function for good.
    modules = [importlib.import_module(f"bench_pipeline.cli.{name}") for name in names]
    for module in modules:
        if hasattr(module, "wants_plain"):
            monkeypatch.setattr(module, "wants_plain", lambda plain: plain)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
