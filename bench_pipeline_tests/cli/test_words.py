"""Words on the command line that are nearly always a mistake, and text that would act on a terminal."""

import subprocess
import sys

import pytest

from bench_pipeline.cli.output import show
from bench_pipeline.reports.escaping import one_line
from bench_pipeline_tests.cli.calling import call


@pytest.mark.parametrize(
    "words",
    [
        ["run", ""],
        ["run", "models", "--task", ""],
        ["--project", "", "run"],
        ["--project=", "run"],
        ["init", ""],
        ["table", "verdicts", "--columns", ""],
    ],
    ids=" ".join,
)
def test_an_empty_word_is_refused_and_never_means_everything(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """``bench run "$UNSET"`` once ran, and would have paid for, the whole project."""
    assert call(*words) == 2
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "x", "--max-cost", "nan"],
        ["run", "x", "--max-cost", "inf"],
        ["run", "x", "--max-cost", "1e400"],
        ["run", "x", "--max-cost", "-1"],
        ["run", "x", "--attempt", "99999999999999999999"],
        ["table", "verdicts", "--limit", "99999999999999999999"],
    ],
    ids=" ".join,
)
def test_a_number_that_cannot_be_reckoned_with_is_a_usage_error(words: list[str]) -> None:
    assert call(*words) == 2


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-"])
def test_a_closed_standard_stream_is_no_fault(closed: str) -> None:
    command = f"exec {sys.executable} -m bench_pipeline tool list {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("hostile", ["a\x1b]0;title\x07", "a\nb", "\u202eb", "\u061cb", "\x9b31m"])
def test_no_key_and_no_value_acts_on_a_terminal_or_begins_a_line(hostile: str) -> None:
    for shown in (show(hostile), show({hostile: hostile}), show([hostile]), one_line(hostile)):
        assert shown.isprintable()
