"""Which paths and links may be written into a working tree.

What belongs here: pure rules over names. What does not: touching a file system (``trees``).

Paths are relative, separated by ``/``; names that are not UTF-8 travel as ``surrogateescape`` text.
"""

# Code points that HFS+ ignores in names, so that `.g<U+200C>it` is `.git` there.
_HFS_IGNORED = {0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}
_DROP_IGNORED = dict.fromkeys(_HFS_IGNORED)
_GIT_NAMES = {".git", "git~1"}  # the second is the short name that NTFS gives the first
MAX_NAME_BYTES = 255
# Together with the folder of a workspace it stays below what Linux takes in one call.
MAX_PATH_BYTES = 2000
# As deep as a tree is ever read; no repository comes near it.
MAX_DEPTH = 100

# What Python and its tools write by themselves wherever they run; it differs from run to run.
CACHE_FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
_CACHE_FILES = (".pyc", ".pyo")


def is_cache(name: str, *, folder: bool) -> bool:
    """Whether an entry of this name is an interpreter's cache, which is no part of a tree."""
    return name in CACHE_FOLDERS if folder else name.endswith(_CACHE_FILES)


def in_cache(path: str) -> bool:
    """Whether the file at ``path`` is an interpreter's cache or lies in one."""
    *folders, name = path.split("/")
    return is_cache(name, folder=False) or any(is_cache(part, folder=True) for part in folders)


def path_text(path: str) -> str:
    """A path as text that JSON takes, whatever bytes its name has: those that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_git_name(component: str) -> bool:
    """Whether a file system may take a name for ``.git``: any case, short name, stream or trailing dot."""
    for part in component.translate(_DROP_IGNORED).casefold().split("\\"):
        if part.split(":", 1)[0].rstrip(". ") in _GIT_NAMES:
            return True
    return False


def path_problem(path: str) -> str | None:
    """Why ``path`` must not be written inside a tree, as a phrase; None when it may be."""
    parts = path.split("/")
    rules = (
        (not path, "an empty path"),
        ("\0" in path, "a path with a NUL"),
        (path.startswith("/"), "an absolute path"),
        (".." in parts, "a path with '..'"),
        ("" in parts or "." in parts, "a path that is not in its plain form"),
        (any(is_git_name(part) for part in parts), "a path into a .git folder"),
        (len(_raw(path)) > MAX_PATH_BYTES, "a path that is too long"),
        (len(parts) > MAX_DEPTH, "a path that is too deep"),
        (any(len(_raw(part)) > MAX_NAME_BYTES for part in parts), "a path with a name that is too long"),
    )
    return next((problem for broken, problem in rules if broken), None)


def link_problem(path: str, target: str) -> str | None:
    """Why a symbolic link at ``path`` to ``target`` must not exist in a tree, as a phrase; None when it may.

    A target may climb only at its start and never above the root. Such a link stays inside the tree
    whatever the other links of the tree are, so that each can be judged alone.
    """
    if not target or "\0" in target or len(_raw(target)) > MAX_PATH_BYTES:
        return "a link without a usable target"
    if target.startswith("/"):
        return "a link to an absolute path"
    steps = [step for step in target.split("/") if step not in {"", "."}]
    climbs = 0
    while climbs < len(steps) and steps[climbs] == "..":
        climbs += 1
    if climbs > path.count("/"):
        return "a link that leaves the tree"
    if ".." in steps[climbs:]:
        return "a link that climbs after it descended"
    return None


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
