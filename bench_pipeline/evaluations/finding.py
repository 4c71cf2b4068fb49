"""Which evaluations a project has, and reading one.

What belongs here: names and files. What does not: what a file means (``resolving``).
"""

from typing import TYPE_CHECKING

from bench_pipeline.documents import Document, one_of, read_document
from bench_pipeline.errors import NotFoundError, Problem
from bench_pipeline.evaluations.documents import EvaluationDocument
from bench_pipeline.registry.names import named_documents

if TYPE_CHECKING:
    from bench_pipeline.project import Project


def list_evaluations(project: "Project") -> list[str]:
    """The names of the project's evaluations, sorted, whether their files parse or not."""
    return [name for name, reason in _files(project).items() if reason is None]


def misnamed_evaluations(project: "Project") -> list[Problem]:
    """Files among the evaluations that are not read, and why."""
    return [
        Problem(str(project.evaluations_dir / file), None, "", f"is not read: {reason}")
        for file, reason in _files(project).items()
        if reason is not None
    ]


def _files(project: "Project") -> dict[str, str | None]:
    """Names of evaluations with None, and names of files that cannot be one with the reason."""
    return named_documents(project.evaluations_dir, "the evaluation")


def load_evaluation(project: "Project", name: str) -> Document[EvaluationDocument]:
    """Read ``evaluations/<name>.yaml``. Raises NotFoundError with the nearest match, or DocumentError."""
    names = list_evaluations(project)
    if name not in names:
        hint = one_of(name, names, "evaluations") if names else f"bench evaluation create {name} writes one"
        raise NotFoundError(
            f"finding the evaluation {name}", f"there is none in {project.evaluations_dir}", hint
        )
    return read_document(project.evaluations_dir / f"{name}.yaml", EvaluationDocument, "Evaluation")
