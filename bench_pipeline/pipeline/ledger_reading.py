"""What ``bench ledger summarize`` does: one file to its summary.

What belongs here: the routes that count, and the document. What does not: a project's own ledgers and their tables
(``ledger_tables``).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_pipeline.ledgers.reading import summarize
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.project import Project, find_project


def summarize_file(
    path: Path, project_dir: Path | None, on_slow: Callable[[], None] | None = None
) -> dict[str, Any]:
    """The summary of a ledger; with a project, its own kinds of routes count too. For ``on_slow`` see ``summarize``."""
    routes = Routes() if project_dir is None else project_routes(find_project(project_dir))
    return summarize(path, routes, on_slow=on_slow).document()


def project_routes(project: Project) -> Routes:
    """The kinds of routes of a project; DocumentError when its configuration names a kind that there is none."""
    return Routes(project.config.ledgers.routes, file=str(project.config_path))
