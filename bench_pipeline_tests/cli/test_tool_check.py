"""``bench tool check``: a tool is tried once against a scripted model, and what does not work is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.cli.main import main

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
TOOL = """kind: Tool
files: [agent]
invoke:
  command: [python3, "{files}/agent/agent.py", "{options}"]
  env: {API_URL: "{api_url}", API_KEY: "{api_key}", MODEL: "{model_id}"}
usage: {format: bench-json}
model_apis: [chat-completions]
models: {m: {id: vendor-m}}
options: {act: {default: works, free: true, args: ["{value}"]}}
"""
AGENT = r"""
import json, os, subprocess, sys, urllib.request
from pathlib import Path

SHELL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
tokens = dict.fromkeys(("input", "cache_read", "cache_write", "output"), 0)

def ask(messages, **more):
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": [SHELL], **more}
    headers = {"authorization": "Bearer " + os.environ["API_KEY"], "content-type": "application/json"}
    url = os.environ["API_URL"] + "/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    answer = json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60))
    usage = answer["usage"]
    cached = usage["prompt_tokens_details"]
    tokens["cache_read"] += cached["cached_tokens"]
    tokens["cache_write"] += cached["cache_write_tokens"]
    tokens["input"] += usage["prompt_tokens"] - cached["cached_tokens"] - cached["cache_write_tokens"]
    tokens["output"] += usage["completion_tokens"]
    return answer["choices"][0]["message"]

messages, calls = [{"role": "user", "content": "go"}], 0
while True:
    message = ask(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        calls += 1
        command = json.loads(call["function"]["arguments"])["command"]
        said = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
act = sys.argv[1]
if act == "strays":
    Path("left").write_text("x")
    tokens["output"] += 7
    try:
        ask(messages, web_search_options={})
        ask(messages, web_search_options={"search_context_size": "low"})
    except OSError:
        pass
    sys.exit(3)
print(json.dumps({"state": "completed", "tool_calls": calls, "tokens": tokens}))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    root = tmp_path / "project"
    for folder in ("tools", "agent"):
        (root / folder).mkdir(parents=True)
    (root / "config.yaml").write_text(
        HEAD + "kind: Project\nsandbox: {backend: process, allow_process: true}\n"
    )
    (root / "tools" / "ours.yaml").write_text(HEAD + TOOL)
    (root / "agent" / "agent.py").write_text(AGENT)
    return root


def check(
    capsys: pytest.CaptureFixture[str], project: Path, *words: str
) -> tuple[int | str | None, dict[str, Any], str]:
    with pytest.raises(SystemExit) as ended:
        main(["tool", "check", *words, "--project", str(project), "--json"])
    out, err = capsys.readouterr()
    return ended.value.code, {row["check"]: (row["ok"], row["found"]) for row in json.loads(out or "[]")}, err


def test_a_tool_that_works_asks_runs_a_command_ends_and_reports_what_was_counted(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    status, found, _ = check(capsys, project, "ours")
    assert status == 0
    assert found["model"] == (True, "2 requests to chat-completions")
    assert found["command"] == (True, "1 tool calls reported")
    assert found["end"] == (True, "completed")
    assert found["usage"] == (True, "it reports what was counted")
    assert found["tree"] == (True, "nothing was left in it")
    assert found["version"] == (None, "the tool does not say")


def test_everything_that_does_not_work_is_named(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    path = project / "tools" / "ours.yaml"
    path.write_text(path.read_text().replace("default: works", "default: strays"))
    status, found, _ = check(capsys, project, "ours")
    assert status == 4
    assert {name for name, (ok, _) in found.items() if ok is False} == {"run", "model", "end", "tree"}
    assert "exit status 3" in found["run"][1]
    assert "web_search_options is not allowed" in found["model"][1]
    assert found["tree"][1] == "left"


def test_a_program_that_is_not_there_is_all_that_is_said(
    capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    path = project / "tools" / "ours.yaml"
    path.write_text(path.read_text().replace("[python3, ", "[no-such-program, "))
    status, found, _ = check(capsys, project, "ours")
    assert (status, list(found)) == (4, ["program"])
    assert "no-such-program is no executable file" in found["program"][1]


def test_a_tool_without_a_model_api_is_refused(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    status, _, err = check(capsys, project, "shell")
    assert status in (1, 2)
    assert "shell" in err
