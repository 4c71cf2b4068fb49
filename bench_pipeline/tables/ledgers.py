"""The schemas of the ledger lane's tables: results that others measured."""

from bench_pipeline.tables.table import BOOL, FLOAT, INT, TEXT, table

# A row per line that is a JSON object. ``extra`` holds the fields that are none of these, as JSON; null of ``route``
# is a row without one. ``segment`` numbers the files of a ledger: each holds some of its rows.
LEDGER_ROWS = table(
    "ledger_rows",
    {
        "ledger": TEXT,
        "line": INT,
        "route": TEXT,
        "kind": TEXT,
        "valid": BOOL,
        "invalid_reason": TEXT,
        "task_id": TEXT,
        "passed": BOOL,
        "partial": FLOAT,
        "f2p": FLOAT,
        "input_tokens": INT,
        "output_tokens": INT,
        "steps": INT,
        "peak_context": INT,
        "extra": TEXT,
        "f2p_passed": INT,
        "f2p_total": INT,
        "p2p_passed": INT,
        "p2p_total": INT,
        "segment": INT,
    },
    key=("ledger", "line"),
    partitions=("ledger", "segment"),
    required=("kind", "valid"),
)

# A row per route of a ledger, ``position`` in the order of kinds and routes; a ledger without rows has one that counts
# none. No row is about several routes.
LEDGER_SUMMARIES = table(
    "ledger_summaries",
    {
        "ledger": TEXT,
        "digest": TEXT,
        "route": TEXT,
        "kind": TEXT,
        "rows": INT,
        "valid": INT,
        "passes": INT,
        "avg_partial": FLOAT,
        "partial_n": INT,
        "avg_f2p": FLOAT,
        "f2p_n": INT,
        "input_tokens": INT,
        "output_tokens": INT,
        "steps": INT,
        "peak_context": INT,
        "unparsable_lines": INT,
        "incomplete_tail": BOOL,
        "position": INT,
    },
    key=("ledger", "position"),
    required=(
        "digest",
        "kind",
        "rows",
        "valid",
        "passes",
        "partial_n",
        "f2p_n",
        "unparsable_lines",
        "incomplete_tail",
    ),
)
