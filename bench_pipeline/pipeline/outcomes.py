"""Cells beside their verdicts, as the matrices that rankings, comparisons and gates are computed from.

What belongs here: joining the two tables, counting attempts per setup and task, deciding which tasks are
comparable at all. What does not: estimators (``statistics``) and what is concluded (``ranking``,
``comparing``, ``gating``). Rows stay in columns throughout.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import StoreError

Counts = npt.NDArray[np.int64]

_CELL = ("evaluation", "identity", "verify_key", "attempt", "task_id", "task_digest", "setup", "setup_digest")
_TOKENS = ("tokens_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
QUANTITIES = ("cost_usd", "tokens", "patch_lines", "duration_s")


@dataclass(frozen=True)
class Outcomes:
    """What is known of one evaluation, or of a pool of evaluations under one name.

    ``labels`` and ``digests`` name the setups in one order, sorted by label; ``tasks`` the comparable tasks,
    sorted; ``measured`` and ``passed`` count attempts, shape (setups, tasks). ``mixed`` are tasks whose cells
    stem from different contents of the task: they cannot be compared and are in no matrix. ``cells`` has one
    row per planned cell with columns setup (index), task_id, attempt, outcome, attempted, measured, passed
    and the quantities, unknown being NaN.
    """

    evaluation: str
    labels: tuple[str, ...]
    digests: tuple[str, ...]
    tasks: tuple[str, ...]
    mixed: tuple[str, ...]
    measured: Counts
    passed: Counts
    cells: pd.DataFrame

    @cached_property
    def planned(self) -> pd.DataFrame:
        """Every (task_id, attempt) that some setup has a cell for: what every setup is due."""
        due = self.cells[["task_id", "attempt"]].drop_duplicates().sort_values(["task_id", "attempt"])
        return due.reset_index(drop=True)

    @cached_property
    def attempts(self) -> int:
        """How many attempts the evaluation plans per task."""
        return int(self.planned["attempt"].nunique())

    @cached_property
    def of_setup(self) -> tuple[pd.DataFrame, ...]:
        """The cells of each setup, in the order of ``labels``."""
        rows = self.cells.groupby("setup").indices
        return tuple(self.cells.iloc[rows[setup]] for setup in range(len(self.digests)))

    def index(self, digest: str) -> int:
        """The place of a setup; raises ValueError when it is not here."""
        return self.digests.index(digest)

    def scores(self, setup: int, tasks: npt.NDArray[np.bool_]) -> list[float]:
        """The task scores, passed over measured attempts, of one setup over a mask of tasks it measured."""
        return [float(x) for x in self.passed[setup, tasks] / self.measured[setup, tasks]]

    def single_attempts(self, setup: int, tasks: npt.NDArray[np.bool_]) -> bool:
        """Whether each of these tasks has exactly one measured attempt."""
        return bool((self.measured[setup, tasks] == 1).all())


def joined(cells: pa.Table, verdicts: pa.Table) -> pd.DataFrame:
    """Every cell with what its verdict says; a cell without a row in ``verdicts`` was not attempted.

    Rows of ``verdicts`` without a cell belong to no plan and drop out. Sorted, so that the order of the
    tables changes nothing.

    Raises:
        StoreError: a quantity that is not finite, or a key that stands twice.
    """
    _refuse_faults(cells, verdicts)
    both = cells.select(list(_CELL)).join(
        _facts(verdicts), keys=["evaluation", "identity"], join_type="left outer"
    )
    for name, absent in (
        ("attempted", False),
        ("measured", False),
        ("passed", False),
        ("outcome", "not_attempted"),
    ):
        both = both.set_column(both.schema.get_field_index(name), name, pc.fill_null(both[name], absent))
    order = ("evaluation", "setup_digest", "task_id", "attempt", "identity")
    frame: pd.DataFrame = both.sort_by([(name, "ascending") for name in order]).to_pandas()
    return frame


def _refuse_faults(cells: pa.Table, verdicts: pa.Table) -> None:
    for name in ("cost_usd", "duration_s"):
        if pc.any(pc.invert(pc.is_finite(verdicts[name]))).as_py():
            raise StoreError(
                "reading verdicts", f"{name} holds a value that is not finite", "run the cell again"
            )
    for name, table in (("evaluation_cells", cells), ("verdicts", verdicts)):
        if table.num_rows != table.group_by(["evaluation", "identity"]).aggregate([]).num_rows:
            raise StoreError(
                f"reading {name}", "a cell stands in it twice", "write the table again with `bench run`"
            )


def _facts(verdicts: pa.Table) -> pa.Table:
    """What a verdict says of its cell; a sum of tokens with an unknown class in it is unknown."""
    tokens = verdicts[_TOKENS[0]]
    for name in _TOKENS[1:]:
        tokens = pc.add(tokens, verdicts[name])
    measured = pc.equal(verdicts["outcome_class"], "verdict")
    return pa.table(
        {
            "evaluation": verdicts["evaluation"],
            "identity": verdicts["identity"],
            "outcome": verdicts["outcome"],
            "attempted": pc.not_equal(verdicts["outcome_class"], "not_attempted"),
            "measured": measured,
            "passed": pc.and_(measured, pc.fill_null(verdicts["passed"], False)),
            "tokens": tokens,
            **{name: verdicts[name] for name in QUANTITIES if name != "tokens"},
        }
    )


def by_evaluation(frame: pd.DataFrame) -> Iterator[Outcomes]:
    """The outcomes of each evaluation of a joined frame, by name."""
    for name, cells in frame.groupby("evaluation", sort=True):
        yield outcomes_of(cells, str(name))


def outcomes_of(cells: pd.DataFrame, name: str) -> Outcomes:
    """The matrices of these rows of a joined frame; a cell that several evaluations share counts once."""
    cells = cells.drop_duplicates("identity")
    digests, labels = _setups(cells)
    place = {digest: index for index, digest in enumerate(digests)}
    # What is asked and how it is checked, environment included: the same for every setup of one plan.
    content = cells["task_digest"].fillna("") + " " + cells["verify_key"]
    versions = content.groupby(cells["task_id"]).nunique()
    tasks = tuple(sorted(str(task) for task in versions.index[versions == 1]))
    column = {task: index for index, task in enumerate(tasks)}
    cells = cells.assign(setup=cells["setup_digest"].map(place).astype("int64"))
    comparable = cells[cells["task_id"].isin(column)]
    flat = comparable["setup"].to_numpy() * len(tasks) + comparable["task_id"].map(column).to_numpy(
        dtype=np.int64
    )
    shape = (len(digests), len(tasks))

    def counted(flag: str) -> Counts:
        hits = flat[comparable[flag].to_numpy(dtype=bool)]
        return np.bincount(hits, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)

    return Outcomes(
        evaluation=name,
        labels=labels,
        digests=digests,
        tasks=tasks,
        mixed=tuple(sorted(str(task) for task in versions.index[versions > 1])),
        measured=counted("measured"),
        passed=counted("passed"),
        cells=cells.reset_index(drop=True),
    )


def _setups(cells: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Digests and labels, sorted by label; two setups of one label are told apart by their digests."""
    pairs = cells[["setup", "setup_digest"]].drop_duplicates("setup_digest")
    pairs = pairs.sort_values(["setup", "setup_digest"])
    twice = pairs["setup"].duplicated(keep=False)
    labels = pairs["setup"].where(~twice, pairs["setup"] + " (" + pairs["setup_digest"].str[:12] + ")")
    return tuple(map(str, pairs["setup_digest"])), tuple(map(str, labels))


def known(values: Iterable[float]) -> list[float | None]:
    """The values of a column of the frame with its NaN, which stand for unknown there, as None."""
    return [None if math.isnan(value) else float(value) for value in values]
