"""A daemon that only ticks when it is told to: real sensors, schedules and runs on a real instance."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._utils.schedules import schedule_execution_time_iterator

from bench_pipeline.definitions import build_defs
from bench_pipeline.defs.runs import RUN_KEY
from bench_pipeline.pipeline.bench import Bench

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Daemon:
    """The code location of a project as a daemon holds it, from ``load`` until the next."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root = root
        self.instance = instance
        self._cursors: dict[str, str | None] = {}
        self.load()

    def load(self) -> None:
        """Load the code location anew, as a restart does."""
        self._located = Bench(self.root)
        self._definitions = build_defs({"bench": self._located})
        self.repository = self._definitions.get_repository_def()

    @property
    def bench(self) -> Bench:
        return Bench(self.root)

    def look(self, sensor: str) -> list[dg.RunRequest]:
        """One tick of a sensor as Dagster makes it, up to what it asks for; partitions are added."""
        definition = self.repository.get_sensor_def(sensor)
        context = dg.build_sensor_context(
            self.instance,
            cursor=self._cursors.get(sensor),
            repository_def=self.repository,
            resources={"bench": self._located},
        )
        data = definition.evaluate_tick(context)
        self._cursors[sensor] = data.cursor
        for request in data.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        requests = list(data.run_requests or [])
        keys = [request.run_key for request in requests]
        assert len(keys) == len(set(keys)), "Dagster does not drop duplicates within a tick"
        return [self._addressed(request, definition) for request in requests]

    @staticmethod
    def _addressed(
        request: dg.RunRequest, definition: dg.SensorDefinition | dg.ScheduleDefinition
    ) -> dg.RunRequest:
        return request.with_replaced_attrs(job_name=request.job_name or definition.job_name)

    def strike(self, schedule: str, at: datetime) -> list[dg.RunRequest]:
        """One tick of a schedule."""
        definition = self.repository.get_schedule_def(schedule)
        context = dg.build_schedule_context(
            self.instance, repository_def=self.repository, scheduled_execution_time=at
        )
        data = definition.evaluate_tick(context)
        return [self._addressed(request, definition) for request in data.run_requests or []]

    def times(self, schedule: str, since: str) -> Iterator[datetime]:
        """When Dagster's scheduler ticks, from the beginning of a day on."""
        definition = self.repository.get_schedule_def(schedule)
        start = datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()
        return schedule_execution_time_iterator(
            start, definition.cron_schedule, definition.execution_timezone
        )

    def run(self, requests: Sequence[dg.RunRequest], *, may_fail: bool = False) -> list[str]:
        """Run what was asked for, once per run key; the ids of these runs."""
        done = []
        for request in requests:
            assert request.run_key
            assert request.job_name
            if self.instance.get_runs(dg.RunsFilter(tags={RUN_KEY: request.run_key})):
                continue
            # Each run is a process of its own, which loads the code location.
            self.load()
            job = self._definitions.resolve_job_def(request.job_name)
            if request.asset_selection is not None:
                job = job.get_subset(asset_selection=set(request.asset_selection))
            result = job.execute_in_process(
                instance=self.instance,
                tags={**request.tags, RUN_KEY: request.run_key},
                run_config={**request.run_config, **QUIET},
                raise_on_error=False,
            )
            assert result.success or may_fail
            done.append(result.run_id)
        return done
