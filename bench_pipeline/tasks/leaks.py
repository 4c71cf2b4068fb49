"""What a prompt gives away: the fix itself, or where to find it.

What belongs here: finding leaks in a prompt, and drafting a prompt from a commit message without them. What
does not: deciding what a leak stops (``pipeline``).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bench_pipeline.tasks.patches import TouchedFile, read_patch
from bench_pipeline.tasks.task import Task

# Shorter lines (a brace, an import, a return) stand in prompts by chance.
TELLING_LINE = 20
# One telling line may be a signature that the prompt has to give; more are the solution.
LINES_THAT_ARE_A_SOLUTION = 3

_PROSE = (".md", ".rst", ".txt", ".adoc", ".html")  # a sentence of the documentation is not the solution

_COMMIT_WORD = re.compile(r"(?<![0-9A-Za-z_])[0-9a-f]{7,40}(?![0-9A-Za-z_])", re.IGNORECASE)
_URL = re.compile(r"\bhttps?://[^\s<>()\[\]\"'`]+", re.IGNORECASE)
_CHANGE_URL = re.compile(r"/(?:pulls?|pull-requests|merge_requests|commits?|compare)/\w", re.IGNORECASE)
_FORGE = re.compile(
    r"https?://[^/\s]*(?:github|gitlab|bitbucket|codeberg|sourcehut|sr\.ht|gitea|forgejo|gitee)[^/\s]*",
    re.IGNORECASE,
)
_TRAILER = re.compile(
    r"\s*(?:[a-z]+(?:-[a-z]+)*-by|change-id|cc|link|refs?|bug|issue|closes|fixes|resolves|see-also|pr|pr-url|"
    r"differential revision|reviewed on|git-svn-id|cherry-picked-from|backport(?:ed)?)\s*:.*",
    re.IGNORECASE,
)
_PICKED = re.compile(r"\s*\(cherry picked from commit .*\)\s*", re.IGNORECASE)
_TARGET = r"(?:(?:[\w.-]+/[\w.-]+)?(?:#|gh-)\d+|https?://[^\s<>()]+)"
_CLOSING = re.compile(
    r"\(?\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|see|refs?|part of|related to)\s*:?\s+"
    rf"{_TARGET}(?:\s*(?:,|and|&)\s*{_TARGET})*\)?[.,]?",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\s*\((?:[\w.-]+/[\w.-]+)?(?:#|GH-|!)\d+\)|(?<![\w&])(?:[\w.-]+/[\w.-]+)?#\d+\b|\bGH-\d+\b"
)


@dataclass(frozen=True)
class Leak:
    """One thing that a prompt gives away; ``fatal`` when the solution or its place is told."""

    fatal: bool
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


def find_leaks(task: Task) -> tuple[Leak, ...]:
    """What the prompt of a task gives away, in order of its lines.

    Raises:
        PatchError: the reference or the hidden tests cannot be read.
    """
    source = task.source
    found = [
        *_named_commits(task.prompt, source.fix_commit),
        *_urls(task.prompt, source.pull_request),
        *_lines_of_reference(task),
        *_lines_of_tests(task),
    ]
    return tuple(sorted(found, key=lambda leak: (leak.line, leak.message)))


def _lines(text: str) -> Iterable[tuple[int, str]]:
    return enumerate(text.split("\n"), start=1)


def _named_commits(prompt: str, fix_commit: str | None) -> Iterable[Leak]:
    for number, line in _lines(prompt):
        for word in _COMMIT_WORD.findall(line):
            if fix_commit is not None and fix_commit.startswith(word.lower()):
                yield Leak(True, number, f"names the fix's commit, {word}")


def _urls(prompt: str, pull_request: str | None) -> Iterable[Leak]:
    wanted = pull_request.rstrip("/").casefold() if pull_request else None
    for number, line in _lines(prompt):
        for url in _URL.findall(line):
            if wanted and wanted in url.casefold():
                yield Leak(True, number, "links the fix's pull request")
            elif _CHANGE_URL.search(url):
                yield Leak(True, number, f"links a change: {url}")
            elif _FORGE.match(url):
                yield Leak(False, number, f"links a code forge: {url}")


def _lines_of_reference(task: Task) -> Iterable[Leak]:
    parts = read_patch(task.reference_patch)
    code = _telling(part for part in parts if not part.paths[-1].endswith(_PROSE))
    shared = _shared(task.prompt, code)
    fatal = len(shared) >= min(LINES_THAT_ARE_A_SOLUTION, max(2, len(code)))
    for number in shared.values():
        yield Leak(fatal, number, "holds a line that the reference adds")
    for number in _shared(task.prompt, _telling(parts) - code).values():
        yield Leak(False, number, "holds a line that the reference adds to a text")


def _lines_of_tests(task: Task) -> Iterable[Leak]:
    for number in _shared(task.prompt, _telling(read_patch(task.verify.tests_patch))).values():
        yield Leak(False, number, "holds a line of the hidden tests")


def _telling(parts: Iterable[TouchedFile]) -> set[str]:
    """Added lines that are long enough to tell something, white space made even."""
    added = (_plain(line.decode("utf-8", "replace")) for part in parts for line in part.added)
    return {line for line in added if len(line) >= TELLING_LINE and re.search(r"\w", line)}


def _shared(prompt: str, lines: set[str]) -> dict[str, int]:
    """The lines that stand in the prompt, each with the number of the first prompt line that holds it."""
    plain = [_plain(line) for line in prompt.split("\n")]
    whole = "\n".join(plain)
    return {
        line: next(number for number, text in enumerate(plain, start=1) if line in text)
        for line in sorted(lines)
        if line in whole
    }


def _plain(line: str) -> str:
    return " ".join(line.split())


@dataclass(frozen=True)
class Draft:
    """A prompt drafted from a commit message, and what was taken out of the message, one phrase each."""

    prompt: str
    removed: tuple[str, ...]


def draft_prompt(message: str) -> Draft:
    """A commit message without what leads to the fix: trailers, commit ids, links, issue numbers."""
    removed: list[str] = []
    kept = []
    lines = message.replace("\r\n", "\n").replace("\0", "").strip().split("\n")
    for number, line in enumerate(lines):
        if number and (_TRAILER.fullmatch(line) or _PICKED.fullmatch(line)):
            removed.append(line.strip())
        else:
            kept.append(_cleaned(line, removed))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Draft(f"{text}\n" if text else "", tuple(removed))


def _cleaned(line: str, removed: list[str]) -> str:
    cleaned = line
    for pattern in (_CLOSING, _URL, _NUMBER, _COMMIT_WORD):
        cleaned = pattern.sub(lambda match: _take(match, removed), cleaned)
    if cleaned == line:
        return line
    return re.sub(r"\(\s*\)|<\s*>", "", re.sub(r"(?<=\S) {2,}", " ", cleaned)).rstrip()


def _take(match: re.Match[str], removed: list[str]) -> str:
    word = match[0]
    if match.re is _COMMIT_WORD and not re.search(r"[0-9]", word):
        return word  # a word such as "defaced" or "effaced"
    removed.append(word.strip())
    return ""
