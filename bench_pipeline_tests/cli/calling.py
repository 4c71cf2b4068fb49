"""Calling the command line in this process, over a project whose tables are written by the test."""

from pathlib import Path

import pyarrow.compute as pc
import pytest

from bench_pipeline.cli.main import main
from bench_pipeline.project import find_project
from bench_pipeline.store import Store
from bench_pipeline_tests.outcomes import Results, tables

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"


def project(folder: Path, results: Results, **facts: object) -> str:
    """A project with an evaluation ``nightly`` whose cells and verdicts are in its store."""
    (folder / "evaluations").mkdir()
    (folder / "evaluations" / "nightly.yaml").write_text(
        f"{HEAD}kind: Evaluation\ntools: [{{tool: shell}}]\n"
    )
    (folder / "config.yaml").write_text(f"{HEAD}kind: Project\n")
    store = Store.open(find_project(folder).store_url)
    for name, table in zip(("evaluation_cells", "verdicts"), tables(results, **facts), strict=True):
        for attempt in table["attempt"].unique().to_pylist():
            rows = table.filter(pc.equal(table["attempt"], attempt))
            store.tables.write(name, rows, tier="standard", attempt=attempt)
    return str(folder)


def call(*arguments: str) -> int:
    """The exit status of ``bench`` with these arguments."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    return int(done.value.code or 0)
