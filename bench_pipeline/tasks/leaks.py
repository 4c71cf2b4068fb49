"""What a prompt gives away: the fix itself, or where to find it.

What belongs here: finding leaks in a prompt, and drafting a prompt from a commit message without them. What
does not: deciding what a leak stops (``pipeline``).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from bench_pipeline.tasks.patches import TouchedFile, read_patch
from bench_pipeline.tasks.task import Task
from bench_pipeline.tasks.trees import TreeFile, tree_files

# Shorter lines (a brace, an import, a return) stand in prompts by chance.
TELLING_LINE = 20
# So long a line of code that the base does not hold is not written twice by chance.
DECISIVE_LINE = 30
# So many telling lines together are the solution, however short; so are all that there are.
LINES_THAT_ARE_A_SOLUTION = 3

# A sentence of the documentation or of a comment is not the solution.
_PROSE = (".md", ".rst", ".txt", ".adoc", ".html")
_COMMENT = re.compile(r"#|//|/?\*|--|\"\"\"|'''")
_STATEMENT = re.compile(r"(return|raise|throw|yield) |.*([={}<>|&]| [*+/%] |\w[(\[].*[)\]]:?$)")
# What has to be there for the tests to call, a prompt may have to say.
_SIGNATURE = re.compile(
    r"((export|default|pub|public|private|protected|static|final|abstract|async)\b\S* )*"
    r"(def|class|fn|func|function|interface|struct|enum|trait|type|module|import|from|use|package) "
)

_COMMIT_WORD = re.compile(r"(?<![0-9A-Za-z_])[0-9a-f]{7,40}(?![0-9A-Za-z_])", re.IGNORECASE)
_URL = re.compile(r"\bhttps?://[^\s<>()\[\]\"'`]+", re.IGNORECASE)
_CHANGE_URL = re.compile(r"/(?:pulls?|pull-requests|merge_requests|commits?|compare)/\w", re.IGNORECASE)
_FORGE = re.compile(
    r"https?://[^/\s]*(?:github|gitlab|bitbucket|codeberg|sourcehut|sr\.ht|gitea|forgejo|gitee)[^/\s]*",
    re.IGNORECASE,
)
_REMOTE = re.compile(r"(?:[a-z+]+://(?:[^/@]*@)?|[^/@:]*@)(?P<host>[^/:]+)(?::\d+(?=/))?[/:](?P<path>.*)")
_TRAILER = re.compile(
    r"\s*(?:[a-z]+(?:-[a-z]+)*-by|change-id|cc|link|refs?|bug|issue|closes|fixes|resolves|see-also|pr|pr-url|"
    r"differential revision|reviewed on|git-svn-id|cherry-picked-from|backport(?:ed)?)\s*:.*",
    re.IGNORECASE,
)
_PICKED = re.compile(r"\s*\(cherry picked from commit .*\)\s*", re.IGNORECASE)
_TARGET = r"(?:(?:[\w.-]+/[\w.-]+)?(?:#|gh-)\d+|https?://[^\s<>()]+)"
_CLOSING = re.compile(
    r"\(?\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|see|refs?|part of|related to)\s*:?\s+"
    rf"{_TARGET}(?:\s*(?:,|and|&)\s*{_TARGET})*\)?",
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


def find_leaks(task: Task, base: Path | None = None) -> tuple[Leak, ...]:
    """What the prompt of a task gives away, in order of its lines.

    Args:
        task: whose prompt it is.
        base: the folder of its base tree, where that is at hand: a line that stands in it tells nothing new.

    Raises:
        PatchError: the reference or the hidden tests cannot be read.
    """
    source = task.source
    remote = getattr(source, "remote", None)
    found = [
        *_named_commits(task.prompt, source.fix_commit),
        *_urls(task.prompt, source.pull_request, remote),
        *_lines_of_reference(task, base),
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


def _urls(prompt: str, pull_request: str | None, remote: str | None) -> Iterable[Leak]:
    wanted = pull_request.rstrip("/").casefold() if pull_request else None
    home = _place(remote) if remote else None
    for number, line in _lines(prompt):
        for url in _URL.findall(line):
            if wanted and wanted in url.casefold():
                yield Leak(True, number, "links the fix's pull request")
            elif _CHANGE_URL.search(url):
                yield Leak(True, number, f"links a change: {url}")
            elif home and f"{_place(url)}/".startswith(f"{home}/"):
                yield Leak(True, number, f"links the task's own repository, where the fix is: {url}")
            elif _FORGE.match(url):
                yield Leak(False, number, f"links a code forge: {url}")


def _place(url: str) -> str | None:
    """Host and path of a repository or of a page in it; None for a path of this machine."""
    found = _REMOTE.match(url.casefold())
    return f"{found['host']}/{found['path'].removesuffix('.git').strip('/')}" if found else None


def _lines_of_reference(task: Task, base: Path | None) -> Iterable[Leak]:
    parts = read_patch(task.reference_patch)
    code = _telling(part for part in parts if not part.paths[-1].endswith(_PROSE))
    code = {line for line in code if _is_statement(line)}
    shared = _shared(task.prompt, code)
    new = set(shared) - _standing_in(base, set(shared)) if base is not None else set(shared)
    whole = len(new) >= min(LINES_THAT_ARE_A_SOLUTION, len(code))
    for line, number in shared.items():
        fatal = line in new and (whole or len(line) >= DECISIVE_LINE)
        yield Leak(fatal, number, "holds a line that the reference adds")
    for number in _shared(task.prompt, _telling(parts) - code).values():
        yield Leak(False, number, "holds a line that the reference adds")


def _is_statement(line: str) -> bool:
    """Whether a line does something, as far as that can be told without its language."""
    return bool(_STATEMENT.match(line) and not _COMMENT.match(line) and not _SIGNATURE.match(line))


def _standing_in(base: Path, lines: set[str]) -> set[str]:
    """Those of the lines that a file of the base holds; without lines the tree is not read."""
    found: set[str] = set()
    for file in tree_files(base) if lines else ():
        if isinstance(file, TreeFile):
            text = file.content.decode("utf-8", "replace")
            found |= lines & {_plain(line) for line in text.split("\n")}
    return found


def _lines_of_tests(task: Task) -> Iterable[Leak]:
    for number in _shared(task.prompt, _telling(read_patch(task.verify.tests_patch))).values():
        yield Leak(False, number, "holds a line of the hidden tests")


def _telling(parts: Iterable[TouchedFile]) -> set[str]:
    """Added lines that are long enough to tell something, white space made even."""
    added = (_plain(line.decode("utf-8", "replace")) for part in parts for line in part.added)
    return {line for line in added if len(line) >= TELLING_LINE and re.search(r"\w", line)}


def _shared(prompt: str, lines: set[str]) -> dict[str, int]:
    """The lines that stand in the prompt, each with the number of the prompt line in which it begins.

    A prompt may break a line anew.
    """
    plain = [_plain(line) for line in prompt.split("\n")]
    starts = list(accumulate((len(line) + 1 if line else 0 for line in plain), initial=0))
    whole = " ".join(line for line in plain if line)
    places = {line: whole.find(line) for line in sorted(lines)}
    return {line: bisect_right(starts, place) for line, place in places.items() if place >= 0}


def _plain(line: str) -> str:
    """White space made even, without what ends a statement in some languages."""
    return " ".join(line.split()).rstrip(";,")


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
    cleaned = re.sub(r"\(\s*\)|<\s*>", "", re.sub(r"(?<=\S) {2,}", " ", cleaned))
    # What stood around the phrase must not stand alone.
    cleaned = re.sub(r"[\s,;:]+(?=[.,;:!?)]|$)", "", cleaned)
    return re.sub(r"^(\s*)[.,;:]+\s*", r"\1", cleaned)


def _take(match: re.Match[str], removed: list[str]) -> str:
    word = match[0]
    if match.re is _COMMIT_WORD and (word.isdigit() or not re.search(r"[0-9]", word)):
        return word  # a number, or a word such as "defaced" or "effaced"
    removed.append(word.strip())
    return ""
