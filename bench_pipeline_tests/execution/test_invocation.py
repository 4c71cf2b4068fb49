"""A tool is started with exactly what its definition and the setup say."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.invocation import (
    MAX_ARGUMENT_BYTES,
    PROMPT_FILE,
    ApiAddress,
    network_refusal,
    precondition_problem,
    render_invocation,
    secret_names,
)
from bench_pipeline.execution.sandbox import PlacePaths
from bench_pipeline.execution.usage import PARSERS, parse_end
from bench_pipeline.registry import Effect, Option, Registry, ToolDefinition
from bench_pipeline.registry.documents import Credentials, Invoke, Network, Usage
from bench_pipeline.registry.formats import USAGE_FORMATS

PATHS = PlacePaths(tree="/workspace", home="/home/agent", tmp="/tmp", handover=None, files=None)
AGENTS = ("claude-code", "codex", "mini-swe-agent", "aider", "opencode")
API = ApiAddress("http://127.0.0.1:8800", "throw-away")


@dataclass
class Box:
    name: str = "bubblewrap"
    isolates: bool = True


def _tool(
    *command: str, stdin: str = "none", env: dict[str, str] | None = None, **more: object
) -> ToolDefinition:
    return ToolDefinition("tool", Invoke(command=command, stdin=stdin, env=env or {}), **more)


def _step(definition: ToolDefinition, prompt: str | None = None, **more: object) -> StepSetup:
    defaults = {
        name: option.default for name, option in definition.options.items() if option.default is not None
    }
    known = {"model": None, "model_id": None, "effort": None, **more}
    options = {**defaults, **known.pop("options", {})}
    return StepSetup(
        "", definition, definition.name, None, options=dict(sorted(options.items())), prompt=prompt, **known
    )


def _render(
    definition: ToolDefinition, prompt: str = "fix it", paths: PlacePaths = PATHS, environ=None, **more
):
    return render_invocation(_step(definition, **more), prompt=prompt, paths=paths, environ=environ or {})


@pytest.fixture(scope="module")
def registry():
    return Registry.load(None, None)


class TestPlaceholders:
    def test_each_is_filled_with_its_value(self):
        tool = _tool(
            "run", "{prompt}", "{prompt_file}", "{workdir}", "{model_id}", "{effort}", "{handover}", "{home}",
            "{files}", env={"AT": "{workdir}/x"},
        )  # fmt: skip
        paths = PlacePaths("/workspace", "/home/agent", "/tmp", "/handover", "/opt/tool")
        made = _render(tool, paths=paths, model_id="m-1", effort="high")
        assert made.argv == (
            "run", "fix it", f"/home/agent/{PROMPT_FILE}", "/workspace", "m-1", "high", "/handover", "/home/agent",
            "/opt/tool",
        )  # fmt: skip
        assert made.env == {"AT": "/workspace/x", "BERBENCH_HANDOVER": "/handover"}
        assert made.home_files == {PROMPT_FILE: b"fix it"}

    @given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.booleans())
    def test_a_prompt_is_passed_on_byte_for_byte_and_never_expanded(self, text, inside):
        prompt = f"{text}{{workdir}} {{value}} {{{{home}}}} $HOME `id`" if inside else text
        tool = _tool("run", "--task={prompt}", "{prompt}", stdin="prompt", env={"P": "{prompt}"})
        made = _render(tool, prompt)
        assert made.argv == ("run", f"--task={prompt}", prompt)
        assert made.env == {"P": prompt}
        assert made.stdin == prompt.encode()

    def test_input_is_empty_unless_the_definition_wants_the_prompt_there(self):
        assert _render(_tool("run", "{prompt}")).stdin == b""

    def test_a_prompt_file_is_written_only_when_it_is_used_and_never_over_another(self, tmp_path):
        made = _render(_tool("run", "{prompt_file}"), "é")
        made.prepare(tmp_path)
        assert (tmp_path / PROMPT_FILE).read_text(encoding="utf-8") == "é"
        with pytest.raises(FileExistsError):
            made.prepare(tmp_path)
        assert _render(_tool("run")).home_files == {}

    def test_an_argument_about_a_model_or_effort_is_left_out_when_there_is_none(self):
        tool = _tool(
            "run", "--model={model_id}", "--effort={effort}", "end", env={"E": "{effort}", "M": "{model_id}"}
        )
        made = _render(tool, model_id="m")
        assert made.argv == ("run", "--model=m", "end")
        assert made.env == {"M": "m"}

    def test_any_other_placeholder_without_a_value_is_refused(self):
        with pytest.raises(RefusedError, match="handover"):
            _render(_tool("run", "{handover}"))

    def test_braces_that_are_no_placeholder_stay(self):
        tool = _tool("awk", '{"a": {}}', "{{prompt}}", "${prompt}", "{A}", "{ prompt }")
        assert _render(tool).argv == ("awk", '{"a": {}}', "{prompt}", "${prompt}", "{A}", "{ prompt }")

    def test_a_steps_prompt_is_filled_once_before_the_command_is(self):
        paths = PlacePaths("/workspace", "/home/agent", "/tmp", "/handover", None)
        step = _step(_tool("run", "{prompt}"), prompt="Plan: {prompt} in {workdir}, to {handover}/plan.md")
        made = render_invocation(step, prompt="{handover} task", paths=paths, environ={})
        assert made.argv[1] == "Plan: {handover} task in /workspace, to /handover/plan.md"


class TestOptions:
    OPTIONS = {  # noqa: RUF012
        "zeta": Option(
            default="on", values={"on": Effect(args=("--zeta",), env={"Z": "1"}), "off": Effect()}
        ),
        "free": Option(default="7", free=True, args=("--free", "{value}"), env={"F": "{value}", "Z": "2"}),
        "tidy": Option(default="no", values={"no": Effect(), "yes": Effect(post=("rm -rf x", "ls"))}),
    }

    def test_effects_come_in_the_order_in_which_the_definition_lists_them(self):
        made = _render(_tool("run", env={"Z": "0"}, options=self.OPTIONS))
        assert made.argv == ("run", "--zeta", "--free", "7")
        assert made.env == {"Z": "2", "F": "7"}

    def test_arguments_go_where_the_command_says(self):
        made = _render(_tool("run", "{options}", "--", "{prompt}", options=self.OPTIONS), "-rf")
        assert made.argv == ("run", "--zeta", "--free", "7", "--", "-rf")

    def test_a_free_value_is_one_argument_and_never_expanded(self):
        value = "{prompt}; rm -rf / '\" $HOME"
        made = _render(_tool("run", options=self.OPTIONS), options={"free": value, "zeta": "off"})
        assert made.argv == ("run", "--free", value)

    def test_commands_for_after_the_run_are_collected(self):
        assert _render(_tool("run", options=self.OPTIONS), options={"tidy": "yes"}).post == ("rm -rf x", "ls")


class TestCredentials:
    TOOL = _tool(
        "run",
        credentials=Credentials(env=("KEY",)),
        options={
            "search": Option(
                default="off",
                values={"off": Effect(), "on": Effect(require_env=("SEARCH_KEY",))},
            )
        },
    )

    def test_values_come_from_the_environment_and_are_kept_apart(self):
        made = _render(self.TOOL, environ={"KEY": "s3cret-value", "OTHER": "x"})
        assert made.secrets == {"KEY": "s3cret-value"}
        assert "KEY" not in made.env
        assert "s3cret-value" not in repr(made)
        assert made.command.env["KEY"] == "s3cret-value"
        assert "OTHER" not in made.command.env

    def test_a_missing_or_empty_one_is_a_precondition_that_names_it(self):
        assert precondition_problem(_step(self.TOOL), {}) == "credential KEY is not set"
        assert precondition_problem(_step(self.TOOL), {"KEY": ""}) == "credential KEY is not set"
        assert precondition_problem(_step(self.TOOL), {"KEY": "x"}) is None
        with pytest.raises(RefusedError, match="credential KEY is not set"):
            _render(self.TOOL)

    def test_what_an_option_requires_is_asked_for_and_passed_on(self):
        step = _step(self.TOOL, options={"search": "on"})
        assert precondition_problem(step, {"KEY": "x"}) == "option search needs SEARCH_KEY, which is not set"
        made = render_invocation(step, prompt="", paths=PATHS, environ={"KEY": "x", "SEARCH_KEY": "y"})
        assert made.secrets == {"KEY": "x", "SEARCH_KEY": "y"}

    def test_every_variable_that_may_hold_a_secret_is_known(self):
        assert secret_names(self.TOOL) == {"KEY", "SEARCH_KEY"}


class TestArguments:
    def test_what_no_program_can_be_given_is_refused_with_a_way_out(self):
        with pytest.raises(RefusedError, match="NUL"):
            _render(_tool("run", "{prompt}"), "a\0b")
        with pytest.raises(RefusedError, match="standard input"):
            _render(_tool("run", "{prompt}"), "x" * MAX_ARGUMENT_BYTES)

    def test_a_long_prompt_is_fine_on_standard_input(self):
        assert len(_render(_tool("run", stdin="prompt"), "x" * 10**6).stdin) == 10**6

    def test_the_longest_argument_that_is_let_through_can_be_started(self):
        made = _render(_tool("/bin/true", "{prompt}"), "x" * (MAX_ARGUMENT_BYTES - 1))
        assert subprocess.run(made.argv, check=False).returncode == 0


class TestNetwork:
    NEEDY = _tool("run", network=Network(allow=("api.example.com",)))

    def test_an_isolated_sandbox_refuses_a_tool_that_needs_it(self):
        reason = network_refusal(self.NEEDY, Box())
        assert "api.example.com" in reason
        assert "--sandbox process" in reason

    def test_without_isolation_or_without_need_nothing_is_refused(self):
        assert network_refusal(self.NEEDY, Box("process", isolates=False)) is None
        assert network_refusal(_tool("run"), Box()) is None

    def test_the_need_of_a_chosen_option_counts(self):
        effect = Effect(network=Network(allow=("search.example.com",)))
        assert "search.example.com" in network_refusal(_tool("run"), Box(), [effect])


class TestBuiltIn:
    def _made(self, registry, name, prompt="-rf is the task", **more):
        definition = registry.tool(name)
        model = more.pop("model", next(key for key, model in definition.models.items() if model.effort))
        chosen = definition.models[model]
        step = _step(
            definition, model=model, model_id=chosen.id, **{"effort": next(iter(chosen.effort), None), **more}
        )
        return render_invocation(step, prompt=prompt, paths=PATHS, api=API, environ={})

    def test_every_format_that_a_definition_may_name_has_a_parser(self):
        assert set(USAGE_FORMATS) == set(PARSERS)

    @pytest.mark.parametrize("name", AGENTS)
    def test_a_prompt_that_looks_like_an_option_is_none(self, registry, name):
        made = self._made(registry, name)
        assert "-rf is the task" not in made.argv
        given = made.stdin + b"".join(made.home_files.values()) + "".join(made.argv).encode()
        assert given.count(b"-rf is the task") == 1

    @pytest.mark.parametrize("name", AGENTS)
    def test_its_model_is_reached_through_the_gateway_and_nothing_else(self, registry, name):
        definition, made = registry.tool(name), self._made(registry, name)
        assert definition.model_apis
        assert (definition.credentials.env, definition.network.allow, dict(made.secrets)) == ((), (), {})
        told = [*made.argv, *made.env.values()]
        assert any(API.url in text for text in told)
        assert any(API.key in text for text in made.env.values())
        assert not any("https://" in text for text in told)

    def test_the_configuration_of_opencode_is_json_that_names_its_one_model(self, registry):
        config = json.loads(self._made(registry, "opencode").env["OPENCODE_CONFIG_CONTENT"])
        assert config["model"] == config["small_model"] == "bench/gpt-5.5"
        assert list(config["provider"]["bench"]["models"]) == ["gpt-5.5"]

    @pytest.mark.parametrize("name", AGENTS)
    def test_model_and_effort_reach_the_command_and_no_placeholder_is_left(self, registry, name):
        made = self._made(registry, name, effort="high")
        model_id = next(model.id for model in registry.tool(name).models.values() if model.effort)
        assert any(model_id in argument for argument in made.argv)
        assert any("high" in argument for argument in made.argv)
        assert not any(
            "{effort}" in text or "{model_id}" in text for text in (*made.argv, *made.env.values())
        )

    def test_a_model_without_efforts_gets_no_effort(self, registry):
        made = self._made(registry, "claude-code", model="sonnet-4.5")
        assert not any(argument.startswith("--effort") for argument in made.argv)

    @pytest.mark.parametrize("name", AGENTS)
    def test_what_it_leaves_is_found_where_its_command_puts_it(self, registry, name):
        usage = registry.tool(name).usage
        assert set(usage.files) == USAGE_FORMATS[usage.format]
        written = " ".join(self._made(registry, name).argv)
        fixed = [pattern for pattern in usage.files.values() if "*" not in pattern]
        assert all(f"{PATHS.home}/{pattern}" in written for pattern in fixed)

    @pytest.mark.parametrize("name", AGENTS)
    def test_no_output_at_all_is_no_end(self, registry, name, tmp_path):
        (tmp_path / "out").touch()
        made = self._made(registry, name)
        outputs = made.outputs(tmp_path / "out", tmp_path / "out", tmp_path)
        assert parse_end(made.usage_format, outputs).state == "none"

    def test_commands_of_ours_are_judged_by_their_exit_status(self, registry):
        made = _render(registry.tool("shell"), options={"command": "exit 3"})
        assert made.argv == ("/bin/sh", "-euc", "exit 3")
        assert made.usage_format == "none"

    def test_aider_gets_a_repository_of_one_commit(self, registry, tmp_path):
        tree, programs = tmp_path / "tree", tmp_path / "bin"
        tree.mkdir()
        programs.mkdir()
        (tree / "calc.py").write_text("x = 1\n")
        fake = programs / "aider"
        fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        fake.chmod(0o755)
        made = self._made(registry, "aider")
        env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(made.argv, cwd=tree, env=env, capture_output=True, text=True, check=True)
        assert f"--message-file={PATHS.home}/{PROMPT_FILE}" in done.stdout.splitlines()
        log = subprocess.run(
            ["git", "log", "--format=%s", "--name-only"],
            cwd=tree,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert log.stdout.split() == ["base", "calc.py"]
        assert subprocess.run(made.argv, cwd=tree, env=env, capture_output=True, check=True).stderr == b""

    @pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
    def test_instructions_for_agents_can_be_taken_away(self, registry, name, tmp_path):
        for path in ("AGENTS.md", "sub/AGENTS.md", "README.md", "folder/AGENTS.md.txt"):
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).touch()
        Path(tmp_path / "sub" / "more").mkdir()
        (tmp_path / "sub" / "more" / "AGENTS.md").symlink_to("../../README.md")
        option = registry.tool(name).options["agents_md"]
        (command,) = option.effect("none").pre
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)
        left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
        assert left == {"README.md", "folder/AGENTS.md.txt"}
        assert option.effect("default").empty


def test_a_usage_format_without_files_needs_none():
    made = _render(_tool("run", usage=Usage(format="opencode-jsonl")))
    assert made.usage_files == {}
