"""A run in which every verdict is known, against Dagster materialising as many trivial assets and partitions."""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from bench_pipeline.cli.launching import run_everything
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.initialising import write_instance_config
from bench_pipeline.pipeline.running import prepare
from bench_pipeline.pipeline.selection import TIERS, RunOptions
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline_tests.benchmarks import Row, best_of

EXAMPLE = Path(__file__).parents[2] / "data"
ATTEMPTS = 10
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def measure() -> list[Row]:
    """4 tiers x 10 attempts, 440 cells."""
    with tempfile.TemporaryDirectory() as folder:
        project = _project(Path(folder))
        _know_every_verdict(Bench(project))

        def ours() -> None:
            bench = Bench(project)
            run_everything(bench, prepare(bench, RunOptions()).partitions, RunOptions())

        ours()
        peer = _Trivial(Path(folder))
        peer.run()
        return [
            Row(
                "bench run, all of 40 partitions cached / trivial assets",
                best_of(3, ours),
                best_of(3, peer.run),
                2.0,
            )
        ]


def _project(folder: Path) -> Path:
    root = folder / "project"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(".bench"))
    config = (root / "config.yaml").read_text()
    (root / "config.yaml").write_text(config.replace("max_attempts: 3", f"max_attempts: {ATTEMPTS}"))
    for path in (root / "evaluations").glob("*.yaml"):
        if path.stem != "models":
            path.unlink()
    models = root / "evaluations" / "models.yaml"
    models.write_text(models.read_text().replace("tools:", f"attempts: {ATTEMPTS}\ntools:"))
    return root


def _know_every_verdict(bench: Bench) -> None:
    cells = bench.plan().cells
    rows = [
        {
            **{name: bytes.fromhex(cell[name]) for name in ("identity", "run_key", "verify_key")},
            "outcome": "passed",
            "outcome_class": "verdict",
            "passed": True,
            "tool_ran": True,
            "measured_at": datetime.now(UTC),
        }
        for cell in cells.select(["identity", "run_key", "verify_key"]).to_pylist()
    ]
    bench.store.verdicts.append(VERDICT_PARTS.from_rows(rows))


class _Trivial:
    """Two assets over tiers x attempts in one ranged run, two unpartitioned ones in another."""

    def __init__(self, folder: Path) -> None:
        axes = {
            "tier": dg.StaticPartitionsDefinition(list(TIERS)),
            "attempt": dg.StaticPartitionsDefinition([str(number) for number in range(1, ATTEMPTS + 1)]),
        }
        partitions = dg.MultiPartitionsDefinition(axes)

        @dg.asset(partitions_def=partitions)
        def first() -> None: ...

        @dg.asset(partitions_def=partitions, deps=[first])
        def second() -> None: ...

        @dg.asset(deps=[second])
        def third() -> None: ...

        @dg.asset(deps=[second])
        def fourth() -> None: ...

        ranged = dg.define_asset_job("ranged", dg.AssetSelection.assets(first, second))
        whole = dg.define_asset_job("whole", dg.AssetSelection.assets(third, fourth))
        definitions = dg.Definitions(
            [first, second, third, fourth], jobs=[ranged, whole], executor=dg.in_process_executor
        )
        self._jobs = [definitions.resolve_job_def(name) for name in ("ranged", "whole")]
        source = write_instance_config(Bench(folder / "project").project) / "dagster.yaml"
        self._home = folder / "peer"
        self._home.mkdir()
        shutil.copy(source, self._home)

    def run(self) -> None:
        """Materialise everything on an instance of the same configuration as a project's."""
        tags = {
            "dagster/asset_partition_range_start": "1|smoke",
            "dagster/asset_partition_range_end": f"{ATTEMPTS}|adversarial",
        }
        with dg.DagsterInstance.from_config(str(self._home)) as instance:
            for job, tagged in zip(self._jobs, (tags, {}), strict=True):
                assert job.execute_in_process(instance=instance, tags=tagged, run_config=_QUIET).success
