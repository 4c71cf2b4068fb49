"""One use of a tool: its command run in a place, and all that is known of it then.

What belongs here: the way from a setup to what its tool did, with the door to its model API where it has one. What does
not: what comes before and after in a cell (``steps``) or a scenario, and what it means (``outcome``).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from bench_pipeline.errors import SandboxError
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.gateway import Again, Session, Traffic
from bench_pipeline.execution.gateway.masking import Masks
from bench_pipeline.execution.gateway.recordings import Exchange, pack, unpack
from bench_pipeline.execution.invocation import ApiAddress, Invocation, render_invocation
from bench_pipeline.execution.job import Kit
from bench_pipeline.execution.sandbox import Limits, Place, PlacePaths, ProcessEnd
from bench_pipeline.execution.usage import ToolEnd, ToolOutputs, parse_end


@dataclass(frozen=True)
class ToolUse:
    """A use of a tool that is over.

    ``reported`` is what the tool says of itself, ``end`` the same with the tokens that the gateway counted in place of
    the tool's own. ``traffic`` is None for a tool that has no model API; ``whole``: the gateway was there to the end.
    ``recording`` is all that was asked and answered, where it is kept.
    """

    invocation: Invocation
    process: ProcessEnd
    outputs: ToolOutputs
    reported: ToolEnd
    traffic: Traffic | None = None
    whole: bool = True
    recording: bytes | None = None

    @property
    def end(self) -> ToolEnd:
        """How the tool ended by its own account, and what it used by ours."""
        if self.traffic is None:
            return self.reported
        return replace(
            self.reported,
            tokens=self.traffic.tokens,
            turns=self.traffic.answered,
            # The price of what was counted is exact; a figure of the tool's own is at best the same.
            cost_is_real=False,
        )

    def traffic_document(self) -> dict[str, object] | None:
        """What was counted, what the tool reported, and by how much the tool is off, where it says."""
        if self.traffic is None:
            return None
        counted, said = self.traffic.tokens, self.reported.tokens
        reported = asdict(said)
        return {
            "schema": 1,
            **self.traffic.document(),
            "reported": {
                **reported,
                "turns": self.reported.turns,
                "cost_usd": self.reported.cost_reported_usd,
            },
            "difference": {
                name: None if value is None else value - (getattr(counted, name) or 0)
                for name, value in reported.items()
            },
        }


def use_tool(
    leaf: StepSetup,
    *,
    prompt: str,
    place: Place,
    limits: Limits,
    kit: Kit,
    logs: Path,
    cell: str,
    replayed: bytes | None = None,
) -> ToolUse:
    """Run a tool to its end; ``cell`` is what its uses share their caps by.

    ``replayed`` is a recording that answers it in place of its model.

    Raises:
        RefusedError: it cannot be started; nothing of it has run.
        SandboxError: the sandbox or the gateway could not be started.
        StoreError: the recording cannot be read.
    """
    name = leaf.name or "tool"
    with _door(leaf, kit, cell, place, replayed) as door:
        api = ApiAddress(door.url, door.key) if door is not None else None
        invocation = render_invocation(leaf, prompt=prompt, paths=kit.sandbox.view(place), api=api)
        invocation.prepare(place.home)
        process = kit.sandbox.run(
            invocation.command,
            place,
            limits,
            stdout=logs / f"{name}.stdout",
            stderr=logs / f"{name}.stderr",
            cancel=door.cancel if door is not None else kit.cancel,
            served=door.served if door is not None else None,
        )
    outputs = invocation.outputs(process.stdout, process.stderr, place.home)
    reported = parse_end(invocation.usage_format, outputs)
    if door is None:
        return ToolUse(invocation, process, outputs, reported)
    return ToolUse(invocation, process, outputs, reported, door.traffic, door.whole, door.recording)


@contextmanager
def _door(
    leaf: StepSetup, kit: Kit, cell: str, place: Place, replayed: bytes | None
) -> Iterator[Session | None]:
    """A door of the gateway for a tool that speaks a model API."""
    apis = leaf.definition.model_apis
    if not apis:
        yield None
        return
    if kit.gateway is None:
        raise SandboxError(
            f"starting {leaf.tool}", "there is no gateway to model APIs here", "run it in a project"
        )
    folders = _folders(kit.sandbox.view(place))
    record = partial(_packed, kit=kit, about={"tool": leaf.tool, "folders": folders})
    with kit.gateway.session(
        apis,
        leaf.model_id,
        kit.sandbox,
        cell=cell,
        cancel=kit.cancel,
        record=record if kit.record and replayed is None else None,
        again=_again(leaf, folders, replayed) if replayed is not None else None,
    ) as session:
        yield session


def _packed(exchanges: Iterable[Exchange], *, kit: Kit, about: Mapping[str, object]) -> bytes:
    """A recording as it is kept: without credentials."""
    redact = kit.redactor.redact
    clean = (replace(each, request=redact(each.request), answer=redact(each.answer)) for each in exchanges)
    return pack(clean, about)


def _again(leaf: StepSetup, folders: Mapping[str, str], replayed: bytes) -> Again:
    varies, (about, _) = leaf.definition.varies, unpack(replayed)
    recorded, now = (Masks(varies.fields, varies.texts, each) for each in (about["folders"], folders))
    return Again(replayed, recorded, now)


def _folders(paths: PlacePaths) -> dict[str, str]:
    """A cell's folders as it sees them, by what stands for them: only in an isolated cell are they always the same."""
    named = {"tree": paths.tree, "home": paths.home, "tmp": paths.tmp, "handover": paths.handover}
    return {f"<{name}>": path for name, path in named.items() if path is not None}
