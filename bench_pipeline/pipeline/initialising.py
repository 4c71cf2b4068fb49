"""Writes a new project, and the files that this machine needs to run one.

What belongs here: what ``bench init`` leaves behind, the Dagster instance and workspace of a project, schemas
for editors. What does not: the texts (``templates``), reading a project (``project``), and making tasks or
further evaluations.
"""

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bench_pipeline.errors import BenchError, RefusedError
from bench_pipeline.pipeline.asking import upstream_tags
from bench_pipeline.project import CONFIG_NAME, Project, is_project_file, load_project

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDERS = ("evaluations", "tools", "tasks", "predictions")
MODULE = "bench_pipeline.definitions"
LOCATION = "bench_pipeline"
_IGNORED = ".bench/"
# Files with this first line are ours to rewrite when the configuration changes; without it they are yours.
_OURS = "# Written by bench from config.yaml; delete this line to keep changes of your own.\n"

NEXT_STEPS = (
    ("bench doctor", "what this machine can do"),
    ("bench task create --repo PATH COMMIT", "a commit with its tests becomes a task"),
    ("bench task validate", "the reference must pass, the base must fail"),
    ("bench evaluation create NAME", "which setups to compare; evaluations/example.yaml is a start"),
    ("bench run NAME", "measure; --dry-run shows what it would do and cost"),
    ("bench rank NAME", "which setup is better, and how sure that is"),
)


@dataclass
class Initialised:
    """What ``initialise`` did: files written, and files that were there and stayed as they were."""

    project: Path
    written: list[Path] = field(default_factory=list)
    left_alone: list[Path] = field(default_factory=list)


def initialise(folder: Path) -> Initialised:
    """Make ``folder`` a project, writing what is missing; no file of anybody is replaced.

    Raises RefusedError when the folder's config.yaml belongs to another program, DocumentError when it is a
    project's and wrong, and BenchError when a file cannot be written.
    """
    root = folder.absolute()
    config = root / CONFIG_NAME
    if config.is_file():
        if not is_project_file(config):
            raise RefusedError(
                f"making {folder} a project",
                f"its {CONFIG_NAME} is of another program",
                f"choose another folder, such as {folder / '.ber' / 'bench'}",
            )
        load_project(config)
    result = Initialised(root)
    try:
        for name in FOLDERS:
            (root / name).mkdir(parents=True, exist_ok=True)
        _write_new(config, _template(CONFIG_NAME), result)
        example = root / "evaluations" / "example.yaml"
        # Who has evaluations needs no example.
        if example.exists() or not any(example.parent.glob("*.yaml")):
            _write_new(example, _template("evaluations/example.yaml"), result)
        _ignore(root / ".gitignore", result)
        project = load_project(config)
        write_schemas(project)
        write_workspace(project)
        write_instance_config(project)
    except OSError as error:
        wrong = f"{error.strerror}: {error.filename}"
        raise BenchError(f"making {folder} a project", wrong, "choose a folder that you may write") from error
    return result


def _template(name: str) -> str:
    found: Traversable = resources.files("bench_pipeline").joinpath("templates", *name.split("/"))
    return found.read_text(encoding="utf-8")


def _write_new(path: Path, text: str, result: Initialised) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        result.left_alone.append(path)
    else:
        result.written.append(path)


def _ignore(path: Path, result: Initialised) -> None:
    """Keep the store out of Git: add a line to .gitignore, whatever else it says."""
    before = b""
    if path.is_symlink():
        # Git does not follow it, and it may lead out of the project.
        result.left_alone.append(path)
        return
    with contextlib.suppress(FileNotFoundError):
        before = path.read_bytes()
    if any(line.strip().strip(b"/") == b".bench" for line in before.splitlines()):
        result.left_alone.append(path)
        return
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    with path.open("ab") as stream:
        stream.write(gap + _IGNORED.encode() + b"\n")
    result.written.append(path)


def write_instance_config(project: Project) -> Path:
    """Make the project's Dagster instance when it is absent, and keep its dagster.yaml up to date.

    Returns the absolute folder, for DAGSTER_HOME. A dagster.yaml without our first line is left alone.
    """
    home = project.local_dir / "dagster"
    settings: dict[str, Any] = {
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        # A killed run must not hold a pool's slots for ever.
        "run_monitoring": {"enabled": True, "free_slots_after_run_end_seconds": 300},
        "concurrency": {
            "pools": {"granularity": "op", "default_limit": 1},
            "runs": {
                "max_concurrent_runs": 4,
                "tag_concurrency_limits": [
                    {"key": key, "limit": 1} for key in dict.fromkeys(upstream_tags(project.config))
                ],
            },
        },
        # Ticks that asked for nothing are most of the database within a month.
        "retention": {
            "schedule": {"purge_after_days": 90},
            "sensor": {"purge_after_days": {"skipped": 3, "success": 30, "failure": 30}},
            "auto_materialize": {"purge_after_days": {"skipped": 3, "success": 30, "failure": 30}},
        },
    }
    url = project.config.dagster.storage_url
    if url is not None:
        # The driver by name: without one, SQLAlchemy looks for another than dagster-postgres brings.
        named = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
        settings["storage"] = {"postgres": {"postgres_url": named}}
    _write_ours(home / "dagster.yaml", _OURS + _yaml(settings))
    return home


def write_workspace(project: Project) -> Path:
    """Write the workspace with which Dagster's own commands load the project; returns its path."""
    module = {"module_name": MODULE, "working_directory": str(project.root), "location_name": LOCATION}
    path = project.local_dir / "dagster" / "workspace.yaml"
    _write_ours(path, _OURS + _yaml({"load_from": [{"python_module": module}]}))
    return path


def write_schemas(project: Project) -> Path:
    """Write the JSON Schemas that documents name for editors; returns their folder."""
    from bench_pipeline.pipeline.reference import document_kinds, schema_name, schema_text

    folder = project.local_dir / "schemas"
    for kind, model in document_kinds().items():
        _write_ours(folder / schema_name(kind), schema_text(kind, model))
    return folder


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _write_ours(path: Path, text: str) -> None:
    """Write a generated file in one step, for its owner only; one that a person has taken over stays."""
    data = text.encode("utf-8", "surrogateescape")
    with contextlib.suppress(FileNotFoundError):
        before = path.read_bytes()
        if before == data or (path.suffix == ".yaml" and not before.startswith(_OURS.encode())):
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
