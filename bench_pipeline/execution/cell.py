"""One cell from end to end: run its tool, take its candidate, judge it.

The two halves are apart because a candidate is stored before it is judged: a kill between them costs a check,
not an agent's run. What the outcomes mean is ``outcome``'s, what they become in the store is ``record``'s.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import BenchError, CorruptPartError, NotFoundError, RefusedError, StoreError
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.guard import protected, violations
from bench_pipeline.execution.invocation import precondition_problem
from bench_pipeline.execution.job import CellJob, Kit
from bench_pipeline.execution.manifest import Exclusions, take_manifest
from bench_pipeline.execution.outcome import CellFacts, decide
from bench_pipeline.execution.overlay import (
    Overlay,
    capture,
    overlay_from_patch,
    patch_stats,
    render_patch,
)
from bench_pipeline.execution.record import Judged, Produced, StepUse, Usage
from bench_pipeline.execution.recording import recording_of_delivery
from bench_pipeline.execution.signals import verify_signals
from bench_pipeline.execution.steering import steering_paths
from bench_pipeline.execution.steps import Steps, timed
from bench_pipeline.execution.usage import ToolEnd
from bench_pipeline.execution.verification import Verification, run_setup, verify_candidate
from bench_pipeline.execution.workspace import Workspace
from bench_pipeline.tasks import (
    GitError,
    PatchError,
    brought_by_tests,
    hidden_test_files,
    touched_by_reference,
)
from bench_pipeline.tasks.trees import Dropped

if TYPE_CHECKING:
    from bench_pipeline.store import Store

_NO_USAGE = Usage.of(end=None, steps=(), exit_code=None, signal=None, duration_s=None, orphans=None)


def produce(job: CellJob, kit: Kit) -> Produced:
    """Run the cell's tool, or replay its patch, and take the candidate.

    Raises StoreError when evidence cannot be kept; every other failure is part of the result.
    """
    leaves = job.setup.leaves()
    for leaf in leaves:
        unmet = precondition_problem(leaf)
        if unmet is not None:
            return Produced(job.run_key, CellFacts(precondition=unmet), _NO_USAGE, tool_ran=False)
    try:
        if len(leaves) == 1 and leaves[0].definition.invoke.replay is not None:
            return _delivered(job, leaves[0], kit)
        with kit.workspaces.open(job.base_tree) as workspace:
            return _worked(job, leaves, workspace, kit)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  one cell's fault must not end the run of the others
        return Produced(job.run_key, CellFacts(infrastructure=_told(error)), _NO_USAGE, tool_ran=False)


def _told(error: Exception) -> str:
    """An error as a reason: our own words, or the kind of a fault that nobody foresaw."""
    return str(error) if isinstance(error, (BenchError, OSError)) else f"{type(error).__name__}: {error}"


def restore(job: CellJob, store: "Store") -> Produced | None:
    """The stored candidate of the cell's run key; None when there is none, or it is lost or damaged.

    Raises StoreError when the store cannot be read: what cannot be read now is not bought again.
    """
    rows = store.candidates.newest([bytes.fromhex(job.run_key)]).to_pylist()
    if not rows:
        return None
    row = rows[0]
    delivered = row["tool_outcome"] != "patch_apply_failed"
    overlay = _stored_overlay(store, row["overlay"]) if delivered else None
    if delivered and overlay is None:
        return None
    facts = CellFacts(
        end=ToolEnd("limit" if row["reason"] == "limit" else "completed"),
        exit_code=row["exit_code"],
        candidate_empty=row["empty"] if delivered else None,
        patch_problem=None if delivered else row["reason"],
    )
    columns = {name: row[name] for name in _NO_USAGE.columns}
    return Produced(
        run_key=job.run_key,
        facts=facts,
        usage=Usage(columns),
        overlay=overlay,
        overlay_digest=row["overlay"],
        patch_files=row["patch_files"],
        patch_lines=row["patch_lines"],
        tool_ran=False,
        phases=dict(row["phases"] or ()),
        artifacts=dict(row["artifacts"] or ()),
    )


def _stored_overlay(store: "Store", digest: str) -> Overlay | None:
    try:
        data = store.artifacts.get(digest)
    except (NotFoundError, CorruptPartError):
        return None
    try:
        return Overlay.decode(data)
    except StoreError:
        return None


def judge(job: CellJob, produced: Produced, kit: Kit) -> Judged:
    """Guard and verify a candidate, and name the outcome; without a candidate only the latter."""
    facts, check = replace(produced.facts, empty_decides=job.task.signals is None), None
    if produced.overlay is not None and not _is_settled(facts):
        try:
            touched = _violations(job, produced.overlay)
            check = _checked(job, produced.overlay, touched, kit)
            facts = replace(facts, violations=touched, check=check)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  see produce
            facts = replace(facts, infrastructure=_told(error))
    return Judged(produced, job.identity, job.verify_key, decide(facts), check)


def _violations(job: CellJob, overlay: Overlay) -> tuple[str, ...]:
    """The protected paths that a candidate touches; a golden task has no reference but what it says it expects."""
    task, touched = job.task, overlay.touched_paths()
    if task.signals is None:
        expected = touched_by_reference(task)
    else:
        allowed = task.signals.allowed_paths
        expected = tuple(path for path in touched if any(protected(path, pattern) for pattern in allowed))
    named = violations(
        touched,
        declared=task.verify.protected_paths,
        brought_by_tests=brought_by_tests(task),
        touched_by_reference=expected,
    )
    steering = set(steering_paths(job.base_tree, overlay, hidden_test_files(task))) - set(expected)
    return tuple(sorted(steering.union(named)))


def _checked(job: CellJob, overlay: Overlay, touched: Sequence[str], kit: Kit) -> Verification:
    """By hidden tests, or by the signals of a golden task."""
    if job.task.signals is None:
        return verify_candidate(
            job.task, job.base_tree, overlay, kit=kit, limits=job.verify_limits, setup_limits=job.limits
        )
    return verify_signals(
        job.task.signals,
        job.base_tree,
        overlay,
        before=job.before,
        violations=touched,
        kit=kit,
        limits=job.verify_limits,
    )


def _is_settled(facts: CellFacts) -> bool:
    """Whether the outcome is known without a check: an empty candidate, or a failure before there was one."""
    if facts.candidate_empty and facts.empty_decides:
        return True
    return decide(replace(facts, check=_UNCHECKED)).outcome_class != "verdict"


# Stands in for a check to ask what would come of facts that had one.
_UNCHECKED = Verification(exit_code=0)


def _delivered(job: CellJob, leaf: StepSetup, kit: Kit) -> Produced:
    """The candidate of a tool that delivers a patch instead of working in a tree."""
    patch = job.predictions.get(leaf.name)
    if patch is None:
        why = f"no row for the task {job.task.id}"
        return Produced(job.run_key, CellFacts(precondition=why), _NO_USAGE, tool_ran=False)
    started = time.monotonic()
    end = ToolEnd("completed")
    usage = Usage.of(
        end=end,
        steps=[StepUse(leaf.model_id, end)],
        exit_code=None,
        signal=None,
        duration_s=None,
        orphans=None,
    )
    artifacts = {"delivered_patch": kit.keep(patch, "text/x-diff"), **recording_of_delivery(job, leaf, kit)}
    try:
        overlay = overlay_from_patch(job.base_tree, patch)
    except PatchError as error:
        facts = CellFacts(end=end, patch_problem=error.wrong)
        return Produced(job.run_key, facts, usage, artifacts=artifacts)
    facts = CellFacts(end=end, candidate_empty=overlay.empty)
    produced = Produced(job.run_key, facts, usage, phases={"tool": time.monotonic() - started})
    return _with_overlay(produced, overlay, job.base_tree, kit, artifacts)


def _worked(job: CellJob, leaves: Sequence[StepSetup], workspace: Workspace, kit: Kit) -> Produced:
    """Set the tree up, let every step work in it, and take what differs from the baseline."""
    place, phases = workspace.place, dict[str, float]()
    with timed(phases, "setup"):
        problem = _set_up(job, workspace, kit)
    if problem is not None:
        facts = CellFacts(infrastructure=problem, cancelled=kit.cancel.is_set())
        return Produced(job.run_key, facts, _NO_USAGE, tool_ran=False, phases=phases)
    droppings = tuple(dict.fromkeys(glob for leaf in leaves for glob in leaf.definition.droppings))
    exclude = Exclusions(droppings, job.base_tree)
    before = take_manifest(place.tree, exclude, known=workspace.manifest)
    steps = Steps(job, workspace, kit)
    try:
        steps.run(leaves)
        with timed(phases, "capture"):
            overlay = _redacted(capture(place.tree, before, exclude), kit)
        produced = _produced(job, steps, phases, replace(steps.facts, candidate_empty=overlay.empty))
        return _with_overlay(produced, overlay, job.base_tree, kit, steps.artifacts)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  what the tool used is paid for, whatever failed after it
        return _produced(job, steps, phases, replace(steps.facts, infrastructure=_told(error)))


def _produced(job: CellJob, steps: Steps, phases: dict[str, float], facts: CellFacts) -> Produced:
    """What the steps did and used, without a candidate."""
    return Produced(
        run_key=job.run_key,
        facts=facts,
        usage=steps.usage(),
        tool_ran=steps.started,
        phases={**phases, **steps.phases},
        artifacts=steps.artifacts,
        not_enforced=tuple(dict.fromkeys(text for end in steps.ends for text in end.limits_not_enforced)),
    )


def _set_up(job: CellJob, workspace: Workspace, kit: Kit) -> str | None:
    """Run ``environment.setup`` and ``pre``; returns what went wrong, or None."""
    for what, commands in (("environment.setup", job.task.environment.setup), ("pre", job.setup.all_pre())):
        problem = run_setup(commands, what, workspace.place, workspace.logs, kit, job.limits)
        if problem is not None:
            return problem
    return None


def _redacted(overlay: Overlay, kit: Kit) -> Overlay:
    """The overlay without the values of credentials: a key that a tool wrote into a file stays nowhere.

    A file that is named by one is left out: under another name it would be another file.
    """
    text = kit.redactor.redact_text
    named = {entry.path for entry in overlay.entries if text(entry.path) != entry.path}
    return replace(
        overlay,
        entries=tuple(
            replace(entry, content=kit.redactor.redact(entry.content))
            for entry in overlay.entries
            if entry.path not in named
        ),
        dropped=(
            *(replace(item, path=text(item.path), why=text(item.why)) for item in overlay.dropped),
            *(Dropped(text(path), "its name holds a credential") for path in sorted(named)),
        ),
    )


def _with_overlay(
    produced: Produced, overlay: Overlay, base_tree: Path, kit: Kit, artifacts: dict[str, str]
) -> Produced:
    """The candidate kept: its overlay for the checks to come, its patch for people.

    The overlay of a failed run is a diagnostic; it is kept as evidence and never judged. Where there is too much to
    render, the evidence ``patch_not_rendered`` says so in place of the patch, and its lines are unknown.
    """
    lines: int | None = None
    try:
        patch = render_patch(base_tree, overlay)
        files, lines = patch_stats(patch)
        shown = {"patch": kit.keep(patch, "text/x-diff")}
    except (RefusedError, GitError) as error:
        files = len(overlay.touched_paths())
        shown = {"patch_not_rendered": kit.keep(f"{error}\n".encode(), "text/plain")}
    digest = kit.keep_exactly(overlay.encode(), "application/octet-stream")
    failed = decide(replace(produced.facts, check=_UNCHECKED)).outcome_class != "verdict"
    return replace(
        produced,
        overlay=None if failed else overlay,
        overlay_digest=digest,
        patch_files=files,
        patch_lines=lines,
        artifacts={**artifacts, "overlay": digest, **shown},
    )
