"""The schemas of what a report keeps for the next one: what it knew, so that the next can say what changed."""

from bench_pipeline.tables.table import BOOL, FLOAT, INT, TEXT, table

# A row per planned cell as a report knew it. ``cell`` is the start of its identity: enough to see that it is another.
REPORT_CELLS = table(
    "report_cells",
    {
        "report": TEXT,
        "evaluation": TEXT,
        "cell": TEXT,
        "setup": TEXT,
        "task_id": TEXT,
        "attempt": INT,
        "outcome": TEXT,
        "outcome_class": TEXT,
        "passed": BOOL,
    },
    key=("report", "evaluation", "cell"),
    partitions=("report",),
    required=("setup", "task_id", "attempt", "outcome", "outcome_class"),
)

# A row per number that a report showed; ``attempt`` is 0 where it is over all attempts, ``scope`` what it belongs to
# (an evaluation, the tiers of a score, a comparison, a ledger). ``n`` is what it is over, as counted by its table.
REPORT_MEASURES = table(
    "report_measures",
    {
        "report": TEXT,
        "measure": TEXT,
        "scope": TEXT,
        "name": TEXT,
        "digest": TEXT,
        "attempt": INT,
        "value": FLOAT,
        "low": FLOAT,
        "high": FLOAT,
        "n": INT,
    },
    key=("report", "measure", "scope", "name", "digest", "attempt"),
    partitions=("report",),
)
