"""The ``bench`` program: the table of commands, loaded when used, and the one error boundary.

A command module is imported when its command runs, so ``bench --help`` loads click and nothing heavier.
"""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import click

from bench_pipeline import __version__
from bench_pipeline.errors import BenchError, UsageError

# name -> (module, attribute, one line of help): help texts live here so that --help imports no command.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "init": ("init", "init", "Write a new project into a folder."),
    "doctor": ("doctor", "doctor", "Say what this machine can and cannot do."),
    "ui": ("ui", "ui", "Start the Dagster web server and daemon for the project."),
    "run": ("run", "run", "Run an evaluation, or the whole project."),
    "evaluation": ("evaluation", "evaluation", "Create, validate and list evaluations."),
    "task": ("task", "task", "Create, scan, validate, list and show tasks."),
    "golden": ("golden", "golden", "Check golden tasks, score what was measured, show runs and failures."),
    "clean-run": ("clean_run", "clean_run", "Attest that an agent never saw the answer."),
    "tool": ("tool", "tool", "List and show tools."),
    "cell": ("cell", "cell", "Show a cell, or explain its identity."),
    "rank": ("rank", "rank", "Rank the setups of an evaluation."),
    "compare": ("compare", "compare", "Compare two setups over the tasks both measured."),
    "gate": ("gate", "gate", "Decide whether a candidate setup may replace a baseline."),
    "policy": ("policy", "policy", "Ask one set of questions in three ways under one call budget."),
    "scenario": ("scenario", "scenario", "Run, replay and import scenarios."),
    "judge": ("judge", "judge", "Compare scenario cells blindly, pair by pair."),
    "ledger": ("ledger", "ledger", "Sum up results that others measured, per route."),
    "notify": ("notify", "notify", "Show who is told what happens by itself, and try whether they can be."),
    "report": (
        "report",
        "report",
        "Say what changed, what every lane holds and what is missing, on one page.",
    ),
    "table": ("table", "table", "Print a table."),
    "sql": ("sql", "sql", "Query the tables with SQL."),
    "store": ("store", "store", "Verify, compact, migrate, clean the store."),
}
ALIASES = {"eval": "evaluation", "deepswe-ledger": "ledger", "deep-swe-ledger": "ledger"}


class LazyGroup(click.Group):
    """A group whose commands are imported from ``bench_pipeline.cli.<module>`` when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None when the name is not in the table."""
        entry = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module = importlib.import_module(f"bench_pipeline.cli.{entry[0]}")
        command = getattr(module, entry[1])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bench")
@click.option("--project", metavar="DIR", envvar="BENCH_PROJECT", help="The project's folder.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def bench(ctx: click.Context, project: str | None, debug: bool) -> None:
    """Which coding setup is better, and how sure are we?"""
    ctx.obj = {"project": project, "debug": debug}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status (see errors.py and docs/reference)."""
    # Nearly all that a command loads and makes lives until it ends; Python would search it after every 700 objects.
    gc.set_threshold(20_000, 20, 20)
    args = list(sys.argv[1:] if argv is None else argv)
    status = 1
    _occupy_closed_streams()
    try:
        _refuse_empty(args)
        result = bench.main(args=args, prog_name="bench", standalone_mode=False)
        status = result if isinstance(result, int) else 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except BenchError as error:
        status = error.exit_code
        _report(error, args)
    except click.exceptions.Exit as done:
        status = done.exit_code
    except (click.Abort, KeyboardInterrupt):
        status = 128 + signal.SIGINT
        _say("bench: interrupted")
    except click.ClickException as error:
        status = 2
        error.show()
    except BrokenPipeError:
        _drop(sys.stdout)
    except Exception as error:
        if isinstance(error, OSError) and _from_printing(error):
            _drop(sys.stdout)
            _say(f"bench: writing the output: {error.strerror or error}: write it somewhere else")
        elif "--debug" in args:
            raise
        else:
            kind = type(error).__name__
            _say(f"bench: {kind}: {error}: this is a fault of bench itself; --debug shows where")
    sys.exit(status)


def _occupy_closed_streams() -> None:
    """Put the null device where a standard stream was closed, or the next file opened would be taken for it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _from_printing(error: OSError) -> bool:
    """Whether standard output took no more, such as a full disk: the error came out of what prints."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    module = frame.tb_frame.f_globals["__name__"] if frame is not None else ""
    return module == __name__ or module.partition(".")[0] in {"click", "rich"}


def _drop(stream: TextIO) -> None:
    """Send a stream that cannot be written to nowhere: Python would fail on it once more while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(text: str) -> None:
    """A line on standard error, for as long as that can be written."""
    with suppress(OSError):
        click.echo(text, err=True)


def _refuse_empty(args: Sequence[str]) -> None:
    """Refuse empty words: nearly always an unset variable, and to leave a name out often means everything."""
    empty = [word for word in args if not word or (word.startswith("--") and word.endswith("="))]
    if empty:
        raise UsageError(
            "reading the command line",
            f"{empty[0] or 'a word'} is empty",
            "leave it out, or set the variable that it comes from",
        )


def _report(error: BenchError, args: Sequence[str]) -> None:
    from bench_pipeline.reports.escaping import plain_text

    if "--debug" in args:
        import traceback

        traceback.print_exception(error)
    _say(f"bench: {plain_text(str(error))}")
