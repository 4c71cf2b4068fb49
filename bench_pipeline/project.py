"""Finds a project and loads its configuration.

What belongs here: every key of ``config.yaml``, the user's file below it, where a project starts and where
its folders are. What does not: what is in those folders (registry, tasks, evaluations) and writing a new
project (``pipeline.initialising``).
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

from bench_pipeline.documents import (
    Bool,
    Document,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    Size,
    StrictModel,
    Text,
    TextList,
    one_of,
    read_document,
)
from bench_pipeline.documents.describing import describe
from bench_pipeline.documents.fields import as_relative_path
from bench_pipeline.documents.hosts import refuse_forge_hosts
from bench_pipeline.documents.times import Cron, TimeZone
from bench_pipeline.errors import DocumentError, NotFoundError, Problem

CONFIG_NAME = "config.yaml"
KIND = "Project"
# A project may also live inside a repository that is not its own.
NESTED = Path(".ber") / "bench"
# Dagster documents a ceiling of 100,000 partitions for an asset, and every tier and attempt is one.
MAX_ATTEMPTS = 100_000 // 4

T = TypeVar("T", bound=StrictModel)


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s]*", text):
        raise ValueError(f"expected a URL that starts with https:// or http://, found {describe(text)}")
    return text


def _folder(text: str) -> str:
    """A path inside the project, unless it is a URL."""
    return text if "://" in text else as_relative_path(text)


def _host(text: str) -> str:
    refuse_forge_hosts([text])
    return text


def _environment_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        # What stands there may be the secret itself, so it is not shown.
        raise ValueError("expected the name of an environment variable; what it holds belongs in no file")
    return text


Share = Annotated[Float, Field(ge=0, le=1)]
Count = Annotated[Int, Field(ge=1)]
Dollars = Annotated[Float, Field(ge=0)]
Url = Annotated[Text, AfterValidator(_url)]
Folder = Annotated[Text, AfterValidator(_folder)]
Variable = Annotated[Name, AfterValidator(_environment_name)]


class Resources(StrictModel):
    """What one cell may use."""

    cpus: Annotated[Float, Field(gt=0)] = Field(2.0, description="Processors.")
    memory: Size = Field(
        4 << 30, description="Memory, as text with a unit.", json_schema_extra={"default": "4GiB"}
    )
    pids: Count = Field(512, description="Processes at one time.")


class Defaults(StrictModel):
    """What evaluations use when they say nothing else."""

    attempts: Count = Field(1, description="How often each setup does each task.")
    max_attempts: Count = Field(
        10,
        description="The size of the attempt axis, at most 25000; an evaluation that asks for more is refused.",
        json_schema_extra={"maximum": MAX_ATTEMPTS},
    )
    concurrency: Count = Field(2, description="Cells that run at one time.")
    cell_timeout: Duration = Field(
        1200.0, description="Time for the tool in one cell.", json_schema_extra={"default": "20m"}
    )
    resources: Resources = Field(default_factory=Resources, description="What one cell may use.")


class Source(StrictModel):
    """Where the tasks come from: provenance, and the remote of tasks that name none."""

    provider: Name | None = Field(None, description="The kind of forge, such as github.")
    host: Name | None = Field(None, description="The forge's host.")
    owner: Name | None = Field(None, description="The repository's owner.")
    repo: Name | None = Field(None, description="The repository's name.")
    remote: Name | None = Field(None, description="A Git URL, or a path relative to the project.")


class Harvest(StrictModel):
    """How `bench task create` splits a commit into tests and reference."""

    test_patterns: TextList = Field(
        (), description="Patterns, as in .gitignore, of files that are tests; empty means the built-in ones."
    )
    noise_patterns: TextList = Field(
        (), description="Patterns, as in .gitignore, of files that belong to neither part; asked first."
    )


class Sandbox(StrictModel):
    """What keeps a cell away from the machine."""

    backend: Literal["auto", "bubblewrap", "docker", "process"] = Field(
        "auto", description="auto takes bubblewrap, else docker, else process where it is allowed."
    )
    allow_process: Bool = Field(
        False, description="Allow running without isolation where nothing else works."
    )


class Agent(StrictModel):
    """What every tool may reach."""

    allow_hosts: tuple[Annotated[Name, AfterValidator(_host)], ...] = Field(
        (), description="Hosts beyond those that a tool's definition names; never a code forge."
    )


class CellSpending(StrictModel):
    """Limits on what one cell may ask of model APIs; a request that would exceed one is not sent."""

    max_requests: Count | None = Field(None, description="Requests; null is no limit.")
    max_tokens: Count | None = Field(None, description="Tokens of all kinds; null is no limit.")
    max_cost_usd: Dollars | None = Field(None, description="US dollars; null is no limit.")


class Spending(StrictModel):
    """Limits on what one run may cost."""

    max_cost_usd: Dollars | None = Field(
        None, description="US dollars that one run may spend; null is no limit."
    )
    max_cells: Count | None = Field(None, description="Cells that one run may execute; null is no limit.")
    assume_cost_usd: Dollars | None = Field(
        None, description="What to reserve for a cell whose setup has no known cost yet; a cap needs it."
    )
    max_requests: Count | None = Field(
        None, description="Requests that the tools of one run may send to model APIs; null is no limit."
    )
    max_tokens: Count | None = Field(
        None, description="Tokens of all kinds that they may use; null is no limit."
    )
    cell: CellSpending = Field(default_factory=CellSpending, description="Limits on each cell.")


class Ranking(StrictModel):
    """When a setup is ranked."""

    min_coverage: Share = Field(
        0.9, description="Share of its planned cells that a ranked setup has measured."
    )


class Upstream(StrictModel):
    """A model API."""

    base_url: Url = Field(description="Where the API is.")
    key_env: Variable | None = Field(None, description="The environment variable that holds the key.")
    models: TextList = Field((), description="Models that may be asked for.")
    concurrency: Count = Field(8, description="Calls in flight at one time.")
    requests_per_minute: Count | None = Field(None, description="Calls begun in a minute; null is no limit.")


class Judge(StrictModel):
    """The model that judges pairs."""

    upstream: Name | None = Field(None, description="A name under upstreams.")
    model: Name | None = Field(None, description="A model of that upstream.")


class Ledgers(StrictModel):
    """Results that others measured."""

    folder: Folder = Field(
        "ledgers", description="The folder of ledger files: a path in the project, or an fsspec URL."
    )
    routes: dict[Name, Name] = Field(default_factory=dict, description="The kind of each exact route.")


class Policies(StrictModel):
    """What comparisons of policies may take."""

    max_timeout: Duration = Field(
        300.0, description="The longest time for one policy.", json_schema_extra={"default": "5m"}
    )
    max_cases: Count = Field(
        1000, description="The most cases of one set; their file may have 1 MiB for each thousand."
    )


class Schedule(StrictModel):
    """When a schedule runs."""

    cron: Cron = Field("17 2 * * *", description="Five cron fields.")
    timezone: TimeZone = Field("UTC", description="A time zone's name.")
    enabled: Bool = Field(False, description="Whether it runs once the daemon is up.")


class Schedules(StrictModel):
    """The schedules of a project."""

    nightly: Schedule = Field(default_factory=Schedule, description="Runs the whole project.")


class WatchedGate(StrictModel):
    """A comparison of two setups, decided as `bench gate` does it whenever their results change."""

    evaluation: Name = Field(description="The evaluation that has both setups.")
    baseline: Name = Field(description="A setup's label, or the start of its digest.")
    candidate: Name = Field(description="A setup's label, or the start of its digest.")
    margin: Annotated[Float, Field(ge=0, lt=1)] | None = Field(
        None, description="The loss in pass rate that is bearable; null is 0.05."
    )
    alpha: Annotated[Float, Field(gt=0, lt=0.5)] | None = Field(
        None, description="The interval is two-sided at 1 - alpha; null is 0.05."
    )
    min_tasks: Count | None = Field(
        None, description="Shared tasks below which nothing is concluded; null is 10."
    )
    min_rate: Share | None = Field(None, description="The pass rate that the candidate must reach.")
    max_cost: Dollars | None = Field(
        None, description="What the candidate's cells may have cost, in US dollars."
    )


Event = Literal["gate_flipped", "night_failed"]


class Target(StrictModel):
    """Somebody to tell."""

    url_env: Variable = Field(
        description="The environment variable that holds the URL, as Apprise reads it; it has keys in it."
    )
    events: tuple[Event, ...] = Field(("gate_flipped", "night_failed"), description="What is told.")


class DagsterSettings(StrictModel):
    """How Dagster keeps its own records."""

    storage_url: Text | None = Field(
        None, description="A postgresql:// URL; null keeps SQLite files in .bench/dagster."
    )
    executor: Literal["in_process", "multiprocess"] = Field(
        "in_process", description="One process for all steps of a run, or one for each."
    )


class Execution(StrictModel):
    """Where cells run."""

    engine: Literal["threads", "processes", "dask"] = Field(
        "threads",
        description="Threads of the run's process, processes of this machine, or workers of a Dask cluster.",
    )
    address: Text | None = Field(
        None, description="The scheduler of the Dask cluster, such as tcp://scheduler:8786."
    )


class ProjectConfig(StrictModel):
    """``config.yaml``: every key is optional, a wrong one is an error."""

    defaults: Defaults = Field(default_factory=Defaults, description="What evaluations use by default.")
    source: Source = Field(default_factory=Source, description="Where the tasks come from.")
    dockerfile: RelativePath | None = Field(None, description="Builds the image of the docker sandbox.")
    harvest: Harvest = Field(default_factory=Harvest, description="How tasks are made from commits.")
    results: Name = Field(
        ".bench", description="The store: a path relative to the project, or an fsspec URL."
    )
    sandbox: Sandbox = Field(default_factory=Sandbox, description="What keeps a cell away from the machine.")
    agent: Agent = Field(default_factory=Agent, description="What every tool may reach.")
    execution: Execution = Field(default_factory=Execution, description="Where cells run.")
    spending: Spending = Field(default_factory=Spending, description="Limits on what one run may cost.")
    tries: Count = Field(
        3, description="Execution failures of one cell, over all runs, after which it is left alone."
    )
    ranking: Ranking = Field(default_factory=Ranking, description="When a setup is ranked.")
    attestation: Literal["off", "report", "require"] = Field(
        "report", description="Whether results need an attestation of a clean run."
    )
    allowance: tuple[RelativePath, ...] = Field(
        (), description="Files and folders of documentation that agents may read: what they say is no answer."
    )
    upstreams: dict[Name, Upstream] = Field(
        default_factory=dict, description="Model APIs, by a name of yours."
    )
    judge: Judge = Field(default_factory=Judge, description="The model that judges pairs.")
    ledgers: Ledgers = Field(default_factory=Ledgers, description="Results that others measured.")
    policies: Policies = Field(default_factory=Policies, description="What comparisons of policies may take.")
    schedules: Schedules = Field(default_factory=Schedules, description="What runs by itself.")
    gates: dict[Name, WatchedGate] = Field(
        default_factory=dict, description="Comparisons that are watched, by a name of yours."
    )
    notifications: dict[Name, Target] = Field(
        default_factory=dict, description="Who is told what happens by itself, by a name of yours."
    )
    dagster: DagsterSettings = Field(
        default_factory=DagsterSettings, description="How Dagster keeps its records."
    )


@dataclass(frozen=True)
class Project:
    """A project's root folder (absolute), its configuration, and the file that holds it."""

    root: Path
    config: ProjectConfig
    config_path: Path

    @property
    def evaluations_dir(self) -> Path:
        """Where evaluations are, one file each."""
        return self.root / "evaluations"

    @property
    def tools_dir(self) -> Path:
        """Where the project's tools and workflows are."""
        return self.root / "tools"

    @property
    def tasks_dir(self) -> Path:
        """Where tasks are, one folder each."""
        return self.root / "tasks"

    @property
    def predictions_dir(self) -> Path:
        """Where recorded patches are, one file for each model."""
        return self.root / "predictions"

    @property
    def policies_dir(self) -> Path:
        """Where comparisons of policies are, one file each, with their cases and recordings."""
        return self.root / "policies"

    @property
    def local_dir(self) -> Path:
        """Caches and Dagster's records, which stay on this machine when the store is far away."""
        return self.root / ".bench"

    @property
    def store_url(self) -> str:
        """The store's location: an absolute path, or an fsspec URL."""
        results = self.config.results
        return results if "://" in results else str(self.root / results)


def user_dir() -> Path:
    """The user's own tools, pricing and configuration, between built-in ones and the project's."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "ber" / "bench"


def find_project(start: Path | None = None) -> Project:
    """The project to work on, with its configuration.

    ``start`` names its folder; without it BENCH_PROJECT does; else it is the nearest folder at or above the
    working directory that is a project or holds one in ``.ber/bench``; else, in a source checkout of
    bench_pipeline, the example project. NotFoundError when there is none, DocumentError when its
    configuration is wrong.
    """
    named = start or (Path(os.environ["BENCH_PROJECT"]) if os.environ.get("BENCH_PROJECT") else None)
    if named is not None:
        config = _config_at(named.absolute())
        if config is None:
            raise NotFoundError(
                f"opening the project {named}",
                f"there is no {CONFIG_NAME} with kind: {KIND} in it",
                f"run `bench init {named}`, or name another folder",
            )
        return load_project(config)
    here = Path.cwd()
    for folder in (here, *here.parents):
        config = _config_at(folder)
        if config is not None:
            return load_project(config)
    example = _example_project(here)
    if example is not None:
        return load_project(example)
    raise NotFoundError(
        f"looking for a project from {here} upwards",
        f"no folder holds a {CONFIG_NAME} with kind: {KIND}, or {NESTED / CONFIG_NAME}",
        "run `bench init DIR`, or name a project with --project DIR or BENCH_PROJECT",
    )


def _config_at(folder: Path) -> Path | None:
    return next(
        (path for path in (folder / CONFIG_NAME, folder / NESTED / CONFIG_NAME) if is_project_file(path)),
        None,
    )


# Other programs have a config.yaml too; one of ours says its kind at the start of a line, even when broken.
_OURS = re.compile(rb"^[\"']?kind[\"']?\s*:\s*[\"']?Project\b", re.MULTILINE)


def is_project_file(path: Path) -> bool:
    """Whether a file is a project's configuration, right or wrong, rather than another program's."""
    try:
        with path.open("rb") as stream:
            return _OURS.search(stream.read(1 << 20)) is not None
    except OSError:
        return False


def _example_project(here: Path) -> Path | None:
    checkout = Path(__file__).resolve().parent.parent
    inside = here.resolve().is_relative_to(checkout)
    return _config_at(checkout / "data") if inside and (checkout / "pyproject.toml").is_file() else None


def load_project(config_path: Path) -> Project:
    """The project of one configuration file, over the user's; DocumentError with all problems of both."""
    path = config_path.resolve()
    own, problems = _read(path)
    user_path = user_dir() / CONFIG_NAME
    lower, more = _read(user_path) if user_path.is_file() else (None, ())
    if own is None or problems or more:
        raise DocumentError([*problems, *more])
    config = own.model if lower is None else _over(lower.model, own.model)
    wrong = [_placed(field, message, own, lower) for field, message in _contradictions(config)]
    if wrong:
        raise DocumentError(wrong)
    return Project(path.parent, config, path)


def _read(path: Path) -> tuple[Document[ProjectConfig] | None, tuple[Problem, ...]]:
    try:
        return read_document(path, ProjectConfig, KIND), ()
    except DocumentError as error:
        return None, error.problems


def _over(lower: T, upper: T) -> T:
    """``upper``'s fields that were written, over ``lower``'s; mappings merge key by key."""
    changes: dict[str, Any] = {}
    for name in upper.model_fields_set:
        below, value = getattr(lower, name), getattr(upper, name)
        if isinstance(value, StrictModel) and isinstance(below, StrictModel):
            value = _over(below, value)
        elif isinstance(value, dict):
            value = {**below, **value}
        changes[name] = value
    return lower.model_copy(update=changes)


def _contradictions(config: ProjectConfig) -> Iterator[tuple[tuple[str, str], str]]:
    """Fields that are fine alone and wrong together."""
    defaults, judge = config.defaults, config.judge
    if defaults.max_attempts > MAX_ATTEMPTS:
        why = "every tier and attempt is a partition, and Dagster takes 100,000 of these"
        yield ("defaults", "max_attempts"), f"is {defaults.max_attempts}, more than {MAX_ATTEMPTS}: {why}"
    if defaults.attempts > defaults.max_attempts:
        most = f"defaults.max_attempts, {defaults.max_attempts}"
        yield ("defaults", "attempts"), f"is {defaults.attempts}, more than {most}; raise that too"
    execution = config.execution
    if execution.engine == "dask" and execution.address is None:
        yield ("execution", "address"), "is not given; the engine dask needs its scheduler's, tcp://HOST:8786"
    if execution.engine != "dask" and execution.address is not None:
        yield ("execution", "address"), f"is given, and the engine is {execution.engine}; it is dask's alone"
    if judge.upstream is not None and judge.upstream not in config.upstreams:
        yield (
            ("judge", "upstream"),
            f"is not an upstream; {one_of(judge.upstream, config.upstreams, 'upstreams')}",
        )


def _placed(
    field: tuple[str, str], message: str, own: Document[ProjectConfig], lower: Document[ProjectConfig] | None
) -> Problem:
    """The problem in the project's file, unless only the user's has the field."""
    section = getattr(own.model, field[0])
    if lower is not None and field[1] not in section.model_fields_set:
        return lower.problem(field, message)
    return own.problem(field, message)
