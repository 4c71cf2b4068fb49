"""A prompt that gives the fix away is found, and a drafted one does not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.tasks import RemoteSource, Task, TaskEnvironment, TaskVerify
from bench_pipeline.tasks.leaks import Leak, draft_prompt, find_leaks

FIX = "abc1234567890abcdef1234567890abcdef12345"
PULL = "https://github.com/o/r/pull/12"


def patch(path: str, *lines: str) -> bytes:
    added = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}".encode()


def task(prompt: str, reference: bytes = b"", tests: bytes = b"") -> Task:
    source = RemoteSource("https://github.com/o/r", "0" * 40, FIX, PULL)
    verify = TaskVerify("true", tests)
    environment = TaskEnvironment()
    return Task("t", "smoke", Path("t"), source, None, environment, prompt, "p.md", verify, reference, None)


@pytest.mark.parametrize(
    "prompt",
    [
        f"See {FIX}.",
        f"Like in {FIX[:7]}!",
        f"Like in {FIX[:10].upper()}",
        f"One\n({PULL})",
        f"One {PULL}/files#diff-1",
        "https://gitlab.example.org/o/r/-/merge_requests/3",
        "https://example.org/o/r/commit/0123456",
    ],
)
def test_the_place_of_the_fix_is_a_fatal_leak(prompt: str) -> None:
    (leak,) = find_leaks(task(prompt))
    assert leak.fatal
    assert leak.line == prompt.count("\n") + 1


@pytest.mark.parametrize(
    "prompt",
    [
        "Make `abcdef0` work; also abc1234x, 1234567 and 0000000.",
        f"{FIX[:6]} is too short to be a commit",
        "See https://example.org/manual/pull-handles",
        "",
        "Straße \u2028 \x85",
    ],
)
def test_words_that_only_look_like_it_are_none(prompt: str) -> None:
    assert find_leaks(task(prompt)) == ()


def test_a_link_to_a_forge_is_worth_a_look() -> None:
    assert [leak.fatal for leak in find_leaks(task("https://github.com/o/r/issues/3"))] == [False]


LINES = (
    "total = sum(price for price in prices)",
    "return round(total, 2) if total else 0.0",
    "}",
    "import os",
)


def test_one_line_of_the_reference_is_worth_a_look_and_all_of_it_is_fatal() -> None:
    reference = patch("a.py", *LINES)
    one = find_leaks(task("Use\n\n    total  =  sum(price for price\tin prices)\nimport os\n}\n", reference))
    assert one == (Leak(False, 3, "holds a line that the reference adds"),)
    whole = find_leaks(task("\n".join(f"+ {line}" for line in LINES), reference))
    assert [leak.fatal for leak in whole] == [True, True]


def test_sentences_of_the_documentation_and_lines_of_tests_are_no_solution() -> None:
    sentences = [f"Apples are counted one by one, number {n}." for n in range(5)]
    found = find_leaks(
        task("\n".join(sentences), patch("docs/a.md", *sentences[:4]), patch("t.py", *sentences[4:]))
    )
    assert len(found) == 5
    assert not any(leak.fatal for leak in found)


MESSAGE = f"""Count apples once (#12)

The tree was walked twice, see #7. Regression of {FIX[:12]}; the facade stays.
More at https://github.com/o/r/pull/12/files and {PULL}.

    apples(["a", "a"])  # 1

Fixes #3, #4
Closes: o/r#5
Fixes https://github.com/o/r/issues/3
Signed-off-by: A <a@example.org>
Co-authored-by: B <b@example.org>
Change-Id: I0123456789abcdef
(cherry picked from commit {FIX})
"""


def test_a_draft_keeps_what_was_asked_and_nothing_of_where_the_fix_is() -> None:
    draft = draft_prompt(MESSAGE)
    assert draft.prompt.startswith("Count apples once\n\nThe tree was walked twice,")
    assert "the facade stays." in draft.prompt
    assert '    apples(["a", "a"])  # 1' in draft.prompt
    for gone in ("#", "http", FIX[:7], "example.org", "Fixes", "Closes", "cherry", "I0123456789"):
        assert gone not in draft.prompt.replace("# 1", "")
    assert find_leaks(task(draft.prompt)) == ()
    assert len(draft.removed) == 12


@pytest.mark.parametrize(
    ("message", "prompt"),
    [
        ("fix: handle None\n", "fix: handle None\n"),
        ("Fixes: handle None", "Fixes: handle None\n"),
        ("One\r\n\r\nTwo\r\n", "One\n\nTwo\n"),
        ("#12", ""),
        ("", ""),
        ("Signed-off-by: A\n\nSigned-off-by: B", "Signed-off-by: A\n"),
    ],
)
def test_plain_messages_stay_as_they_are(message: str, prompt: str) -> None:
    assert draft_prompt(message).prompt == prompt


@given(st.text(), st.text())
def test_no_message_drafts_a_prompt_that_names_the_fix(before: str, after: str) -> None:
    draft = draft_prompt(f"{before} {FIX} {after}\n{PULL}\n{before}")
    assert FIX not in draft.prompt
    assert PULL not in draft.prompt
    assert not any(leak.fatal for leak in find_leaks(task(draft.prompt)))
