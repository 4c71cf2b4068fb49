"""What people are told in a chat or a mail: plain text that stays text wherever it is shown.

What belongs here: words, and making names harmless. What does not: when something is told, and to whom
(``pipeline.notifying``).

A service may read its own markup, mentions and links into any text. Escapes differ from service to service, so what
others wrote loses the characters that these are made of: there is nothing left to read into it.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from bench_pipeline.providers.messenger import Message
from bench_pipeline.reports.escaping import one_line, shortened
from bench_pipeline.reports.text import plural

# Look-alikes of what mentions, markup, links and quotes of a shell are made of.
_HARMLESS = str.maketrans(
    {
        "@": "(at)",
        "<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}",
        ">": "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}",
        "&": "\N{FULLWIDTH AMPERSAND}",
        "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
        "*": "\N{ASTERISK OPERATOR}",
        "~": "\N{TILDE OPERATOR}",
        "|": "\N{BROKEN BAR}",
        "[": "(",
        "]": ")",
        "\\": "\N{REVERSE SOLIDUS OPERATOR}",
        "#": "\N{MUSIC SHARP SIGN}",
    }
)
# Words beyond these are not read in a message; the command that it names shows all.
_LONGEST = 200
# The shortest limit of a service that is common holds 2,000 characters.
_WHOLE = 1800
_LISTED = 8


@dataclass(frozen=True)
class Flip:
    """A gate that decides otherwise than before, with the numbers of both times and the command that shows more."""

    gate: str
    passes: bool
    before: str
    now: str
    why: str
    command: str


@dataclass(frozen=True)
class FailedRun:
    """A run of a night that failed for good, and whether the same would fail again (``permanent``)."""

    job: str
    kind: str
    run_id: str
    why: str


@dataclass(frozen=True)
class Night:
    """A night that has ended: the runs that failed, and a line for each table with partitions that were left failed."""

    name: str
    failed: tuple[FailedRun, ...] = ()
    left_failed: tuple[str, ...] = ()


def inert(text: str, longest: int = _LONGEST) -> str:
    """A text of others on one line, without anything that a chat or a mail program would make more of."""
    return shortened(one_line(" ".join(text.split())).translate(_HARMLESS).replace("//", "/ /"), longest)


def command_line(*words: str) -> str:
    """A command to copy into a shell; a name that had to be made harmless names nothing then, and does nothing."""
    return shlex.join(inert(word) for word in words)


def flips_message(project: str, flips: Sequence[Flip]) -> Message:
    """What is said of gates that flipped at one time; those that fail now first."""
    failing = [flip for flip in flips if not flip.passes]
    title = f"{inert(project)}: {plural(len(flips), 'gate')} flipped, {len(failing)} to failed"
    ordered = sorted(flips, key=lambda flip: (flip.passes, flip.gate))
    return _message(title, [_flip(flip) for flip in ordered], bad=bool(failing))


def _flip(flip: Flip) -> str:
    before, now = ("failed", "passes") if flip.passes else ("passed", "fails")
    why = f" {inert(flip.why)}." if flip.why else ""
    return (
        f"{inert(flip.gate)}: {before} before, {now} now.{why} Now {inert(flip.now)}; before {inert(flip.before)}. "
        f"More: {flip.command}"
    )


def night_message(project: str, night: Night) -> Message:
    """What is said of a night in which runs failed."""
    title = f"{inert(project)}: the night that began at {inert(night.name)} failed"
    runs = [
        f"{inert(run.job)} failed, {inert(run.kind)}: {inert(run.why)}. More: bench ui, run {inert(run.run_id)}"
        for run in night.failed
    ]
    advice = "bench doctor lists what was left failed, bench run makes it again."
    left = [f"left failed: {inert(line)}" for line in night.left_failed]
    return _message(title, [*runs, advice, *left])


def trial_message(project: str, target: str, events: Sequence[str]) -> Message:
    """A message that says only that messages come through."""
    told = ", ".join(events) or "nothing"
    text = f"{inert(target)} is told: {told}. Nothing has happened; this is a test."
    return _message(f"{inert(project)}: a test of notifications", [text], bad=False)


def _message(title: str, lines: Sequence[str], *, bad: bool = True) -> Message:
    shown = list(lines[:_LISTED])
    if len(lines) > _LISTED:
        shown.append(f"and {len(lines) - _LISTED} more")
    return Message(title, shortened("\n".join(shown), _WHOLE), bad)
