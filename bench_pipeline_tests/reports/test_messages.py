"""Messages to people: what they say, and that names in them stay names."""

import re
import shlex

from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.reports.messages import (
    FailedRun,
    Flip,
    Night,
    command_line,
    flips_message,
    inert,
    night_message,
)

# What mentions, markup, links and line breaks are made of.
HOSTILE = st.text() | st.sampled_from(
    [
        "@everyone",
        "<!channel>",
        "[x](https://e.example)",
        "**b**",
        "`$(id)`",
        "a\nb",
        "&lt;@here&gt;",
        "\u202ex",
    ]
)


def flip(gate: str, *, passes: bool) -> Flip:
    return Flip(
        gate, passes, "score 0.9, 3 of 3 tasks passed", "score 0, 2 of 3 tasks passed", "why", "bench x"
    )


@given(HOSTILE)
def test_no_mention_markup_link_or_line_break_is_left_in_a_text_of_others(text: str) -> None:
    assert not re.search(r"[@<>&`*~|\[\]\\#\n\r\x00-\x1f\u202a-\u202e]|//", inert(text))


@given(HOSTILE, HOSTILE)
def test_a_command_to_copy_is_one_command_whatever_the_names(one: str, two: str) -> None:
    assert shlex.split(command_line("bench", one, two)) == ["bench", inert(one), inert(two)]


def test_an_ordinary_name_is_said_as_it_is() -> None:
    assert inert("codex-1.2/gpt-5_mini/high") == "codex-1.2/gpt-5_mini/high"


def test_gates_are_told_with_both_numbers_and_those_that_fail_first() -> None:
    message = flips_message("mine", [flip("A", passes=True), flip("B", passes=False)])
    assert (message.title, message.bad) == ("mine: 2 gates flipped, 1 to failed", True)
    numbers = "Now score 0, 2 of 3 tasks passed; before score 0.9, 3 of 3 tasks passed. More: bench x"
    assert message.text.splitlines() == [
        f"B: passed before, fails now. why. {numbers}",
        f"A: failed before, passes now. why. {numbers}",
    ]
    assert not flips_message("mine", [flip("A", passes=True)]).bad


def test_many_gates_are_counted_in_one_message_that_fits_any_service() -> None:
    message = flips_message("mine", [flip(f"{n:02}" * 300, passes=False) for n in range(500)])
    assert message.title == "mine: 500 gates flipped, 500 to failed"
    assert len(message.text) < 1900


def test_a_night_is_one_message_over_all_its_runs() -> None:
    failed = tuple(FailedRun(job, "transient", "r1", "the disk is full") for job in ("evaluate", "report"))
    message = night_message("mine", Night("2026-05-01 02:17", failed, ("verdicts: 1|smoke",)))
    assert message.title == "mine: the night that began at 2026-05-01 02:17 failed"
    first, _, what_to_do, left = message.text.splitlines()
    assert first == "evaluate failed, transient: the disk is full. More: bench ui, run r1"
    assert left == "left failed: verdicts: 1¦smoke"
    assert what_to_do.startswith("bench doctor")
