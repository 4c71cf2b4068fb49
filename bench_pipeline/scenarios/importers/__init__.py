"""Importers of foreign transcripts: one module per format behind one interface.

What belongs here: which formats there are, and turning what a reader gives into a trace. What does not: any format (the
modules beside this one) and what a trace measures (``trace``). Each reader returns what it found and a list of what it
could not map.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from types import MappingProxyType

from bench_pipeline.documents import one_of
from bench_pipeline.documents.files import open_regular
from bench_pipeline.errors import DocumentError, NotFoundError, Problem, RefusedError
from bench_pipeline.execution.usage import ToolOutputs
from bench_pipeline.scenarios.importers import (
    claude_stream,
    codex_jsonl,
    harbor_trajectory,
    inspect_log,
    mini_trajectory,
    opencode_jsonl,
)
from bench_pipeline.scenarios.importers.imported import Imported, Reader, Transcript
from bench_pipeline.scenarios.scenario import Scenario
from bench_pipeline.scenarios.trace import Trace, make_trace

__all__ = ["FORMATS", "Imported", "Importer", "Transcript", "import_transcript", "read_outputs"]


@dataclass(frozen=True)
class Importer:
    """One format: how it is read, and the name of its file among a tool's files; empty: standard output."""

    read: Reader
    file: str = ""


FORMATS: Mapping[str, Importer] = MappingProxyType(
    {
        "claude-stream-json": Importer(claude_stream.read),
        "codex-jsonl": Importer(codex_jsonl.read),
        "opencode-jsonl": Importer(opencode_jsonl.read),
        "mini-trajectory": Importer(mini_trajectory.read, "trajectory"),
        "inspect-log": Importer(inspect_log.read, "log"),
        "harbor-trajectory": Importer(harbor_trajectory.read, "trajectory"),
    }
)


def read_outputs(usage_format: str, outputs: ToolOutputs) -> Imported | None:
    """What the finished tool of a live run left; None for a format that tells no steps."""
    importer = FORMATS.get(usage_format)
    return None if importer is None else importer.read(Transcript(outputs))


def import_transcript(
    format_name: str,
    path: Path,
    scenario: Scenario,
    *,
    run_id: str,
    cell: str | None = None,
    mode: str | None = None,
    seconds: int | None = None,
    which: str | None = None,
) -> tuple[Trace, tuple[str, ...]]:
    """A transcript's run as a trace of a scenario, and what could not be mapped.

    ``seconds`` stand for those of a transcript without a clock. Raises NotFoundError for an unknown format,
    DocumentError for a file that is not of it, RefusedError for a run that failed, has no end or no seconds.
    """
    importer = FORMATS.get(format_name)
    if importer is None:
        raise NotFoundError(
            "importing a transcript", f"no format {format_name!r}", one_of(format_name, FORMATS, "formats")
        )
    try:
        found = importer.read(Transcript(_outputs(importer, path), which))
    except ValueError as error:
        raise DocumentError([Problem(str(path), None, "", str(error))]) from None
    if found.failure is not None:
        wrong = f"the model or its API failed: {found.failure}"
        raise RefusedError(f"importing {path}", wrong, "such a run measured nothing; run it again")
    if found.end is None:
        wrong = f"it has no end: the run was killed or is still going on, or the file is no {format_name}"
        raise RefusedError(f"importing {path}", wrong, "only a run that ended can be scored")
    end = dict(found.end) | ({} if seconds is None else {"seconds": seconds})
    header = {
        "run_id": run_id,
        "scenario": scenario.name,
        "cell": cell,
        "mode": mode,
        "harness": found.harness,
        "model": found.model,
        "max_steps": scenario.max_steps,
        "max_seconds": scenario.max_seconds,
        "started_at": found.started_at,
    }
    trace = make_trace(header, [*found.events, end])
    if trace.seconds is None:
        raise RefusedError(
            f"importing {path}", "its seconds are unknown: it has no clock", "state them with --seconds N"
        )
    return trace, found.unmapped


def _outputs(importer: Importer, path: Path) -> ToolOutputs:
    """A single file as what a tool would have left; DocumentError where it cannot be read."""
    open_regular(path).close()
    files = {importer.file: escape(path.name)} if importer.file else {}
    return ToolOutputs(path, path, path.absolute().parent, files)
