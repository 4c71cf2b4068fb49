"""Where an agent may look, as the sandbox recorded it, and what of its activity was elsewhere.

What belongs here: paths, endpoints and version history, by their text alone. What does not: resolving anything
on disk. Roots were resolved when the cell ran; at verification the same words give the same answer on any
machine.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final, Literal
from urllib.parse import urlsplit

Elsewhere = Literal["out_of_scope_path", "out_of_scope_endpoint", "git_history"]

# Commands are read up to here; what is longer is a file, written with a heredoc.
_MAX_COMMAND: Final = 1 << 16
_MAX_SHELLS: Final = 3
_VCS_FOLDERS: Final = (".git", ".hg", ".svn")
# What tells nothing of other states of the tree.
_VCS_HARMLESS: Final = (
    "",
    "config",
    "description",
    "head",
    "hooks",
    "index",
    "info",
    "hgrc",
    "entries",
    "format",
)
_HISTORY_COMMANDS: Final = (
    "annotate", "archive", "bisect", "blame", "cat-file", "cherry-pick", "for-each-ref", "format-patch", "fsck",
    "log", "ls-tree", "name-rev", "reflog", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "stash",
    "unpack-file", "unpack-objects", "whatchanged",
)  # fmt: skip
_OTHER_REPOSITORY: Final = ("-C", "--git-dir", "--work-tree")
_NO_REPOSITORY: Final = re.compile(
    r"not a git repository|does not have any commits|bad default revision", re.IGNORECASE
)
_INTO_A_FILE: Final = re.compile(
    r"(?<![0-9&=-])[1&]?>>?\|?(?!&|>|\s*/dev/null\b)|\|\s*(?:tee|dd)\b|--output\b"
)
_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443, "git": 9418, "ssh": 22, "ftp": 21}
_LOOPBACK: Final = re.compile(
    r"localhost|.*\.localhost|127(?:\.\d{1,3}){0,3}|0\.0\.0\.0|::1|::|::ffff:127(?:\.\d{1,3}){3}|0*(?::0*)*:0*1|0x7f[0-9a-f]{6}|2130706433"
)
_URL: Final = re.compile(r"\b(?:https?|wss?|ftp|git|ssh)://[^\s'\"`<>|;&)\\]+", re.IGNORECASE)
_NETWORK_PROGRAMS: Final = (
    "curl",
    "wget",
    "git",
    "http",
    "https",
    "nc",
    "lynx",
    "aria2c",
    "pip",
    "pip3",
    "npm",
    "scp",
)
_SEPARATOR: Final = re.compile(r"&&|\|\||[;&|\n()`]|\$\(")
_SHELL_WORD: Final = re.compile(r"(?:[^\s\"'\\]|\\.|\"(?:[^\"\\]|\\.)*+\"|'[^']*+')+", re.DOTALL)
_QUOTING: Final = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|'([^']*+)'|\\(.)", re.DOTALL)
_SHELL: Final = re.compile(r"(?:.*/)?(?:ba|da|z|k|a)?sh")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Scope:
    """What a cell was allowed.

    ``roots`` are the spellings of its working tree, the first one resolved; ``readable`` other folders that the
    sandbox shows; ``denied`` what is forbidden inside or outside of them: the longest match decides.
    ``endpoints`` are ``host:port``, where the port may be ``*``; ``home`` is what ``~`` stands for.
    """

    roots: tuple[str, ...]
    readable: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    home: str = "/"

    def document(self) -> dict[str, object]:
        """The scope as JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    @classmethod
    def of(cls, document: object) -> "Scope":
        """The scope of a document; what is missing or of a wrong type allows nothing."""
        found = document if isinstance(document, Mapping) else {}

        def texts(name: str) -> tuple[str, ...]:
            value = found.get(name)
            return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()

        home = found.get("home")
        return cls(
            texts("roots"),
            texts("readable"),
            texts("denied"),
            texts("endpoints"),
            home if isinstance(home, str) else "/",
        )

    def resolved(self, path: str, folder: str | None = None) -> str:
        """The path as an absolute one without dots, by its words alone; relative ones begin in ``folder``."""
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        base = folder or (self.roots[0] if self.roots else "/")
        return posixpath.normpath(posixpath.join(base, path)).replace("//", "/")

    def relative(self, path: str) -> str | None:
        """The path relative to the working tree; None when it is not in it."""
        whole = self.resolved(path)
        root = next((root for root in self.roots if is_below(whole, root)), None)
        return None if root is None or whole == root else whole[len(root.rstrip("/")) + 1 :]

    def of_path(self, path: str) -> Elsewhere | None:
        """What is wrong with reading or writing at ``path``."""
        whole = self.resolved(path)
        if _is_history(whole):
            return "git_history"
        allowed = self._longest((*self.roots, *self.readable), whole)
        return "out_of_scope_path" if allowed < 0 or self._longest(self.denied, whole) >= allowed else None

    def is_denied(self, path: str, folder: str | None = None) -> bool:
        """Whether the path is forbidden by name, and not only outside of what is known."""
        whole = self.resolved(path, folder)
        return self._longest(self.denied, whole) > self._longest((*self.roots, *self.readable), whole)

    @staticmethod
    def _longest(folders: Sequence[str], path: str) -> int:
        return max((len(folder) for folder in folders if is_below(path, folder)), default=-1)

    def of_endpoint(self, url: str) -> Elsewhere | None:
        """What is wrong with a connection to ``url`` (or ``host:port``)."""
        host, port = endpoint_of(url)
        allowed = {endpoint_of(each) for each in self.endpoints}
        return None if (host, port) in allowed or (host, "*") in allowed else "out_of_scope_endpoint"

    def of_command(self, command: str) -> set[Elsewhere]:
        """What is wrong with a shell command, as far as its words tell."""
        found: set[Elsewhere] = set()
        for words, folder in _simple_commands(command, self):
            program = posixpath.basename(words[0])
            paths = [word.partition("=")[2] or word for word in words[1:]]
            for path in (*paths, words[0]):
                if len(path) < 4096 and _is_path(path):
                    if _is_history(self.resolved(path, folder)):
                        found.add("git_history")
                    elif self.is_denied(path) and self.is_denied(path, folder):
                        found.add("out_of_scope_path")
            if program == "git" and _git_verb(words)[0] in _HISTORY_COMMANDS:
                found.add("git_history")
            if program in _NETWORK_PROGRAMS:
                urls = (url for word in words[1:] for url in _URL.findall(word))
                found |= {wrong for url in urls if (wrong := self.of_endpoint(url)) is not None}
        return found

    def starts_history(self, command: str) -> bool:
        """Whether the command makes a repository of the agent's own, in the place where it works."""
        return any(
            posixpath.basename(words[0]) == "git" and _git_verb(words) == ("init", False)
            for words, _ in _simple_commands(command, self)
        )

    def names_other_repository(self, command: str) -> bool:
        """Whether a git command of it looks into a repository that it names."""
        return any(
            posixpath.basename(words[0]) == "git" and _git_verb(words)[1]
            for words, _ in _simple_commands(command, self)
        )


def shows_no_history(command: str, output: str) -> bool:
    """Whether a command for history came back with nothing; one that writes into a file shows nothing of it."""
    if _NO_REPOSITORY.search(output[:4096]) is not None:
        return True
    return not output.strip() and _INTO_A_FILE.search(command[:_MAX_COMMAND]) is None


def endpoint_of(url: str) -> tuple[str, str]:
    """Host and port of a URL or of ``host:port``, in one spelling; ``*`` stands for any port."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "", url.strip()
    if rest.endswith(":*"):
        return _host(rest[:-2]), "*"
    try:
        parts = urlsplit(f"//{rest}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return rest.casefold(), ""
    return _host(host), str(
        port if port is not None else _PORTS.get(scheme.casefold(), 443 if not scheme else "")
    )


def _host(host: str) -> str:
    host = host.casefold().strip("[]").rstrip(".")
    return "localhost" if _LOOPBACK.fullmatch(host) else host


def is_below(path: str, folder: str) -> bool:
    """Whether a resolved path is the folder or in it."""
    folder = folder.rstrip("/")
    return path == folder or path.startswith(folder + "/") or not folder


def _is_history(path: str) -> bool:
    parts = path.casefold().split("/")
    return any(
        part in _VCS_FOLDERS and (parts[at + 1] if at + 1 < len(parts) else "") not in _VCS_HARMLESS
        for at, part in enumerate(parts)
    )


def _is_path(word: str) -> bool:
    return word.startswith(("/", "~")) or ".." in word or any(f"{name}/" in word for name in _VCS_FOLDERS)


def _git_verb(words: Sequence[str]) -> tuple[str, bool]:
    """The verb of a git command, and whether it names another repository."""
    other, at = False, 1
    while at < len(words) and words[at].startswith("-"):
        name = words[at].partition("=")[0]
        other = other or name in _OTHER_REPOSITORY
        at += 2 if words[at] in (*_OTHER_REPOSITORY, "-c") else 1
    return (words[at] if at < len(words) else ""), other


def _simple_commands(
    command: str, scope: Scope, shells: int = _MAX_SHELLS
) -> Iterator[tuple[list[str], str]]:
    """The simple commands of a shell line, each with the folder that the ``cd`` before it led to."""
    folder = scope.resolved(".")
    for found in _split(command[:_MAX_COMMAND]):
        words = list(dropwhile(_ASSIGNMENT.match, found))
        if not words:
            continue
        if words[0] == "cd" and len(words) > 1:
            folder = scope.resolved(words[1], folder)
        script = _script(words)
        if script is not None and shells:
            yield from _simple_commands(script, scope, shells - 1)
        yield words, folder


def _script(words: Sequence[str]) -> str | None:
    """What a shell is asked to run with ``-c``."""
    if not _SHELL.fullmatch(words[0]):
        return None
    at = next((at for at, word in enumerate(words) if word.startswith("-") and word.endswith("c")), None)
    return words[at + 1] if at is not None and at + 1 < len(words) else None


def _split(command: str) -> Iterator[list[str]]:
    """Words, command by command; quotes hold separators together."""
    words: list[str] = []
    end = 0
    for match in _SHELL_WORD.finditer(command):
        if _SEPARATOR.search(command, end, match.start()) or "\n" in command[end : match.start()]:
            yield words
            words = []
        end = match.end()
        raw = match[0]
        if raw[0] in "\"'":
            words.append(_unquoted(raw))
            continue
        pieces = _SEPARATOR.split(raw) if not ('"' in raw or "'" in raw) else [raw]
        for number, piece in enumerate(pieces):
            if number:
                yield words
                words = []
            if piece:
                words.append(_unquoted(piece))
    yield words


def _unquoted(word: str) -> str:
    return _QUOTING.sub(lambda match: match[1] or match[2] or match[3] or "", word).lstrip("<>")
