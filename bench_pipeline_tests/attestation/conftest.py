"""What tests of attestations share: a tree that an agent begins with, and a store."""

from pathlib import Path

import pytest

from bench_pipeline.store import Store


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The base tree of the task."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "notes.txt").write_text("The harbour master keeps a list of the ships and of the winds.\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store")
