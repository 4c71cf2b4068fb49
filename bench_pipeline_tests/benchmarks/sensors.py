"""Ticks of sensors over many files of which none is new: processor time against one second."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg

from bench_pipeline.definitions import build_defs
from bench_pipeline.defs.partitions import LEDGER_AXIS
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.ledger_records import Record, write_record
from bench_pipeline.pipeline.ledger_watch import look
from bench_pipeline_tests.benchmarks import Row

FILES = 10_000
ALLOWED_S = 1.0
_CONFIG = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"
_TRIAL = '{"route": "baseline", "passed": true}\n'


def measure() -> list[Row]:
    """A row for each sensor that looks at files."""
    folder = Path(tempfile.mkdtemp(prefix="bench-sensors-"))
    try:
        (folder / "dagster").mkdir()
        with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
            root = folder / "project"
            bench = _project(root, "ledgers/lab-{:05}.jsonl")
            found = look(bench, [], lambda _: "absent", settle=False)
            instance.add_dynamic_partitions(LEDGER_AXIS, found.new_keys)
            for key in found.new_keys:
                write_record(bench.store, _record(key))
            ledgers = _tick(root, instance, "ledger_sensor")

            shutil.rmtree(root)
            _project(root, "tasks/task-{:05}.yaml")
            files = _tick(root, instance, "file_sensor")
    finally:
        shutil.rmtree(folder)
    return [
        Row(f"sensors: a tick over {FILES:,} known ledgers / a second", ledgers, ALLOWED_S, 1.0),
        Row(f"sensors: a tick over {FILES:,} known files of a project / a second", files, ALLOWED_S, 1.0),
    ]


def _project(root: Path, name: str) -> Bench:
    for number in range(FILES):
        path = root / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_TRIAL)
    (root / "config.yaml").write_text(_CONFIG)
    return Bench(root)


def _record(key: str) -> Record:
    """A ledger that was read."""
    return Record(key, f"{key}.jsonl", "0" * 64, len(_TRIAL), 1, "", 1, [])


def _tick(root: Path, instance: dg.DagsterInstance, sensor: str) -> float:
    """The processor time of one tick; those before it see the files for the first time."""
    bench = Bench(root)
    repository = build_defs({"bench": bench}).get_repository_def()
    definition = repository.get_sensor_def(sensor)

    def tick() -> None:
        context = dg.build_sensor_context(instance, repository_def=repository, resources={"bench": bench})
        definition.evaluate_tick(context)

    tick()
    tick()
    return min(_processor_time(tick) for _ in range(3))


def _processor_time(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
