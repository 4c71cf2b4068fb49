"""The four files of a task made from a commit, as text for a person to go on with.

What belongs here: what the files say. What does not: which commit (``harvest``), and putting them into a
project (``pipeline.harvesting``).
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from bench_pipeline.documents import API_VERSION
from bench_pipeline.tasks.documents import TIERS, Tier
from bench_pipeline.tasks.harvest import Harvest
from bench_pipeline.tasks.leaks import Draft
from bench_pipeline.tasks.writing import quoted

# A prompt must not be empty, and this one must not pass for finished.
NO_PROMPT = "(Describe here what has to be done: the commit's message said nothing that could be kept.)\n"
# Patterns in a sentence.
_NAMED = 3
# As commit messages are written.
_PROMPT_WIDTH = 76


@dataclass(frozen=True)
class Choices:
    """What a person decided about a new task.

    ``command`` runs the tests; ``command_why`` says how it was found, when it is a guess; ``junit`` is the
    path of the report that it leaves.
    """

    task_id: str
    remote: str
    command: str
    command_why: str | None = None
    junit: str | None = None
    tier: Tier = "standard"
    image: str | None = None
    setup: tuple[str, ...] = ()
    fingerprint: tuple[str, ...] = ()


def task_files(harvest: Harvest, draft: Draft, choices: Choices) -> dict[str, bytes]:
    """The files of a task's folder by name."""
    return {
        "task.yaml": _document(harvest, choices).encode("utf-8"),
        "prompt.md": f"{draft.prompt or NO_PROMPT}\n{_hands_off(harvest)}".encode("utf-8", "replace"),
        "tests.patch": harvest.split.tests_patch,
        "reference.patch": harvest.split.reference_patch,
    }


def _hands_off(harvest: Harvest) -> str:
    """What a candidate must not touch, as patterns: the hidden tests' own names stay hidden."""
    names = [
        f"`{pattern.strip('/')}/`" if pattern.endswith("/") else f"`{pattern}`"
        for pattern in harvest.test_names
    ]
    like = f" (such as {', '.join(names[:_NAMED])})" if names else ""
    text = (
        f"Do not add, change or remove test files{like} or the configuration of the test runner: the work is checked "
        "with other tests, and a change that touches these files is refused."
    )
    return textwrap.fill(text, _PROMPT_WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _document(harvest: Harvest, choices: Choices) -> str:
    pull = pull_request_of(harvest.commit.subject, choices.remote)
    image = quoted(choices.image) if choices.image else None
    return f"""\
# Drafted from the commit {harvest.commit.id[:12]}. Read it through, then:
#   bench task validate {choices.task_id}
apiVersion: {API_VERSION}
kind: Task
source:
  remote: {quoted(choices.remote)}
  base_commit: "{harvest.base}"
  # Where the task comes from; no tool ever sees these.
  fix_commit: "{harvest.commit.id}"
{_line("  pull_request", quoted(pull) if pull else None, '"https://..."')}
tier: {choices.tier}  # {", ".join(TIERS)}
# How long a tool may work; the default is the project's defaults.cell_timeout.
# timeout: 20m
environment:
{_line("  image", image, "python:3.12", "Only the docker sandbox uses it.")}
  # Shell commands that make the tree ready before a tool starts, in a sandbox without network.
  setup: {_list(choices.setup)}
  # Shell commands whose output names the toolchain; another output means other cells.
  fingerprint: {_list(choices.fingerprint)}
prompt: prompt.md
verify:
  tests_patch: tests.patch
  # Paths or globs that a candidate may not touch, besides the files that only the hidden tests bring and the
  # configuration of test runners. Say in the prompt what is protected: touching it is a guard_violation.
  # protected_paths: [tests/]
  # Shell commands that run after the hidden tests are in place.
  setup: []
{_command(choices)}
  # timeout: 5m
{_results(choices)}
reference_patch: reference.patch
# bench task validate writes the validation below.
"""


def _line(key: str, value: str | None, example: str, note: str = "") -> str:
    indent = key[: len(key) - len(key.lstrip())]
    comment = f"  # {note}" if note else ""
    return (
        f"{key}: {value}{comment}" if value is not None else f"{indent}# {key.lstrip()}: {example}{comment}"
    )


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(quoted(value) for value in values) + "]"


def _command(choices: Choices) -> str:
    why = "It must fail on the base with the hidden tests, and pass with the reference."
    guess = f"  # A guess: {choices.command_why}. Check it.\n" if choices.command_why else ""
    return f"  # {why}\n{guess}  command: {quoted(choices.command)}"


def _results(choices: Choices) -> str:
    note = "  # A test report makes a task stricter: every validated test has to run and pass.\n"
    if choices.junit is None:
        if "-m unittest" in choices.command:
            note += (
                "  # unittest writes none by itself: the user guide, below Tasks, has a runner that does.\n"
            )
        return f"{note}  # results: {{format: junit, path: report.xml}}"
    return f"{note}  results: {{format: junit, path: {quoted(choices.junit)}}}"


def clean_remote(url: str) -> str:
    """A remote without passwords and tokens: user names stay only where ssh needs them."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    kept = f"{user.partition(':')[0]}{at}" if parts.scheme.endswith("ssh") else ""
    return urlunsplit((parts.scheme, f"{kept}{host}", parts.path, "", ""))


_PULL = re.compile(r"\(#(\d{1,9})\)\s*$")
_GITHUB = re.compile(
    r"(?:https?://|ssh://git@|git@)(?P<host>[^/:]*github[^/:]*)[/:](?P<path>[^/]+/[^/]+?)(?:\.git)?/?"
)


def pull_request_of(subject: str, remote: str) -> str | None:
    """The pull request that a subject such as ``Fix it (#12)`` names on a GitHub remote."""
    number, place = _PULL.search(subject), _GITHUB.fullmatch(remote)
    if number is None or place is None:
        return None
    return f"https://{place['host']}/{place['path']}/pull/{number[1]}"


def default_id(remote: str, commit: str) -> str:
    """An id for a task: the repository's name and the start of the commit's."""
    name = re.split(r"[/:]", remote.rstrip("/").removesuffix(".git"))[-1]
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-_").lower()[:80]
    return f"{plain or 'task'}-{commit[:10]}"
