"""A prompt that gives the fix away is found, and a drafted one does not."""

import dataclasses
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


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/o/r",
        "https://github.com/O/R/issues/3",
        "http://user@github.com/o/r.git",
        "https://github.com/o/r/blob/main/a.py",
    ],
)
def test_a_link_into_the_tasks_own_repository_is_fatal(url: str) -> None:
    assert [leak.fatal for leak in find_leaks(task(f"See {url}"))] == [True]


@pytest.mark.parametrize(
    "remote", ["git@github.com:o/r.git", "ssh://git@github.com:22/o/r", "https://token@github.com/o/r/"]
)
def test_however_the_remote_is_written_its_pages_are_known(remote: str) -> None:
    known = dataclasses.replace(
        task("https://github.com/o/r/issues/3"), source=RemoteSource(remote, "0" * 40)
    )
    assert [leak.fatal for leak in find_leaks(known)] == [True]


@pytest.mark.parametrize(
    "url", ["https://github.com/o/rest", "https://github.com/other/r", "https://gitlab.com/o/r"]
)
def test_a_link_to_another_place_on_a_forge_is_worth_a_look(url: str) -> None:
    assert [leak.fatal for leak in find_leaks(task(url))] == [False]


def test_a_remote_on_this_machine_is_no_link() -> None:
    local = dataclasses.replace(task("Look at ../shop"), source=RemoteSource("../shop", "0" * 40))
    assert find_leaks(local) == ()


LINES = (
    "total = sum(price for price in prices)",
    "return round(total, 2) if total else 0.0",
    "}",
    "import os",
)
REFERENCE = patch("a.py", *LINES)
QUOTED = "Use\n\n    total  =  sum(price for price\tin prices)\nimport os\n}\n"


def test_one_long_line_of_the_reference_is_fatal_however_it_is_spaced_or_broken() -> None:
    assert [(leak.fatal, leak.line) for leak in find_leaks(task(QUOTED, REFERENCE))] == [(True, 3)]
    broken = "Just write `total = sum(price\nfor price in prices);` there."
    assert [(leak.fatal, leak.line) for leak in find_leaks(task(broken, REFERENCE))] == [(True, 1)]


def test_a_line_that_stands_in_the_base_tells_nothing_new(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("def f(prices):\n    total = sum(price for price in prices)\n")
    assert [leak.fatal for leak in find_leaks(task(QUOTED, REFERENCE), tmp_path)] == [False]
    (tmp_path / "old.py").write_text("total = sum(price for price in prices if price)\n")
    assert [leak.fatal for leak in find_leaks(task(QUOTED, REFERENCE), tmp_path)] == [True]


SHORT = (
    "count = len(names) + 1",
    "price = round(price, 2)",
    "total = price * count",
    "names.remove(name, 1)",
)


def test_a_short_line_is_worth_a_look_and_several_are_fatal() -> None:
    reference = patch("a.py", *SHORT)
    one = find_leaks(task(f"Not `{SHORT[0]}`.", reference))
    assert one == (Leak(False, 1, "holds a line that the reference adds"),)
    three = find_leaks(task("\n".join(SHORT[:3]), reference))
    assert [leak.fatal for leak in three] == [True, True, True]


def test_a_short_line_that_is_the_whole_reference_is_fatal() -> None:
    found = find_leaks(task(f"Make it {SHORT[0]}", patch("a.py", SHORT[0], "}")))
    assert [leak.fatal for leak in found] == [True]


@pytest.mark.parametrize(
    "line",
    [
        "def month_end(day: date, months: int = 0) -> date:",
        "export async function monthEnd(day, months) {",
        "pub(crate) fn month_end(day: Date, months: i32) -> Date {",
        "from collections.abc import Iterable, Mapping",
        "# The last day is not always the 30th (see the table).",
        "// x = y is not what happens for the last day",
        "The last day of a month is never its 31st day.",
    ],
)
def test_what_a_prompt_may_have_to_say_is_worth_a_look_only(line: str) -> None:
    found = find_leaks(task(f"Add this:\n{line}\n", patch("a.py", line)))
    assert [leak.fatal for leak in found] == [False]


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
    assert draft.prompt.startswith("Count apples once\n\nThe tree was walked twice. Regression of; the")
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
        ("It rounds up, see #7.", "It rounds up.\n"),
        ("It rounds up (see #7), then down", "It rounds up, then down\n"),
        ("It rounds up, see #7", "It rounds up\n"),
        ("As in #7: it rounds up", "As in: it rounds up\n"),
        ("Fixes #7, it rounds up", "it rounds up\n"),
        ("0.1 + 0.2 was 0.30000000000000004 on 20250131", "0.1 + 0.2 was 0.30000000000000004 on 20250131\n"),
        ("Round up: a, b", "Round up: a, b\n"),
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
