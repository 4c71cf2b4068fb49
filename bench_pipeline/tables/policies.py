"""The schemas of the policy lane's tables."""

import pyarrow as pa

from bench_pipeline.tables.table import BOOL, FLOAT, INT, TEXT, TIME, TableSchema, table

# A row per comparison, attempt and harness: the receipt without its trace.
POLICY_RECEIPTS = table(
    "policy_receipts",
    {
        "comparison": TEXT,
        "attempt": INT,
        "harness": TEXT,
        "policy": TEXT,
        "correct": INT,
        "attempted": INT,
        "errors": INT,
        "total": INT,
        "state": TEXT,
        "calls": INT,
        "call_budget": INT,
        "dataset_sha256": TEXT,
        "model_config_sha256": TEXT,
        "scope": TEXT,
        "model": TEXT,
        "timeout_s": FLOAT,
        "started_at": TIME,
        "duration_s": FLOAT,
    },
    key=("comparison", "attempt", "harness"),
    partitions=("attempt",),
    required=(
        "policy",
        "correct",
        "attempted",
        "errors",
        "total",
        "state",
        "calls",
        "call_budget",
        "dataset_sha256",
        "model_config_sha256",
        "scope",
        "model",
        "timeout_s",
    ),
)

# A row per call, ``position`` from 1 in the order of the trace. What nobody measured is null: a replay has no latency.
POLICY_CALLS = table(
    "policy_calls",
    {
        "comparison": TEXT,
        "attempt": INT,
        "harness": TEXT,
        "case_id": TEXT,
        "try": INT,
        "prompt": TEXT,
        "answer": TEXT,
        "failed": BOOL,
        "failure": TEXT,
        "correct": BOOL,
        "latency_s": FLOAT,
        "tokens_input": INT,
        "tokens_output": INT,
        "started_at": TIME,
        "position": INT,
    },
    key=("comparison", "attempt", "harness", "case_id", "try"),
    partitions=("attempt",),
    required=("prompt", "answer", "failed", "correct", "position"),
)

_LEADERBOARD = {
    "comparison": TEXT,
    "attempt": INT,
    "rank": INT,
    "harness": TEXT,
    "correct": INT,
    "total": INT,
    "attempted": INT,
    "errors": INT,
    "calls": INT,
    "call_budget": INT,
    "state": TEXT,
    "rate": FLOAT,
    "rate_low": FLOAT,
    "rate_high": FLOAT,
    "method": TEXT,
}
_KNOWN = tuple(
    name for name in _LEADERBOARD if name not in {"attempt", "rate", "rate_low", "rate_high", "method"}
)

# A row per comparison, harness and attempt; the attempt is null where several are pooled, so it is the one column of a
# key that may be.
POLICY_LEADERBOARD = TableSchema(
    "policy_leaderboard",
    1,
    pa.schema([pa.field(name, kind, nullable=name not in _KNOWN) for name, kind in _LEADERBOARD.items()]),
    key=("comparison", "attempt", "harness"),
    required=_KNOWN,
)
