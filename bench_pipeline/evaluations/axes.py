"""The axes of one block: the lists of its file, where each value stands, and their product.

What belongs here: lists, their repeats, their product. What does not: whether a tool knows a value
(``matching``).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench_pipeline.documents import Document, dotted
from bench_pipeline.errors import Problem
from bench_pipeline.evaluations.documents import Block, EvaluationDocument

Field = tuple[str | int, ...]
# What an axis is about: ("model",), ("options", "max_turns"), ("steps", "plan", "effort").
AxisKey = tuple[str, ...]
Choice = Mapping[AxisKey, str]
Report = Callable[[Field, str], None]

# Far above what anyone compares; a handful of long lists would otherwise fill the memory.
MAX_SETUPS = 10_000


@dataclass(frozen=True)
class Axis:
    """The values that a document lists for one thing, and the field in which it does.

    A ``fixed`` value comes from a workflow's file and was checked with it; a ``shared`` one is given to
    every step that can take it.
    """

    values: tuple[str, ...]
    field: Field
    fixed: bool = False
    shared: bool = False

    def place(self, index: int) -> Field:
        """The field of a value: the list's entry, or the field itself when it holds one value."""
        return (*self.field, index) if len(self.values) > 1 else self.field

    def places(self) -> Iterator[tuple[str, Field]]:
        """Each value with its field."""
        return ((value, self.place(index)) for index, value in enumerate(self.values))


@dataclass(frozen=True)
class BlockReader:
    """One block of an evaluation, with a way to report what is wrong with it."""

    document: Document[EvaluationDocument]
    index: int
    problems: list[Problem]

    @property
    def block(self) -> Block:
        """The block's model."""
        return self.document.model.tools[self.index]

    @property
    def field(self) -> Field:
        """The block's field in the document."""
        return ("tools", self.index)

    def report(self, field: Field, message: str) -> None:
        """Add a problem at a field of the document."""
        self.problems.append(self.document.problem(field, message))

    def axis(self, *key: str) -> Axis | None:
        """The axis of that key, or None when the block does not say anything about it."""
        return self.axes().get(key)

    def axes(self, step_order: tuple[str, ...] = ()) -> dict[AxisKey, Axis]:
        """Every axis in the order of nested loops: version, model, effort, options, then steps in order."""
        block = self.block
        named = [("tool_version", block.tool_version), ("model", block.model), ("effort", block.effort)]
        found: list[tuple[AxisKey, tuple[str, ...]]] = [((name,), values) for name, values in named]
        found += [(("options", name), values) for name, values in block.options.items()]
        unordered = [step for step in block.steps if step not in step_order]
        for step in [*(step for step in step_order if step in block.steps), *unordered]:
            choice = block.steps[step]
            found += [(("steps", step, "model"), choice.model), (("steps", step, "effort"), choice.effort)]
            found += [(("steps", step, "options", name), values) for name, values in choice.options.items()]
        return {key: Axis(values, (*self.field, *key)) for key, values in found if values}


def report_repeats(reader: BlockReader, axes: Mapping[AxisKey, Axis]) -> None:
    """Report every value that stands twice in one list, naming both places: it would be paid for twice."""
    for axis in axes.values():
        first: dict[str, Field] = {}
        for value, place in axis.places():
            if value in first:
                message = (
                    f"{value} stands twice in one list, here and at {named(reader.document, first[value])}"
                )
                reader.report(place, message)
            first.setdefault(value, place)


def named(document: Document[EvaluationDocument], field: Field) -> str:
    """A place of a document for people: its field, and its line."""
    return f"{dotted(field)} (line {document.line(*field)})"


def product(reader: BlockReader, axes: Mapping[AxisKey, Axis]) -> Iterator[Choice]:
    """Every combination of one value per axis, the last axis fastest; a product without end is reported."""
    count = math.prod(len(axis.values) for axis in axes.values())
    if count > MAX_SETUPS:
        reader.report(
            reader.field, f"gives {count} setups, and {MAX_SETUPS} are the most that a block may give"
        )
        return
    for values in itertools.product(*(axis.values for axis in axes.values())):
        yield dict(zip(axes, values, strict=True))
