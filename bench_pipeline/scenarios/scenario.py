"""A scenario: a goal, two caps, and the evidence that a run of it has to show.

What belongs here: the file's five fields and its digest. What does not: scoring a run (``scoring``) and running one
(``live``).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from bench_pipeline.documents import Document, Int, StrictModel, Text, describe, read_toml
from bench_pipeline.identity import digest_bytes


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError(f"expected text that is not blank, found {describe(text)}")
    return text


def _distinct(texts: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise ValueError(f"expected each string once, found {', '.join(map(describe, twice))} more than once")
    return texts


Filled = Annotated[Text, AfterValidator(_filled)]
Count = Annotated[Int, Field(ge=0)]


class ScenarioDocument(StrictModel):
    """A scenario file: five fields, none of them optional."""

    name: Filled = Field(description="What results and reports call it.")
    goal: Filled = Field(description="What the agent is asked to do: its prompt.")
    max_steps: Count = Field(description="The most steps of a run that passes.")
    max_seconds: Count = Field(description="The most whole seconds of a run that passes.")
    required_evidence: Annotated[tuple[Filled, ...], AfterValidator(_distinct)] = Field(
        description="Strings that the run's evidence has to contain, or names of the harness's own checks."
    )


@dataclass(frozen=True)
class Scenario:
    """A scenario that was read, and the SHA-256 of its file."""

    name: str
    goal: str
    max_steps: int
    max_seconds: int
    required_evidence: tuple[str, ...]
    path: Path
    sha256: str

    @property
    def workspace(self) -> Path | None:
        """The folder beside the file that has its name: what a run starts from; None where there is none."""
        folder = self.path.with_suffix("")
        return folder if folder.is_dir() and not folder.is_symlink() else None


def load_scenario(path: Path) -> Scenario:
    """Read a scenario. Raises DocumentError naming the file and every field that is wrong."""
    document: Document[ScenarioDocument] = read_toml(path, ScenarioDocument)
    return Scenario(**dict(document.model), path=path, sha256=digest_bytes(document.source))
