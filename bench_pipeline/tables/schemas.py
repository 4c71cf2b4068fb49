"""The schemas of the evaluation lane's tables, and all tables by name; other lanes add theirs beside this."""

from collections.abc import Mapping
from types import MappingProxyType

from bench_pipeline.errors import NotFoundError
from bench_pipeline.tables.golden import COMPOSITE_SCORES, TASK_RESULTS
from bench_pipeline.tables.ledgers import LEDGER_ROWS, LEDGER_SUMMARIES
from bench_pipeline.tables.policies import POLICY_CALLS, POLICY_LEADERBOARD, POLICY_RECEIPTS
from bench_pipeline.tables.reports import REPORT_CELLS, REPORT_MEASURES
from bench_pipeline.tables.scenarios import JUDGE_PAIRS, JUDGE_REPORTS, SCENARIO_RESULTS
from bench_pipeline.tables.table import (
    BOOL,
    BY_COUNT,
    FLOAT,
    INT,
    TEXT,
    TEXT_MAP,
    TEXTS,
    TIME,
    TableSchema,
    table,
)

_CELL = {
    "identity": TEXT,
    "run_key": TEXT,
    "verify_key": TEXT,
    "evaluation": TEXT,
    "tier": TEXT,
    "attempt": INT,
}

EVALUATION_CELLS = table(
    "evaluation_cells",
    {
        **_CELL,
        "task_id": TEXT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "tool": TEXT,
        "tool_version": TEXT,
        "model": TEXT,
        "model_id": TEXT,
        "effort": TEXT,
        "options": TEXT_MAP,
        "steps": TEXT_MAP,
        "task_digest": TEXT,
        "environment_digest": TEXT,
        "pre_digest": TEXT,
        "reusable": BOOL,
        "not_reusable_reason": TEXT,
        "prediction_digest": TEXT,
        "verify_digest": TEXT,
    },
    key=("evaluation", "identity"),
    partitions=("tier", "attempt"),
    required=("run_key", "verify_key", "task_id", "setup", "setup_digest", "tool", "reusable"),
)

VERDICTS = table(
    "verdicts",
    {
        **_CELL,
        "task_id": TEXT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "outcome": TEXT,
        "outcome_class": TEXT,
        "passed": BOOL,
        "reason": TEXT,
        "exit_code": INT,
        "signal": INT,
        "duration_s": FLOAT,
        "verify_s": FLOAT,
        "cost_usd": FLOAT,
        "cost_reported_usd": FLOAT,
        "tokens_input": INT,
        "tokens_cache_read": INT,
        "tokens_cache_write": INT,
        "tokens_output": INT,
        "turns": INT,
        "tool_calls": INT,
        "patch_files": INT,
        "patch_lines": INT,
        "tests_run": INT,
        "tests_passed": INT,
        "orphans": INT,
        "tries": INT,
        "measured_at": TIME,
        "artifacts": TEXT_MAP,
    },
    key=("evaluation", "identity"),
    partitions=("tier", "attempt"),
    required=(
        "run_key",
        "verify_key",
        "task_id",
        "setup",
        "setup_digest",
        "outcome",
        "outcome_class",
        "tries",
    ),
)

RUN_CELLS = table(
    "run_cells",
    {
        "run_id": TEXT,
        "identity": TEXT,
        "action": TEXT,
        "reason": TEXT,
        "started_at": TIME,
        "ended_at": TIME,
        "cost_usd": FLOAT,
        "evaluation": TEXT,
        "tier": TEXT,
        "attempt": INT,
    },
    key=("run_id", "evaluation", "identity"),
    partitions=("run_id",),
    required=("action", "tier", "attempt"),
)

EVALUATION_RANKINGS = table(
    "evaluation_rankings",
    {
        "evaluation": TEXT,
        "ranked": BOOL,
        "rank": INT,
        "band_low": INT,
        "band_high": INT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "shared_tasks": INT,
        "total": INT,
        "attempted": INT,
        "measured": INT,
        "passed": INT,
        "pass_rate": FLOAT,
        "rate_low": FLOAT,
        "rate_high": FLOAT,
        "method": TEXT,
        "pass_at_k": BY_COUNT,
        "pass_hat_k": BY_COUNT,
        "cost_usd": FLOAT,
        "cost_known": INT,
        "cost_unknown": INT,
        "tokens": INT,
        "patch_lines": INT,
        "duration_s": FLOAT,
        "missing": TEXTS,
    },
    key=("evaluation", "setup_digest"),
    required=("ranked", "setup", "shared_tasks", "total", "attempted", "measured", "passed"),
)

PAIRED_COMPARISONS = table(
    "paired_comparisons",
    {
        "evaluation": TEXT,
        "setup_a": TEXT,
        "setup_b": TEXT,
        "shared_tasks": INT,
        "only_a": INT,
        "only_b": INT,
        "difference": FLOAT,
        "diff_low": FLOAT,
        "diff_high": FLOAT,
        "p_value": FLOAT,
        "p_holm": FLOAT,
        "method": TEXT,
    },
    key=("evaluation", "setup_a", "setup_b"),
    required=("shared_tasks", "only_a", "only_b"),
)

TABLES: Mapping[str, TableSchema] = MappingProxyType(
    {
        schema.name: schema
        for schema in (
            EVALUATION_CELLS,
            VERDICTS,
            RUN_CELLS,
            EVALUATION_RANKINGS,
            PAIRED_COMPARISONS,
            TASK_RESULTS,
            COMPOSITE_SCORES,
            POLICY_RECEIPTS,
            POLICY_CALLS,
            POLICY_LEADERBOARD,
            SCENARIO_RESULTS,
            JUDGE_REPORTS,
            JUDGE_PAIRS,
            LEDGER_ROWS,
            LEDGER_SUMMARIES,
            REPORT_CELLS,
            REPORT_MEASURES,
        )
    }
)


def table_schema(name: str) -> TableSchema:
    """The schema of the table ``name``; raises NotFoundError, naming the known ones."""
    try:
        return TABLES[name]
    except KeyError:
        raise NotFoundError(
            "opening a table", f"there is no table {name!r}", f"known: {', '.join(TABLES)}"
        ) from None
