"""Test reports: which tests ran, and which of them passed.

What belongs here: reading JUnit XML and TAP into ids. What does not: which ids were expected (the task says
so) and what a missing one means (execution/outcome). A report comes out of a run of the candidate and is
read as hostile: no document type and so no entities, limits on size, and anything that does not add up is a
problem.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from xml.parsers import expat

# A report is text that people read; more is a fault or an attack.
MAX_BYTES = 64 * 1024 * 1024
MAX_TESTS = 1_000_000
_MAX_ID = 4096

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class TestResults:
    """Test ids by result, each sorted and each in one tuple only.

    An id that occurs more than once passed when every occurrence passed, was skipped when every one was, and
    else failed. ``problem`` says why the report cannot be relied on.
    """

    __test__ = False  # pytest would take the name for a test class

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    problem: str | None = None

    @property
    def run(self) -> int:
        """How many tests ran: the passed and the failed."""
        return len(self.passed) + len(self.failed)


class _ReportError(Exception):
    """The report is no report, or does not add up."""


def parse_results(report_format: str, data: bytes) -> TestResults:
    """The tests in a report of format ``junit`` or ``tap``.

    JUnit ids are ``classname::name``; TAP ids are the descriptions, those of subtests after ``parent > ``.
    Never raises for what a report holds; raises KeyError for another format.
    """
    parse = _PARSERS[report_format]
    if len(data) > MAX_BYTES:
        return TestResults((), (), (), problem=f"larger than {MAX_BYTES >> 20} MiB")
    found: list[tuple[str, str]] = []
    try:
        parse(data, found)
    except _ReportError as error:
        return _collected(found, str(error))
    return _collected(found, None)


def _collected(found: Iterable[tuple[str, str]], problem: str | None) -> TestResults:
    results: dict[str, set[str]] = defaultdict(set)
    for identity, result in found:
        results[identity].add(result)
    by_result: dict[str, list[str]] = {PASSED: [], FAILED: [], SKIPPED: []}
    for identity, seen in sorted(results.items()):
        by_result[next(iter(seen)) if len(seen) == 1 else FAILED].append(identity)
    passed, failed, skipped = (tuple(by_result[result]) for result in (PASSED, FAILED, SKIPPED))
    return TestResults(passed, failed, skipped, problem)


def _add(found: list[tuple[str, str]], identity: str, result: str) -> None:
    if len(found) >= MAX_TESTS:
        raise _ReportError(f"more than {MAX_TESTS} tests")
    if len(identity) > _MAX_ID:
        raise _ReportError(f"a test id longer than {_MAX_ID} characters")
    found.append((identity, result))


class _JUnit:
    """Handlers for the elements of a JUnit report."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        self._found = found
        self._case: str | None = None
        self._result = PASSED
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and tag not in {"testsuites", "testsuite"}:
            raise _ReportError(f"the root element is {tag[:40]}, not testsuites or testsuite")
        if tag == "testcase":
            if self._case is not None:
                raise _ReportError("a testcase inside a testcase")
            name, group = attributes.get("name", ""), attributes.get("classname", "")
            self._case = f"{group}::{name}" if group else name
            not_run = attributes.get("status") in {"notrun", "skipped", "disabled"}
            self._result = SKIPPED if not_run else PASSED
        elif self._case is not None and tag in {"failure", "error"}:
            self._result = FAILED
        elif self._case is not None and tag == "skipped" and self._result == PASSED:
            self._result = SKIPPED

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase" and self._case is not None:
            _add(self._found, self._case, self._result)
            self._case = None


def _parse_junit(data: bytes, found: list[tuple[str, str]]) -> None:
    parser, handlers = expat.ParserCreate(), _JUnit(found)
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _ReportError(f"no well-formed XML: {error}") from None
    except (LookupError, ValueError):
        raise _ReportError("no XML in an encoding that can be read") from None


def _refuse_doctype(*_: object) -> None:
    raise _ReportError("a document type declaration, which is refused")


_TAP_TEST = re.compile(r"( *)(not )?ok\b[ \t]*([0-9]+)?[ \t]*(?:- ?)?(.*)", re.DOTALL)
_TAP_PLAN = re.compile(r"( *)1\.\.([0-9]+)\s*(?:#.*)?", re.DOTALL)
_TAP_BAIL = re.compile(r" *Bail out!(.*)", re.DOTALL)
_TAP_YAML = re.compile(r"( +)---\s*")
_TAP_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(?:skip\S*|todo)\b.*", re.IGNORECASE | re.DOTALL)
# Digits of a count that a report of MAX_TESTS tests can need.
_MAX_DIGITS = 7


@dataclass
class _Level:
    """The tests at one depth of indentation that still wait for the test that they belong to."""

    tests: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0
    plan: int | None = None
    highest: int = 0


class _Tap:
    """The state of reading a TAP report line by line."""

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {0: _Level()}
        self._yaml: str | None = None
        self._total = 0

    def line(self, line: str) -> None:
        if self._yaml is not None:
            if line.rstrip() == f"{self._yaml}...":
                self._yaml = None
        elif match := _TAP_YAML.fullmatch(line):
            self._yaml = match[1]
        elif match := _TAP_BAIL.fullmatch(line):
            raise _ReportError(f"bail out:{match[1].rstrip()[:200]}")
        elif match := _TAP_PLAN.fullmatch(line):
            self._plan(len(match[1]), _number(match[2]))
        elif match := _TAP_TEST.fullmatch(line):
            self._test(match)

    def _plan(self, indent: int, count: int) -> None:
        level = self._levels.setdefault(indent, _Level())
        if level.plan is not None:
            raise _ReportError("two plans")
        level.plan = count

    def _test(self, match: re.Match[str]) -> None:
        indent, description = len(match[1]), match[4].strip()
        directive = _TAP_DIRECTIVE.search(description)
        name = description[: directive.start()].strip() if directive else description
        level = self._levels.setdefault(indent, _Level())
        level.count += 1
        number = _number(match[3]) if match[3] else level.count
        level.highest = max(level.highest, number)
        identity = name or f"test {number}"
        for deeper in sorted(each for each in self._levels if each > indent):
            children = self.close(deeper)
            for child, result in children:
                _add(level.tests, f"{identity} > {child}", result)
        result = SKIPPED if directive else FAILED if match[2] else PASSED
        _add(level.tests, identity, result)

    def close(self, indent: int) -> list[tuple[str, str]]:
        """Take the tests of a depth whose plan has to be complete."""
        level = self._levels.pop(indent)
        if level.plan is None:
            raise _ReportError("no plan, so the report may be cut")
        if level.plan != level.count or level.highest > level.plan:
            raise _ReportError(f"the plan says {level.plan} tests, the report has {level.count}")
        return level.tests

    def finish(self) -> list[tuple[str, str]]:
        if self._yaml is not None or len(self._levels) > 1:
            raise _ReportError("the report is cut")
        return self.close(0)


def _number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _ReportError("a test number that is too large")
    return int(digits)


def _parse_tap(data: bytes, found: list[tuple[str, str]]) -> None:
    report = _Tap()
    for line in data.split(b"\n"):
        report.line(line.decode("utf-8", "replace").rstrip("\r"))
    found.extend(report.finish())


_PARSERS: dict[str, Callable[[bytes, list[tuple[str, str]]], None]] = {
    "junit": _parse_junit,
    "tap": _parse_tap,
}
