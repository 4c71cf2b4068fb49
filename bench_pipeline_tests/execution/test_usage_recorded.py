"""Every recorded run of the five agents is read as what it was: how it ended, what it used, what it cost."""

import shutil
from pathlib import Path

import pytest

from bench_pipeline.execution.usage import ToolEnd, ToolOutputs, parse_end

AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"
FORMATS = {
    "claude": "claude-stream-json",
    "codex": "codex-jsonl",
    "opencode": "opencode-jsonl",
    "mini": "mini-trajectory",
    "aider": "aider-analytics",
}
# By tool: suffix of the recorded file -> (its name for the parser, where the tool keeps it below HOME).
KEPT = {
    "claude": {"session.jsonl": ("session", ".claude/projects/-work/<uuid-1>.jsonl")},
    "codex": {"session.jsonl": ("rollout", ".codex/sessions/2026/11/30/rollout-<uuid-1>.jsonl")},
    "opencode": {},
    "mini": {"traj.json": ("trajectory", "trajectory.json")},
    "aider": {"analytics.jsonl": ("analytics", "analytics.jsonl"), "chat.md": ("chat", "chat.md")},
}

# input, cache read, cache write, output of the run that reads, edits, tests and answers, in four requests;
# chat completions have no count of cache writes.
SUCCESS = (1060, 4690, 630, 145)
SUCCESS_CHAT = (1690, 4690, 0, 145)
NOTHING = (0, 0, 0, 0)
UNKNOWN = (None, None, None, None)

# tool, case, state, class of error, tokens, turns, tool calls, reported cost, is that cost real
EXPECTED = [
    ("claude", "badtool", "completed", None, (1030, 1630, 500, 65), 2, 2, 0.006429, True),
    ("claude", "bwrap", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "cutoff_max_tokens", "completed", None, (1030, 1630, 500, 65), 2, 0, 0.006429, True),
    ("claude", "err401_default_retries", "error", "auth", NOTHING, 0, 0, 0.0, True),
    ("claude", "err401_no_retries", "error", "auth", NOTHING, 0, 0, 0.0, True),
    ("claude", "err401_timeout120", "none", None, UNKNOWN, 0, 0, None, False),
    ("claude", "err429_no_retries", "error", "rate", NOTHING, 0, 0, 0.0, True),
    ("claude", "err500_default_retries", "error", "overload", NOTHING, 0, 0, 0.0, True),
    ("claude", "err500_timeout120", "none", None, UNKNOWN, 0, 0, None, False),
    ("claude", "err500_two_retries", "error", "overload", NOTHING, 0, 0, 0.0, True),
    ("claude", "hang_api_timeout_6s", "error", "timeout", NOTHING, 0, 0, 0.0, True),
    ("claude", "hang_sigint", "none", None, UNKNOWN, 0, 0, None, False),
    ("claude", "hang_sigterm", "none", None, UNKNOWN, 0, 0, None, False),
    ("claude", "killed_in_tool_sigint", "error", "unknown", (1000, 0, 500, 40), 1, 1, 0.005475, True),
    ("claude", "killed_in_tool_sigkill", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("claude", "killed_in_tool_sigterm", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("claude", "max_budget", "limit", None, (1000, 0, 500, 40), 1, 1, 0.005475, True),
    ("claude", "maxturns", "limit", None, (30, 4500, 180, 150), 3, 3, 0.004365, True),
    ("claude", "maxturns_env", "limit", None, (30, 4500, 180, 150), 3, 3, 0.004365, True),
    ("claude", "nochange", "completed", None, (30, 1630, 0, 25), 1, 0, 0.000954, True),
    ("claude", "permission_denied", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success_accept_edits", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success_effort_high", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success_output_json", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success_prompt_on_stdin", "completed", None, SUCCESS, 4, 3, 0.0091245, True),
    ("claude", "success_unknown_model_effort_low", "completed", None, SUCCESS, 4, 3, 0.011228, False),
    ("claude", "success_v2.1.197", "completed", None, SUCCESS, 4, 3, 0.0091245, False),
    ("codex", "badtool", "completed", None, (1030, 1630, 500, 65), 2, 1, None, False),
    ("codex", "bwrap", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "err401", "error", "auth", UNKNOWN, 0, 0, None, False),
    ("codex", "err401_no_retries", "error", "auth", UNKNOWN, 0, 0, None, False),
    ("codex", "err429", "error", "rate", UNKNOWN, 0, 0, None, False),
    ("codex", "err500", "error", "overload", UNKNOWN, 0, 0, None, False),
    ("codex", "err500_no_retries", "error", "overload", UNKNOWN, 0, 0, None, False),
    ("codex", "hang_sigterm", "none", None, UNKNOWN, 0, 0, None, False),
    ("codex", "hang_sigterm_idle_timeout_5s", "none", None, UNKNOWN, 0, 0, None, False),
    ("codex", "killed_in_tool_sigint", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("codex", "killed_in_tool_sigkill", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("codex", "killed_in_tool_sigkill_native_binary", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("codex", "killed_in_tool_sigterm", "none", None, (1000, 0, 500, 40), 1, 1, None, False),
    ("codex", "nochange", "completed", None, (30, 1630, 0, 25), 1, 0, None, False),
    ("codex", "success", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_effort_high", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_ephemeral", "completed", None, SUCCESS, None, 3, None, False),
    ("codex", "success_human_output", "none", None, SUCCESS, 4, None, None, False),
    ("codex", "success_model_gpt6", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_no_plugins_no_apps", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_prompt_on_stdin", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_unknown_model", "completed", None, SUCCESS, 4, 3, None, False),
    ("codex", "success_workspace_write", "completed", None, SUCCESS, 4, 3, None, False),
    ("opencode", "badtool", "completed", None, (1530, 1630, 0, 65), 2, 2, 0.006054, True),
    ("opencode", "bwrap", "completed", None, SUCCESS_CHAT, 4, 3, 0.008652, True),
    ("opencode", "cutoff_length", "limit", None, (1500, 0, 0, 40), 1, 0, 0.0051, True),
    ("opencode", "err401", "error", "auth", UNKNOWN, 0, 0, None, False),
    ("opencode", "err500", "error", "overload", UNKNOWN, 0, 0, None, False),
    ("opencode", "hang_sigterm", "none", None, UNKNOWN, None, None, None, False),
    ("opencode", "hang_timeout_5s", "error", "timeout", UNKNOWN, 0, 0, None, False),
    ("opencode", "killed_in_tool_sigkill", "none", None, UNKNOWN, 0, 0, None, False),
    ("opencode", "killed_in_tool_sigterm", "none", None, UNKNOWN, 0, 0, None, False),
    (
        "opencode",
        "maxturns_model_ignores_limit",
        "completed",
        None,
        (870, 19630, 0, 625),
        13,
        12,
        0.017874,
        True,
    ),
    ("opencode", "maxturns_model_obeys", "completed", None, (240, 6130, 0, 175), 4, 3, 0.005184, True),
    ("opencode", "nochange", "completed", None, (30, 1630, 0, 25), 1, 0, 0.000954, True),
    ("opencode", "success", "completed", None, SUCCESS_CHAT, 4, 3, 0.008652, True),
    ("opencode", "success_dir_option", "completed", None, SUCCESS_CHAT, 4, 3, 0.008652, True),
    ("opencode", "success_prompt_on_stdin", "completed", None, SUCCESS_CHAT, 4, 3, 0.008652, True),
    ("opencode", "success_variant_high", "completed", None, SUCCESS_CHAT, 4, 3, 0.008652, True),
    ("mini", "badtool", "completed", None, (1530, 1630, 0, 65), 2, 0, 0.0, False),
    ("mini", "bwrap", "completed", None, SUCCESS_CHAT, 4, 3, 0.0, False),
    ("mini", "cutoff_length", "completed", None, (1530, 1630, 0, 65), 2, 0, 0.0, False),
    ("mini", "err401", "error", "auth", UNKNOWN, 1, 0, 0.0, False),
    ("mini", "err500_one_attempt", "error", "overload", UNKNOWN, 1, 0, 0.0, False),
    ("mini", "err500_timeout120", "none", None, UNKNOWN, None, None, None, False),
    ("mini", "hang_sigterm", "none", None, UNKNOWN, None, None, None, False),
    ("mini", "hang_timeout_5s", "error", "timeout", UNKNOWN, 1, 0, 0.0, False),
    ("mini", "killed_in_tool_sigint", "error", "unknown", (1500, 0, 0, 40), 1, 1, 0.0, False),
    ("mini", "killed_in_tool_sigkill", "none", None, UNKNOWN, None, None, None, False),
    ("mini", "killed_in_tool_sigterm", "none", None, UNKNOWN, None, None, None, False),
    ("mini", "maxturns", "limit", None, (210, 4500, 0, 150), 3, 3, 0.0, False),
    ("mini", "maxturns_agent_class_default", "limit", None, (210, 4500, 0, 150), 3, 3, 0.0, False),
    ("mini", "nochange", "completed", None, (30, 1630, 0, 25), 1, 0, 0.0, False),
    ("mini", "nochange_text_only", "limit", None, (90, 4890, 0, 75), 3, 0, 0.0, False),
    ("mini", "success", "completed", None, SUCCESS_CHAT, 4, 3, 0.0, False),
    ("mini", "success_agent_class_default", "completed", None, SUCCESS_CHAT, 4, 3, 0.0, False),
    ("mini", "success_effort_high", "completed", None, SUCCESS_CHAT, 4, 3, 0.0, False),
    ("mini", "success_known_model_cost", "completed", None, SUCCESS_CHAT, 4, 3, 0.0115375, True),
    ("aider", "bwrap", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "err401", "error", "auth", UNKNOWN, 0, None, None, False),
    ("aider", "err429", "error", "rate", UNKNOWN, 0, None, None, False),
    ("aider", "err500", "error", "overload", UNKNOWN, 0, None, None, False),
    ("aider", "hang_sigterm", "none", None, UNKNOWN, 0, None, None, False),
    ("aider", "hang_timeout_5s_sigterm", "none", None, UNKNOWN, 0, None, None, False),
    ("aider", "killed_in_test_cmd_sigint", "none", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "killed_in_test_cmd_sigkill", "none", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "killed_in_test_cmd_sigterm", "none", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "maxturns_reflections", "limit", None, (6280, None, None, 200), 4, None, 0.0, False),
    ("aider", "nochange", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success_auto_test", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success_effort_high", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success_known_model_cost", "completed", None, (1500, None, None, 40), 1, None, 0.00415, True),
    ("aider", "success_message_file", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success_no_auto_commits", "completed", None, (1500, None, None, 40), 1, None, 0.0, False),
    ("aider", "success_plain_options", "none", None, UNKNOWN, None, None, None, False),
    (
        "aider",
        "success_price_map_fetch_attempt",
        "completed",
        None,
        (1500, None, None, 40),
        1,
        None,
        0.0,
        False,
    ),
    ("aider", "success_stream", "completed", None, (1993, None, None, 32), 1, None, 0.0, False),
]


def _outputs(tool: str, case: str, home: Path) -> ToolOutputs:
    home.mkdir()
    files = {}
    for suffix, (name, place) in KEPT[tool].items():
        files[name] = place
        recorded = AGENTS / tool / f"{case}.{suffix}"
        if recorded.exists():
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(recorded, home / place)
    candidates = [AGENTS / tool / f"{case}.{suffix}" for suffix in ("jsonl", "json", "txt")]
    stdout = next((path for path in candidates if path.exists()), home.parent / "stdout")
    stdout.touch()
    return ToolOutputs(stdout=stdout, stderr=stdout, home=home, files=files)


def _read(tool: str, case: str, folder: Path) -> ToolEnd:
    return parse_end(FORMATS[tool], _outputs(tool, case, folder / "home"))


@pytest.mark.parametrize("row", EXPECTED, ids=[f"{row[0]}-{row[1]}" for row in EXPECTED])
def test_a_recorded_run_is_read_as_what_it_was(row, tmp_path):
    tool, case, state, error_class, tokens, turns, calls, cost, real = row
    end = _read(tool, case, tmp_path)
    counted = (end.tokens.input, end.tokens.cache_read, end.tokens.cache_write, end.tokens.output)
    assert (end.state, end.error_class, counted) == (state, error_class, tokens)
    assert (end.turns, end.tool_calls, end.cost_is_real, end.unreadable) == (turns, calls, real, None)
    assert end.cost_reported_usd == (None if cost is None else pytest.approx(cost))
    assert (end.error is not None) == (state in {"error", "limit"})


def test_no_recorded_run_is_left_out():
    recorded = {
        (meta.parent.name, meta.name.removesuffix(".meta.json")) for meta in AGENTS.glob("*/*.meta.json")
    }
    assert recorded == {(row[0], row[1]) for row in EXPECTED}


@pytest.mark.parametrize("tool", ["claude", "codex", "opencode", "mini"])
def test_the_final_answer_is_the_models_last_words(tool, tmp_path):
    end = _read(tool, "success", tmp_path)
    assert end.final_text == "Fixed: add() now returns a + b; the unittest passes."


def test_the_final_answer_of_aider_leaves_out_its_own_lines(tmp_path):
    final = _read("aider", "success", tmp_path).final_text
    assert final.startswith("I fix the operator.")
    assert "Applied edit" not in final


@pytest.mark.parametrize("tool", ["claude", "codex", "opencode", "mini", "aider"])
def test_an_api_error_is_never_taken_for_the_models_words(tool, tmp_path):
    case = next(row[1] for row in EXPECTED if row[0] == tool and row[3] == "auth")
    assert _read(tool, case, tmp_path).final_text is None
