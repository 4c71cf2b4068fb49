"""A project's comparison of cells: ``scenarios/<name>.yaml``.

What belongs here: the file's fields, and which comparisons there are. What does not: running or judging anything.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from bench_pipeline.documents import (
    Document,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    StrictModel,
    Text,
    read_documents,
)
from bench_pipeline.errors import Problem
from bench_pipeline.providers.retrying import CALL_S
from bench_pipeline.registry.documents import FILLED
from bench_pipeline.registry.names import name_problem

KIND = "ScenarioComparison"
FOLDER = "scenarios"


class CellSource(StrictModel):
    """Where the runs of a cell come from: a tool that is run, or a folder of traces."""

    tool: Name | None = Field(
        None, description="A tool of the registry, run once for each scenario and attempt."
    )
    model: Name | None = Field(None, description="A model of the tool.")
    effort: Name | None = Field(None, description="An effort that the model takes.")
    options: dict[Name, Text] = Field(default_factory=dict, description="Options of the tool.")
    traces: RelativePath | None = Field(
        None, description="A folder of traces below scenarios/; the n-th run of a scenario is attempt n."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "CellSource":
        if (self.tool is None) == (self.traces is None):
            raise ValueError("expected either a tool or a folder of traces")
        if self.tool is None and (self.model or self.effort or self.options):
            raise ValueError("model, effort and options belong to a tool, and this cell reads traces")
        return self


class AskedJudge(StrictModel):
    """A model that judges the pairs, in both orders, beside the rubric. Asking it may spend money."""

    upstream: Name | None = Field(
        None, description="A name under upstreams of config.yaml; its judge.upstream where there is none."
    )
    model: Name | None = Field(None, description="A model of that upstream; judge.model of config.yaml.")
    max_calls: Annotated[Int, Field(ge=1)] | None = Field(
        None, description="The most calls of one run, repeated ones included; null is no limit."
    )
    timeout: Duration = Field(
        CALL_S, description="The time of one call.", json_schema_extra={"default": "2m"}
    )
    quorum: Annotated[Float, Field(ge=0, le=1)] = Field(
        0.5, description="The least share of pairs with a vote; fewer fail a check."
    )


class ComparisonDocument(StrictModel):
    """A file of kind ScenarioComparison: scenarios, the cells that are compared over them, and who judges."""

    scenarios: Annotated[tuple[RelativePath, ...], FILLED] = Field(
        description="Scenario files, below scenarios/."
    )
    cells: Annotated[dict[Name, CellSource], Field(min_length=1)] = Field(description="The cells, by label.")
    attempts: Annotated[Int, Field(ge=1)] = Field(1, description="How often each cell tries each scenario.")
    judge_pairs: tuple[tuple[Name, Name], ...] | None = Field(
        None, description="Pairs of labels, left and right, that are judged; every pair where there is none."
    )
    seed: Annotated[Int, Field(ge=0)] = Field(0, description="Of the blinding coin.")
    judgements: RelativePath | None = Field(
        None,
        description="Recorded replies of a live judge, below scenarios/, to be replayed beside the rubric.",
    )
    judge: AskedJudge | None = Field(
        None, description="A model that is asked about every pair; {} is the judge of config.yaml."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> "ComparisonDocument":
        unknown = sorted({label for pair in self.judge_pairs or () for label in pair} - set(self.cells))
        if unknown:
            raise ValueError(f"judge_pairs names {', '.join(unknown)}; cells: {', '.join(self.cells)}")
        if any(left == right for left, right in self.judge_pairs or ()):
            raise ValueError("judge_pairs sets a cell against itself")
        if self.judge is not None and self.judgements is not None:
            raise ValueError("judgements replays what a judge said, and judge asks one: name one of them")
        return self


@dataclass(frozen=True)
class Comparison:
    """One comparison, and the folder that its paths are below."""

    name: str
    document: Document[ComparisonDocument]
    folder: Path

    @property
    def model(self) -> ComparisonDocument:
        """What the file says."""
        return self.document.model


def load_comparisons(root: Path) -> tuple[list[Comparison], tuple[Problem, ...]]:
    """The comparisons of a project by name, and the problems of the files that are none."""
    folder = root / FOLDER
    paths = sorted(path for path in folder.glob("*.yaml") if not path.name.startswith("."))
    misnamed = {path: reason for path in paths if (reason := name_problem(path.stem)) is not None}
    documents, problems = read_documents(
        [path for path in paths if path not in misnamed], {KIND: ComparisonDocument}
    )
    told = [
        Problem(str(path), None, "", f"is not read: its name {reason}") for path, reason in misnamed.items()
    ]
    return [Comparison(document.path.stem, document, folder) for document in documents], (*problems, *told)
