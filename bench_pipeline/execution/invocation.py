"""Starting a tool: the command, environment and input that a definition and a setup make.

What belongs here: filling placeholders, the effects of options, credentials by name, and what has to be
there before a tool is started. What does not: running it (sandbox) and reading what it wrote (usage).

Arguments never go through a shell. A prompt that begins with ``-`` could be taken for an option: a
definition gives it on standard input, as ``{prompt_file}``, as ``--name={prompt}``, or after ``--``.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench_pipeline.errors import RefusedError
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.sandbox import Command, PlacePaths, Sandbox
from bench_pipeline.execution.usage import NO_PARSER, ToolOutputs
from bench_pipeline.registry import Effect, ToolDefinition
from bench_pipeline.registry.placeholders import OPTIONS_ELEMENT, fill, placeholders

HANDOVER_VARIABLE = "BERBENCH_HANDOVER"
PROMPT_FILE = ".bench-prompt.md"
# Linux refuses a single argument or variable of 128 KiB, its end included.
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
# An argument or variable with one of these is left out in a setup that has none.
_OPTIONAL = ("model_id", "effort")


@dataclass(frozen=True)
class Invocation:
    """A tool ready to be started.

    ``env`` holds what may be recorded, ``secrets`` the values of credentials; ``home_files`` are files to
    write below HOME before the start. ``post`` are shell commands for after it. ``usage_format`` and
    ``usage_files`` say how its output is read.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str] = field(repr=False)
    stdin: bytes
    home_files: Mapping[str, bytes]
    post: tuple[str, ...]
    success_exit_codes: tuple[int, ...]
    usage_format: str
    usage_files: Mapping[str, str]

    @property
    def command(self) -> Command:
        """The command to run, credentials included."""
        return Command(self.argv, {**self.env, **self.secrets}, self.stdin)

    def prepare(self, home: Path) -> None:
        """Writes ``home_files`` below the host path of HOME, where none of them may be yet."""
        for name, data in self.home_files.items():
            with (home / name).open("xb") as file:
                file.write(data)

    def outputs(self, stdout: Path, stderr: Path, home: Path) -> ToolOutputs:
        """What the finished tool left, for ``usage.parse_end``; all are host paths."""
        return ToolOutputs(stdout, stderr, home, self.usage_files)


@dataclass(frozen=True)
class ApiAddress:
    """Where a tool finds its model API, and the key that it sends there: a throw-away, no secret."""

    url: str
    key: str


def render_invocation(
    step: StepSetup,
    *,
    prompt: str,
    paths: PlacePaths,
    api: ApiAddress | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Invocation:
    """The invocation of one use of a tool on a task with this prompt.

    ``paths`` are as the tool will see them, as is ``api``; ``environ`` is where the values of credentials come
    from. Raises RefusedError for what cannot be started: a placeholder without a value here, an argument that no
    program can be given, or an unmet precondition.
    """
    unmet = precondition_problem(step, environ)
    if unmet is not None:
        raise _refused(step, unmet, "set it, or choose another tool")
    definition = step.definition
    values = _values(step, prompt, paths)
    if api is not None:
        values |= {"api_url": api.url, "api_key": api.key}
    effects = _chosen(step)
    env = _environment(definition, effects, values, step)
    if paths.handover is not None:
        env[HANDOVER_VARIABLE] = paths.handover
    argv = _arguments(definition, effects, values, step)
    for text in (*argv, *env.values()):
        _check_argument(text, step)
    used = placeholders([*definition.invoke.command, *(arg for _, effect in effects for arg in effect.args)])
    usage = definition.usage
    return Invocation(
        argv=argv,
        env=env,
        secrets={name: environ[name] for name in _needed(step)},
        stdin=values["prompt"].encode("utf-8", "surrogateescape")
        if definition.invoke.stdin == "prompt"
        else b"",
        home_files={PROMPT_FILE: values["prompt"].encode("utf-8", "surrogateescape")}
        if "prompt_file" in used
        else {},
        post=tuple(command for _, effect in effects for command in effect.post),
        success_exit_codes=tuple(definition.invoke.success_exit_codes),
        usage_format=usage.format if usage is not None else NO_PARSER,
        usage_files=dict(usage.files) if usage is not None else {},
    )


def precondition_problem(step: StepSetup, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why this use of a tool cannot be started, known before anything runs; None when it can.

    An empty variable counts as not set: no credential is empty.
    """
    missing = [
        f"credential {name} is not set" for name in step.definition.credentials.env if not environ.get(name)
    ]
    missing += [
        f"option {option} needs {name}, which is not set"
        for option, effect in _chosen(step)
        for name in effect.require_env
        if not environ.get(name)
    ]
    return "; ".join(missing) or None


def secret_names(definition: ToolDefinition) -> frozenset[str]:
    """The variables whose values must never be stored: credentials, and what any option requires."""
    effects = [
        effect for option in definition.options.values() for effect in (option, *option.values.values())
    ]
    return frozenset(definition.credentials.env).union(*(effect.require_env for effect in effects))


def hosts_of(definition: ToolDefinition, effects: Iterable[Effect] = ()) -> frozenset[str]:
    """The hosts that a tool may reach, by itself or by chosen options."""
    return frozenset(definition.network.allow).union(*(effect.network.allow for effect in effects))


def network_refusal(
    definition: ToolDefinition, sandbox: Sandbox, effects: Iterable[Effect] = ()
) -> str | None:
    """Why a tool that needs the network, by itself or by chosen options, cannot run in this sandbox, or None."""
    hosts = hosts_of(definition, effects)
    if not hosts or not sandbox.isolates:
        return None
    return (
        f"{definition.name} needs the network ({', '.join(sorted(hosts))}), and the {sandbox.name} sandbox gives it "
        "none. A tool that only needs a model declares its model_apis. Choose a tool that works offline, or run it "
        "without isolation with --sandbox process"
    )


def _chosen(step: StepSetup) -> list[tuple[str, Effect]]:
    """The effects of the chosen option values, in the order in which the definition lists its options."""
    effects = step.effects()
    return [(name, effects[name]) for name in step.definition.options if name in effects]


def _needed(step: StepSetup) -> list[str]:
    required = (name for _, effect in _chosen(step) for name in effect.require_env)
    return list(dict.fromkeys([*step.definition.credentials.env, *required]))


def _values(step: StepSetup, prompt: str, paths: PlacePaths) -> dict[str, str]:
    """The placeholders that have a value here. A step's own prompt is filled first, in a pass of its own."""
    shared = {"prompt": prompt, "workdir": paths.tree, "handover": paths.handover}
    values = {name: value for name, value in shared.items() if value is not None}
    if step.prompt is not None:
        values["prompt"] = _filled(step.prompt, values, step)
    more = {
        "prompt_file": f"{paths.home}/{PROMPT_FILE}",
        "home": paths.home,
        "files": paths.files,
        "model_id": step.model_id,
        "effort": step.effort,
    }
    return values | {name: value for name, value in more.items() if value is not None}


def _arguments(
    definition: ToolDefinition, effects: list[tuple[str, Effect]], values: Mapping[str, str], step: StepSetup
) -> tuple[str, ...]:
    chosen = [
        _filled(arg, {**values, "value": step.options[name]}, step)
        for name, effect in effects
        for arg in effect.args
        if not _left_out(arg, values)
    ]
    command = definition.invoke.command
    if OPTIONS_ELEMENT not in command:
        command = (*command, OPTIONS_ELEMENT)
    argv: list[str] = []
    for element in command:
        if element == OPTIONS_ELEMENT:
            argv += chosen
        elif not _left_out(element, values):
            argv.append(_filled(element, values, step))
    return tuple(argv)


def _environment(
    definition: ToolDefinition, effects: list[tuple[str, Effect]], values: Mapping[str, str], step: StepSetup
) -> dict[str, str]:
    sources = [(definition.invoke.env, values)]
    sources += [(effect.env, {**values, "value": step.options[name]}) for name, effect in effects]
    return {
        name: _filled(text, known, step)
        for env, known in sources
        for name, text in env.items()
        if not _left_out(text, known)
    }


def _left_out(text: str, values: Mapping[str, str]) -> bool:
    return any(name in _OPTIONAL and name not in values for name in placeholders([text]))


def _filled(text: str, values: Mapping[str, str], step: StepSetup) -> str:
    try:
        return fill(text, values)
    except KeyError as error:
        raise _refused(
            step, f"{{{error.args[0]}}} has no value here", "take it out of the definition"
        ) from None


def _check_argument(text: str, step: StepSetup) -> None:
    if "\0" in text:
        raise _refused(step, "an argument holds a NUL byte", "take it out of the prompt")
    if len(text.encode("utf-8", "surrogateescape")) >= MAX_ARGUMENT_BYTES:
        remedy = "let the definition give it on standard input or as {prompt_file}"
        raise _refused(step, f"an argument is longer than {MAX_ARGUMENT_BYTES} bytes", remedy)


def _refused(step: StepSetup, wrong: str, remedy: str) -> RefusedError:
    return RefusedError(f"starting {step.tool}", wrong, remedy)
