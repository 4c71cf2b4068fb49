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


def shell(command: str) -> "subprocess.CompletedProcess[bytes]":
    """``command`` with ``bench`` as this checkout's, in a shell."""
    bench = f'bench() {{ {sys.executable} -m bench_pipeline "$@"; }}; '
    return subprocess.run(["/bin/sh", "-c", bench + command], capture_output=True, check=False)


@pytest.mark.parametrize(
    "words", ["tool list", "tool list --json", "--help", "sql 'select 1'", "tool show shell"]
)
def test_output_that_a_full_device_refuses_is_one_clear_error(words: str) -> None:
    done = shell(f"bench {words} > /dev/full")
    said = b"bench: writing the output: No space left on device: write it somewhere else\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_an_error_that_cannot_be_written_either_still_has_its_status() -> None:
    assert shell("bench tool list > /dev/full 2> /dev/full").returncode == 1
    assert shell("bench run '' 2> /dev/full").returncode == 2


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("bench sql - <&-", "standard input is closed"),
        (r"printf 'select\n1 \377' | bench sql -", "line 2 holds the byte 0xff, which is not UTF-8"),
        (r"""bench sql "$(printf '\377')" """, "line 1 holds the byte 0xff, which is not UTF-8"),
    ],
)
def test_a_query_that_cannot_be_read_is_a_usage_error(command: str, said: str) -> None:
    done = shell(command)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"bench: reading the query: {said}")


@pytest.mark.parametrize("hostile", ["a\x1b]0;title\x07", "a\nb", "\u202eb", "\u061cb", "\x9b31m"])
def test_no_key_and_no_value_acts_on_a_terminal_or_begins_a_line(hostile: str) -> None:
    for shown in (show(hostile), show({hostile: hostile}), show([hostile]), one_line(hostile)):
        assert shown.isprintable()
