"""A task is valid when its base fails the hidden tests, with tests really run, and its reference passes them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_pipeline.execution.results import TestResults
from bench_pipeline.execution.verification import Verification
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.validating import Validated, judge, tasks_to_validate, validate_tasks
from bench_pipeline.tasks import load_tasks, stale

CONFIG = (
    "apiVersion: bench.ber.run/v1alpha1\nkind: Project\nsandbox: {backend: process, allow_process: true}\n"
)
HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Task\nsource: {directory: base}\n"
REPORT = """#!/bin/sh
# Writes a TAP report of two tests about the number in `value`.
value=$(cat value)
echo 'TAP version 14' > report.tap
echo '1..2' >> report.tap
test "$value" -ge 1 && echo 'ok 1 - positive' >> report.tap || echo 'not ok 1 - positive' >> report.tap
test "$value" = 2 && echo 'ok 2 - two' >> report.tap || echo 'not ok 2 - two' >> report.tap
test "$value" = 2
"""
REFERENCE = b"--- a/value\n+++ b/value\n@@ -1 +1 @@\n-1\n+2\n"


def added(path: str, content: str) -> bytes:
    lines = content.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}".encode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


Make = Callable[..., Path]


@pytest.fixture
def make(project: Path) -> Make:
    def make_task(
        task_id: str,
        *,
        command: str = "sh tests/check.sh",
        script: str = REPORT,
        reference: bytes = REFERENCE,
        prompt: str = "Say two.",
        results: bool = True,
        more: str = "",
    ) -> Path:
        folder = project / "tasks" / task_id
        (folder / "base").mkdir(parents=True)
        (folder / "base" / "value").write_text("1\n")
        (folder / "prompt.md").write_text(prompt)
        (folder / "tests.patch").write_bytes(added("tests/check.sh", script))
        (folder / "reference.patch").write_bytes(reference)
        report = "  results: {format: tap, path: report.tap}\n" if results else ""
        (folder / "task.yaml").write_text(f"{HEAD}{more}verify:\n  command: {command!r}\n{report}")
        return folder

    return make_task


def validate(project: Path, task_id: str, **options: object) -> Validated:
    bench = Bench(project)
    (found,) = validate_tasks(bench, tasks_to_validate(bench, [task_id], [], every=False), **options)
    return found


def test_a_good_task_is_valid_and_the_record_holds(project: Path, make: Make) -> None:
    make("t")
    found = validate(project, "t", repeat=2)
    assert found.reasons == ()
    assert (found.base_failed, found.reference_passed) == (True, True)
    assert (found.base_tests_run, found.reference_tests_run) == (2, 2)
    (task,) = load_tasks(project).tasks
    assert stale(task) is None
    assert task.validation is not None
    assert task.validation.tests == found.tests
    assert len(found.tests) == 2
    assert task.validation.seconds > 0


@pytest.mark.services
def test_a_good_task_is_valid_under_bubblewrap(project: Path, make: Make) -> None:
    make("t")
    bench = Bench(project, backend="bubblewrap")
    (found,) = validate_tasks(bench, bench.tasks.selected(["t"]))
    assert found.reasons == ()


def test_what_cannot_be_in_a_base_is_said(project: Path, make: Make) -> None:
    folder = make("t")
    (folder / "base" / "out").symlink_to("/etc/hostname")
    found = validate(project, "t")
    assert found.reasons == ()
    assert "out" in found.warnings[0]


def test_a_task_without_a_report_is_judged_by_exit_status(project: Path, make: Make) -> None:
    make("t", results=False)
    found = validate(project, "t")
    assert found.reasons == ()
    assert (found.tests, found.base_tests_run) == ((), None)


def test_a_base_that_passes_is_refused_and_recorded(project: Path, make: Make) -> None:
    make("t", script="true\n", results=False)
    found = validate(project, "t")
    assert "nothing to fix" in found.reasons[0]
    (task,) = load_tasks(project).tasks
    assert str(stale(task)).startswith("its validation found: the base passes the hidden tests")


def test_a_reference_that_fails_is_refused_and_what_it_printed_is_shown(project: Path, make: Make) -> None:
    make("t", script=REPORT.replace("= 2", "= 3") + "code=$?\necho the value is wrong\nexit $code\n")
    found = validate(project, "t")
    assert any("the reference does not pass" in reason and "two" in reason for reason in found.reasons)
    assert found.output is not None
    assert "the value is wrong" in found.output
    (task,) = load_tasks(project).tasks
    assert str(stale(task)).startswith("its validation found: the reference does not pass")


def test_why_a_validation_failed_is_kept_with_the_task(project: Path, make: Make) -> None:
    make("t", command="no-such-program-here", results=False)
    validate(project, "t")
    (task,) = load_tasks(project).tasks
    assert "a program in it was not found in the sandbox (exit status 127)" in str(stale(task))
    assert "pass without a fix" not in str(stale(task))


def test_a_reference_that_touches_protected_paths_is_refused(project: Path, make: Make) -> None:
    folder = make("t")
    document = (folder / "task.yaml").read_text()
    (folder / "task.yaml").write_text(f"{document}  protected_paths: [value]\n")
    assert validate(project, "t").reasons == ("the reference touches protected paths: value",)


@pytest.mark.parametrize("what", ["prompt", "protected paths"])
def test_another_prompt_or_other_protected_paths_make_a_task_stale_until_it_is_validated_again(
    project: Path, make: Make, what: str
) -> None:
    folder = make("t")
    validate(project, "t")
    if what == "prompt":
        (folder / "prompt.md").write_text("Say two, see https://example.org/o/r/pull/12")
    else:
        document = (folder / "task.yaml").read_text()
        (folder / "task.yaml").write_text(
            document.replace("verify:\n", "verify:\n  protected_paths: [value]\n")
        )
    (task,) = load_tasks(project).tasks
    assert stale(task) == f"changed since it was validated: the {what}"
    assert validate(project, "t").reasons


@pytest.mark.parametrize(
    ("command", "results", "said"),
    [
        ("no-such-program-here", False, "not found in the sandbox"),
        ("./tests/check.sh", False, "126"),
        ("exit 1", True, "report"),
        ("echo 1..0 > report.tap; exit 1", True, "no test ran"),
        ("echo TESTS PASSED; exit 3", False, "the reference does not pass"),
        ("kill -9 $$", False, "signal"),
    ],
)
def test_a_check_that_did_not_run_the_tests_proves_nothing(
    project: Path, make: Make, command: str, results: bool, said: str
) -> None:
    make("t", command=command, results=results)
    found = validate(project, "t")
    assert any(said in reason for reason in found.reasons), found.reasons


VANISHING = """#!/bin/sh
if test "$(cat value)" = 2; then
    printf '1..1\\nok 1 - one\\n' > report.tap
else
    printf '1..3\\nok 1 - two\\nok 2 - three\\nnot ok 3 - one\\n' > report.tap
    exit 1
fi
"""


def test_a_reference_that_makes_tests_vanish_is_refused(project: Path, make: Make) -> None:
    make("t", script=VANISHING)
    found = validate(project, "t")
    assert found.reasons == ("with the reference, fewer tests run than on the base: 1 of 3",)
    assert found.reference_passed is False


def test_a_reference_that_does_not_apply_is_refused_and_nothing_is_recorded(
    project: Path, make: Make
) -> None:
    folder = make("t", reference=REFERENCE.replace(b"-1", b"-7"))
    before = (folder / "task.yaml").read_bytes()
    found = validate(project, "t")
    assert "does not apply" in found.reasons[0]
    assert (folder / "task.yaml").read_bytes() == before


def test_hidden_tests_that_do_not_apply_and_a_failed_setup_are_refused(project: Path, make: Make) -> None:
    folder = make("t")
    (folder / "tests.patch").write_bytes(REFERENCE.replace(b"-1", b"-7"))
    make("s", more="environment: {setup: ['exit 9']}\n")
    assert "hidden tests do not apply" in validate(project, "t").reasons[0]
    assert "environment.setup" in validate(project, "s").reasons[0]


def test_a_prompt_that_gives_the_fix_away_is_refused_unless_allowed(project: Path, make: Make) -> None:
    make("t", prompt="See https://example.org/o/r/pull/12")
    found = validate(project, "t")
    assert "gives the fix away" in found.reasons[-1]
    assert found.base_failed is None
    allowed = validate(project, "t", allow_leaks=True)
    assert allowed.reasons == ()
    assert len(allowed.warnings) == 1


def test_without_ids_only_what_does_not_hold_is_validated(project: Path, make: Make) -> None:
    make("a")
    make("b", more="tier: smoke\n")
    validate(project, "a")
    bench = Bench(project)
    assert [task.id for task in tasks_to_validate(bench, [], [], every=False)] == ["b"]
    assert [task.id for task in tasks_to_validate(bench, [], [], every=True)] == ["a", "b"]
    assert [task.id for task in tasks_to_validate(bench, ["a"], [], every=False)] == ["a"]
    assert [task.id for task in tasks_to_validate(bench, [], ["smoke"], every=True)] == ["b"]


def test_the_base_itself_is_never_changed_by_a_check(project: Path, make: Make) -> None:
    folder = make("t", script=REPORT + "code=$?\necho 9 > value\nexit $code\n")
    assert validate(project, "t", repeat=2).reasons == ()
    assert sorted(os.listdir(folder / "base")) == ["value"]
    assert (folder / "base" / "value").read_text() == "1\n"


def check(exit_code: int, passed: str = "", failed: str = "", **facts: object) -> Verification:
    return Verification(exit_code=exit_code, results=TestResults((*passed,), (*failed,), ()), **facts)


def test_tests_that_pass_only_at_times_are_named() -> None:
    bases = [check(1, "a", "bc")] * 3
    found = judge("t", bases, [check(0, "abc"), check(1, "ab", "c"), check(0, "abc")])
    assert found.flaky == ("c",)
    assert found.tests == ("a", "b")
    assert found.reference_passed is False
    assert any("different results" in reason for reason in found.reasons)


def test_a_base_that_passes_only_at_times_is_refused() -> None:
    found = judge("t", [check(1, "a", "b"), check(0, "ab")], [check(0, "ab")] * 2)
    assert found.base_failed is False


@pytest.mark.parametrize(
    ("base", "reference", "said"),
    [
        (check(1, "a", "b"), check(0, "ab"), None),
        (check(2, "", "x"), check(0, "abc"), None),
        (check(1, "ab", ""), check(0, "ab"), "makes no test pass"),
        (check(1, "a", "bc"), check(0, "ab"), "fewer tests"),
        (check(1, "a", "b"), check(0, "a", "b"), "ends with 0 although tests fail"),
        (check(1, "", "b"), check(0), "no test ran"),
        (check(1), check(0, "ab"), "no test ran"),
        (check(1, "a", "b", timed_out=True), check(0, "ab"), "ran out of time"),
        (check(1, "a", "b"), check(0, "ab", memory_killed=True), "memory"),
        (check(1, "a", "b"), Verification(problem="verify.setup[0] failed"), "verify.setup"),
        (Verification(cancelled=True), check(0, "ab"), "interrupted"),
    ],
)
def test_each_fault_of_a_pair_has_its_words(
    base: Verification, reference: Verification, said: str | None
) -> None:
    found = judge("t", [base], [reference])
    assert (found.reasons == ()) == (said is None)
    if said is not None:
        assert any(said in reason for reason in found.reasons)


def test_what_was_not_measured_is_unknown() -> None:
    found = judge("t", [check(1, "a", "b")], [Verification(problem="x")])
    assert (found.base_failed, found.reference_passed) == (None, None)
