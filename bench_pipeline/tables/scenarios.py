"""The schemas of the scenario lane's tables: results of cells, and what judges said of pairs of them."""

from bench_pipeline.tables.table import BOOL, FLOAT, INT, TEXT, TEXTS, table

SCENARIO_RESULTS = table(
    "scenario_results",
    {
        "comparison": TEXT,
        "scenario": TEXT,
        "cell": TEXT,
        "attempt": INT,
        "mode": TEXT,
        "harness": TEXT,
        "model": TEXT,
        "replay": TEXT,
        "max_steps": INT,
        "max_seconds": INT,
        "passed": BOOL,
        "steps": INT,
        "seconds": INT,
        "missing_evidence": TEXTS,
        "over_steps": BOOL,
        "over_seconds": BOOL,
        "winning_artifact": TEXT,
        "prompt_tokens": INT,
        "completion_tokens": INT,
        "total_tokens": INT,
        "scenario_sha256": TEXT,
    },
    key=("comparison", "scenario", "cell", "attempt"),
    partitions=("attempt",),
    required=("passed", "steps", "seconds", "missing_evidence"),
)

_PAIR = {"comparison": TEXT, "attempt": INT, "left": TEXT, "right": TEXT, "judge": TEXT}

JUDGE_REPORTS = table(
    "judge_reports",
    {
        **_PAIR,
        "seed": INT,
        "pairs": INT,
        "left_wins": INT,
        "right_wins": INT,
        "ties": INT,
        "no_votes": INT,
        "inconsistent": INT,
        "left_winrate": FLOAT,
        "winrate_low": FLOAT,
        "winrate_high": FLOAT,
        "method": TEXT,
        "notes": TEXTS,
    },
    key=tuple(_PAIR),
    partitions=("attempt",),
    required=("seed", "pairs", "left_wins", "right_wins", "ties", "no_votes", "inconsistent"),
)

JUDGE_PAIRS = table(
    "judge_pairs",
    {**_PAIR, "scenario": TEXT, "swapped": BOOL, "verdict": TEXT, "rule": TEXT, "inconsistent": BOOL},
    key=(*_PAIR, "scenario"),
    partitions=("attempt",),
    required=("swapped", "verdict", "rule"),
)
