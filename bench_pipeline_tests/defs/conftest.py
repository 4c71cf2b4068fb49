"""A small real project to materialise: a part of the example project, in a folder of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from bench_pipeline.pipeline.bench import Bench

EXAMPLE = Path(__file__).parents[2] / "data"
TASKS = ("delimited-last-field", "backup-names-with-spaces")
EVALUATION = """\
apiVersion: bench.ber.run/v1alpha1
kind: Evaluation
attempts: 1
tools:
  - tool: predictions
    model: [careful-large, template-bot]
"""


def small_project(root: Path) -> Path:
    """Two tasks of the example project and one evaluation of two recorded setups: four cells."""
    (root / "tasks").mkdir(parents=True)
    for name in TASKS:
        shutil.copytree(EXAMPLE / "tasks" / name, root / "tasks" / name)
    shutil.copytree(EXAMPLE / "predictions", root / "predictions")
    (root / "evaluations").mkdir()
    (root / "evaluations" / "models.yaml").write_text(EVALUATION)
    (root / "config.yaml").write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"
        "defaults: {max_attempts: 2, cell_timeout: 1m}\nsandbox: {backend: process, allow_process: true}\n"
    )
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """That project, in a folder of its own."""
    return small_project(tmp_path / "project")


@pytest.fixture
def bench(project: Path) -> Bench:
    """The workbench of that project."""
    return Bench(project)


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an instance without history: making its databases takes ten times as long as copying them."""
    home = tmp_path_factory.mktemp("dagster")
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.from_config(str(home)) as opened:
        opened.get_runs()
        opened.get_dynamic_partitions("any")
        opened.all_instigator_state()
    return home


@pytest.fixture
def instance(tmp_path: Path, empty_home: Path) -> Iterator[dg.DagsterInstance]:
    """A real instance on disk."""
    home = Path(shutil.copytree(empty_home, tmp_path / "dagster"))
    with dg.DagsterInstance.from_config(str(home)) as opened:
        yield opened
