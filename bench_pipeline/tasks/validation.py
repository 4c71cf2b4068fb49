"""Whether a task's validation still holds, and writing a new one into its document.

What belongs here: the fingerprint of all that a validation depends on, and the ``validation`` block of
``task.yaml``. What does not: running the check (``pipeline.validating``).
"""

import re
from datetime import UTC
from pathlib import Path

from bench_pipeline.documents import load_yaml_bytes, read_document
from bench_pipeline.documents.yaml12 import MAX_BYTES
from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.identity import digest, digest_bytes
from bench_pipeline.tasks.documents import TaskDocument
from bench_pipeline.tasks.task import DirectorySource, Task, TaskValidation
from bench_pipeline.tasks.trees import tree_digest
from bench_pipeline.tasks.writing import quoted, replace_file

# Enough that no two states of one task share a fingerprint by chance; short enough to read a diff of it.
_DIGITS = 16
_RECIPE = "v2"
_PARTS = {
    "prompt": "the prompt",
    "base": "the base tree",
    "tests": "the hidden tests",
    "reference": "the reference patch",
    "protected": "the protected paths",
    "verify": "the verify section",
    "environment": "the environment section",
}


def validation_fingerprint(task: Task) -> str:
    """What the validation of a task depends on, as text: one short digest for each part, by name."""
    source, verify, environment = task.source, task.verify, task.environment
    base = tree_digest(source.path) if isinstance(source, DirectorySource) else source.base_commit
    results = None if verify.results is None else [verify.results.format, verify.results.path]
    parts: dict[str, object] = {
        "prompt": digest_bytes(task.prompt.encode()),
        "base": base,
        "tests": digest_bytes(verify.tests_patch),
        "reference": digest_bytes(task.reference_patch),
        "protected": sorted(verify.protected_paths),
        "verify": [verify.command, list(verify.setup), verify.network, verify.timeout_s, results],
        "environment": [environment.image, list(environment.setup), list(environment.fingerprint)],
    }
    return " ".join([_RECIPE, *(f"{name}={digest(value)[:_DIGITS]}" for name, value in parts.items())])


def stale(task: Task) -> str | None:
    """Why the task may not be measured with, as a sentence; None when its validation holds."""
    found = task.validation
    if found is None:
        return "it was never validated"
    if not found.base_failed or not found.reference_passed:
        why = "the reference does not pass" if found.base_failed else "the base does not fail as it should"
        return f"its validation found: {'; '.join(found.reasons) or why}"
    now = validation_fingerprint(task).split(" ")
    then = found.fingerprint.split(" ")
    if now == then:
        return None
    if then[0] != _RECIPE or len(then) != len(now):
        return "it was validated by other rules"
    changed = [_PARTS[new.partition("=")[0]] for new, old in zip(now, then, strict=True) if new != old]
    return f"changed since it was validated: {', '.join(changed)}"


def write_validation(path: Path, validation: TaskValidation) -> None:
    """Put ``validation`` into a task's document in place of an earlier one; all other text stays as it is.

    The file is replaced at once, or not at all.

    Raises:
        RefusedError: the document cannot hold it, or is written in a way that a text edit would break.
        DocumentError: the document does not parse.
    """
    before = read_document(path, TaskDocument, "Task").source
    after = _with_block(before, _block(validation))
    tried = f"writing the validation into {path}"
    if len(after) > MAX_BYTES:
        raise RefusedError(
            tried,
            f"the document would have more than {MAX_BYTES} bytes",
            "let verify.command run fewer tests",
        )
    if _without_validation(before, path) != _edited(after, path):
        raise RefusedError(
            tried,
            "its text does not have validation as a block of its own at the left margin",
            "write the document in block style, or remove the validation from it",
        )
    replace_file(path, after)


def _without_validation(data: bytes, path: Path) -> object:
    value = load_yaml_bytes(data, str(path))
    assert isinstance(value, dict)
    return {key: item for key, item in value.items() if key != "validation"}


def _edited(data: bytes, path: Path) -> object:
    """The document without its validation, or None when the edit broke it."""
    try:
        value = load_yaml_bytes(data, str(path))
    except DocumentError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("validation"), dict):
        return None
    return _without_validation(data, path)


def _with_block(source: bytes, block: str) -> bytes:
    text = source.decode("utf-8")
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if re.match(r"validation\s*:", line)), None)
    new = block.split("\n")
    if end == "\r\n":
        new = [line + "\r" for line in new]
    if start is None:
        body = text if text.endswith("\n") or not text else text + end
        return (body + "\n".join(new) + "\n").encode("utf-8")
    stop = start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number].rstrip("\r")
        if line.startswith((" ", "\t", "- ", "}")) and line.strip():
            stop = number + 1
        elif line.strip():
            break
    rest = lines[stop:] or [""]
    return "\n".join([*lines[:start], *new, *rest]).encode("utf-8")


def _block(validation: TaskValidation) -> str:
    moment = validation.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [
        "validation:",
        f"  at: {quoted(moment)}",
        f"  fingerprint: {quoted(validation.fingerprint)}",
        f"  base_failed: {_boolean(validation.base_failed)}",
        f"  reference_passed: {_boolean(validation.reference_passed)}",
        f"  seconds: {validation.seconds:.3f}",
    ]
    if validation.reasons:
        lines += ["  reasons:", *(f"    - {quoted(reason)}" for reason in validation.reasons)]
    tests = [f"    - {quoted(test)}" for test in validation.tests]
    return "\n".join([*lines, *(["  tests:", *tests] if tests else ["  tests: []"])])


def _boolean(value: bool) -> str:
    return "true" if value else "false"
