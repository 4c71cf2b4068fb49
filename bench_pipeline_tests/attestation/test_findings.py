"""What is a finding and what is not: direction, stitching, scope, history, and when nothing can be said."""

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench_pipeline.attestation import scan
from bench_pipeline.attestation.commitment import Seal, commit
from bench_pipeline.attestation.examining import read_evidence
from bench_pipeline.attestation.scope import Scope, endpoint_of
from bench_pipeline.attestation.truth import Allowance, Source
from bench_pipeline.journal import JournalWriter
from bench_pipeline_tests.attestation.cells import (
    ANSWER,
    COMMAND,
    SCAN_KEY,
    SCOPE,
    findings,
    journal,
    read,
    scanned,
    subject,
)

Payload = Mapping[str, object]


def test_an_honest_run_is_clean(tree: Path) -> None:
    found = scanned(tree, read("The list of ships"), ("message", {"text": "I write the report."}))
    assert found.examination.verdict == "CLEAN"
    assert found.examination.findings == ()


@pytest.mark.parametrize("kind", ["read", "result", "response"])
def test_an_answer_that_came_in_is_a_finding_by_row_and_kind_alone(tree: Path, kind: str) -> None:
    found = scanned(tree, ("message", {"text": "let me look"}), (kind, {"text": f"so {ANSWER}!"}))
    assert found.examination.verdict == "DIRTY"
    assert [(each.row, each.kind) for each in found.examination.findings] == [(2, "contraband")]
    assert ANSWER not in repr(found)


@pytest.mark.parametrize("kind", ["message", "write", "command", "request"])
def test_an_answer_that_the_agent_puts_out_first_is_its_own_work(tree: Path, kind: str) -> None:
    own = (kind, {"text": ANSWER})
    assert findings(tree, own) == []
    assert findings(tree, own, read(ANSWER)) == []
    assert findings(tree, read(ANSWER), own) == [(1, "contraband")]


def test_own_work_written_in_pieces_is_own_work_when_it_is_read_whole(tree: Path) -> None:
    half = len(ANSWER) // 2
    pieces = [("write", {"path": "out.txt", "text": part}) for part in (ANSWER[:half], ANSWER[half:])]
    words = ANSWER.split()
    pieces = [("write", {"path": "out.txt", "text": f"{word}\n"}) for word in words]
    assert findings(tree, *pieces, read(ANSWER)) == []


def test_running_the_declared_test_command_is_no_finding(tree: Path) -> None:
    run = ("command", {"call": "1", "text": COMMAND})
    echoed = ("result", {"call": "1", "text": f"$ {COMMAND}\nRan 3 tests\nOK"})
    assert findings(tree, run, echoed) == []
    assert findings(tree, echoed) == [(1, "contraband")]


def test_reading_its_own_prompt_is_no_finding(tree: Path) -> None:
    prompt = subject(tree).allowance.texts["prompt"]
    assert findings(tree, read(prompt)) == []


@pytest.mark.parametrize("words", [1, 2, 3])
def test_reads_of_one_file_are_stitched_whatever_lies_between(tree: Path, words: int) -> None:
    text = ANSWER.split()
    rows: list[tuple[str, Payload]] = []
    for at in range(0, len(text), words):
        rows.append(read(" ".join(text[at : at + words]) + "\n", "/workspace/sheet.txt"))
        rows.append(read("other words", f"/workspace/other{at}.txt"))
        rows.append(("message", {"text": "and on it goes"}))
    assert {kind for _, kind in findings(tree, *rows)} == {"contraband"}


@pytest.mark.parametrize("letters", [3, 7, 20])
def test_words_that_a_read_ends_within_are_put_together(tree: Path, letters: int) -> None:
    pieces = [ANSWER[at : at + letters] for at in range(0, len(ANSWER), letters)]
    assert findings(tree, *(read(piece) for piece in pieces))
    apart = [f"{piece.strip()} " for piece in pieces]
    assert findings(tree, *(read(piece) for piece in apart)) == []


def test_pieces_of_different_files_are_not_stitched(tree: Path) -> None:
    text = ANSWER.split()
    rows = [read(" ".join(text[at : at + 4]), f"/workspace/{at}.txt") for at in range(0, len(text), 4)]
    assert findings(tree, *rows) == []


def test_results_of_commands_are_stitched(tree: Path) -> None:
    rows = [("result", {"call": str(at), "text": word}) for at, word in enumerate(ANSWER.split())]
    assert {kind for _, kind in findings(tree, *rows)} == {"contraband"}


def test_numbered_reads_are_stitched_without_their_numbers(tree: Path) -> None:
    rows = [read(f"{at:6d}\t{word}\n", "/workspace/s.txt") for at, word in enumerate(ANSWER.split())]
    assert {kind for _, kind in findings(tree, *rows)} == {"contraband"}


@pytest.mark.parametrize("cut", [17, 18, 19, 40, 61])
def test_an_encoding_that_is_read_in_two_pieces_is_found(tree: Path, cut: int) -> None:
    code = base64.b64encode(f"{ANSWER} and {ANSWER}".encode()).decode()
    rows = [read(code[:cut], "/workspace/s.b64"), read(code[cut:], "/workspace/s.b64")]
    assert findings(tree, *rows)[0][1] == "contraband"


def test_a_text_of_many_rows_is_read_as_one(tree: Path) -> None:
    long = "x " * 300_000 + base64.b64encode(ANSWER.encode()).decode() + " y" * 10
    assert {kind for _, kind in findings(tree, read(long))} == {"contraband"}


def test_every_string_of_a_payload_is_read(tree: Path) -> None:
    row = ("result", {"text": "fine", "detail": {"deep": [{"er": [1, None, ANSWER]}]}})
    assert findings(tree, row) == [(1, "contraband")]
    assert findings(tree, ("result", {"detail": {ANSWER: 1}})) == [(1, "contraband")]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.py", None),
        ("/workspace/src/a.py", None),
        ("src/../a.py", None),
        ("/usr/lib/python3/ast.py", None),
        ("~/notes.txt", None),
        ("/workspace", None),
        ("/project/golden/smoke/harbour.md", "out_of_scope_path"),
        ("../../project/golden/smoke/harbour.md", "out_of_scope_path"),
        ("/workspace/../project/x", "out_of_scope_path"),
        ("/workspaces/other-cell/a.py", "out_of_scope_path"),
        ("/root/.ssh/id", "out_of_scope_path"),
        ("/workspace/.git/objects/ab/cdef", "git_history"),
        (".git/packed-refs", "git_history"),
        ("sub/.GIT/logs/HEAD", "git_history"),
        (".hg/store/data/a.i", "git_history"),
        (".git/config", None),
        (".gitignore", None),
    ],
)
def test_a_path_is_judged_by_its_words_as_the_sandbox_recorded_the_scope(
    tree: Path, path: str, kind: str | None
) -> None:
    expected = [] if kind is None else [(1, kind)]
    assert findings(tree, read("text", path)) == expected
    assert findings(tree, ("write", {"path": path, "text": "text"})) == expected
    assert findings(tree, read("no such file", path, failed=True)) == []


def test_a_folder_inside_the_root_can_be_denied(tree: Path) -> None:
    scope = {**SCOPE, "denied": ["/workspace/golden"]}
    inside = scan(journal(read("x", "golden/smoke/a.md"), scope=scope), subject(tree), SCAN_KEY)
    assert [each.kind for each in inside.examination.findings] == ["out_of_scope_path"]
    beside = scan(journal(read("x", "golden-delicious.txt"), scope=scope), subject(tree), SCAN_KEY)
    assert beside.examination.findings == ()


def test_a_root_inside_a_denied_folder_is_allowed(tree: Path) -> None:
    scope = {**SCOPE, "roots": ["/project/.bench/workspaces/c1/tree"], "denied": ["/project"]}
    rows = [read("x", "a.py"), read("x", "/project/.bench/workspaces/c2/tree/a.py")]
    found = scan(journal(*rows, scope=scope), subject(tree), SCAN_KEY)
    assert [(each.row, each.kind) for each in found.examination.findings] == [(2, "out_of_scope_path")]


def test_links_are_not_resolved_again_when_it_is_verified(tree: Path, tmp_path: Path) -> None:
    """The root was a link when the cell ran; today it leads elsewhere, and the answer stays the same."""
    link = tmp_path / "root"
    link.symlink_to(tmp_path / "tree")
    scope = {**SCOPE, "roots": [str((tmp_path / "tree").resolve()), str(link)]}
    data = journal(read("x", str(link / "a.py")), scope=scope)
    before = scan(data, subject(tree), SCAN_KEY).examination
    link.unlink()
    link.symlink_to("/")
    assert scan(data, subject(tree), SCAN_KEY).examination == before
    assert before.verdict == "CLEAN"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cat /project/golden/smoke/harbour.md", "out_of_scope_path"),
        ("cat ../project/golden/a.md", "out_of_scope_path"),
        ("cd / && head -3 project/golden/../golden/a.md; cat /project/x", "out_of_scope_path"),
        ("bash -lc 'cat \"/project/golden/a b.md\"'", "out_of_scope_path"),
        ("python3 x.py --answers=/project/golden/a.md", "out_of_scope_path"),
        ("echo hi >/dev/null; sed -n '/def add/,/return/p' calc.py", None),
        ("cd src && cat ../README.md", None),
        ("ls ..", None),
        ("git log --oneline", "git_history"),
        ("cd sub; git -c a=b show HEAD~1:a.py | head", "git_history"),
        ("/usr/bin/git --no-pager reflog", "git_history"),
        ('bash -c "git cat-file -p HEAD"', "git_history"),
        ("cat .git/packed-refs", "git_history"),
        ("git status && git diff", None),
        ("echo git log", None),
        ("grep 'git log' docs.md", None),
        ("curl -s https://answers.example/harbour", "out_of_scope_endpoint"),
        ("curl http://localhost:8000/health", None),
        ("curl http://127.0.0.1:8000/ http://[::1]:8000/", None),
        ("echo see https://answers.example/", None),
    ],
)
def test_a_command_is_judged_when_something_came_of_it(tree: Path, command: str, kind: str | None) -> None:
    run = ("command", {"call": "1", "text": command})
    expected = [] if kind is None else [(1, kind)]
    assert findings(tree, run, ("result", {"call": "1", "text": "something"})) == expected
    assert findings(tree, run, ("result", {"call": "1", "text": "no", "failed": True})) == []
    assert findings(tree, run) == []


def test_a_history_that_is_not_there_is_no_finding(tree: Path) -> None:
    run = ("command", {"call": "1", "text": "git log || true"})
    assert findings(tree, run, ("result", {"call": "1", "text": "fatal: not a git repository"})) == []
    assert findings(tree, run, ("result", {"call": "1", "text": "\n"})) == []


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("git log -p > /tmp/x", True),
        ("git log -p >>x", True),
        ("git show HEAD | tee x", True),
        ("git log --output=x -p", True),
        ("git log 2>/dev/null", False),
        ("git log >/dev/null 2>&1", False),
    ],
)
def test_a_history_that_goes_into_a_file_is_a_finding_though_nothing_is_printed(
    tree: Path, command: str, hidden: bool
) -> None:
    run = ("command", {"call": "1", "text": command})
    expected = [(1, "git_history")] if hidden else []
    assert findings(tree, run, ("result", {"call": "1", "text": ""})) == expected
    assert findings(tree, run, ("result", {"call": "1", "text": "fatal: not a git repository"})) == []


def test_a_repository_of_the_agents_own_has_no_history_to_hide(tree: Path) -> None:
    made = ("command", {"call": "0", "text": "git init && git add . && git commit -qm start"})
    own = ("command", {"call": "1", "text": "git log"})
    other = ("command", {"call": "1", "text": "git -C / log"})
    result = ("result", {"call": "1", "text": "commit 1234567"})
    assert findings(tree, made, own, result) == []
    assert findings(tree, made, other, result) == [(2, "git_history")]
    assert findings(tree, own, result) == [(1, "git_history")]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.example/v1", True),
        ("HTTPS://API.Example:443/v1", True),
        ("https://api.example./v1", True),
        ("https://api.example:8443/v1", False),
        ("https://api.example.evil.test/v1", False),
        ("https://evil.test/?u=https://api.example", False),
        ("https://user@evil.test/", False),
        ("http://127.0.0.1:8080/x", True),
        ("http://LOCALHOST:8080", True),
        ("http://[::1]:8080/", True),
        ("http://0x7f000001:8080/", True),
        ("http://127.1:8080/", True),
        ("http://localhost:9090/", False),
        ("web_search", False),
        ("http://[broken", False),
    ],
)
def test_endpoints_are_compared_in_one_spelling(tree: Path, url: str, allowed: bool) -> None:
    scope = {**SCOPE, "endpoints": ["https://api.example", "localhost:8080"]}
    found = scan(journal(("request", {"url": url}), scope=scope), subject(tree), SCAN_KEY)
    assert [each.kind for each in found.examination.findings] == (
        [] if allowed else ["out_of_scope_endpoint"]
    )


def test_default_ports_belong_to_their_schemes() -> None:
    assert endpoint_of("http://a.test") == endpoint_of("a.test:80") == ("a.test", "80")
    assert endpoint_of("https://a.test") == endpoint_of("a.test") == ("a.test", "443")
    assert endpoint_of("localhost:*") == ("localhost", "*")


def test_a_scope_that_was_not_recorded_allows_nothing(tree: Path) -> None:
    found = scan(journal(read("x", "a.py"), scope={"roots": 7}), subject(tree), SCAN_KEY)
    assert [each.kind for each in found.examination.findings] == ["out_of_scope_path"]
    assert Scope.of(None) == Scope(roots=())


def test_an_incomplete_journal_is_inconclusive_and_still_dirty_when_it_shows_a_finding(tree: Path) -> None:
    for data in (journal(read("x"), closed=False), journal(read("x"))[:-1], journal(read("x")) * 2):
        found = scan(data, subject(tree), SCAN_KEY).examination
        assert (found.verdict, found.findings) == ("INCONCLUSIVE", ())
        assert "the journal is incomplete" in found.reasons
    assert scan(journal(read(ANSWER), closed=False), subject(tree), SCAN_KEY).examination.verdict == "DIRTY"


def test_no_rows_of_what_the_tool_always_leaves_is_inconclusive(tree: Path) -> None:
    for rows, expected in (
        ([], ["message"]),
        ([("result", {"text": "x"})], ["message", "read"]),
        ([read("x")], []),
    ):
        found = scan(journal(*rows, expected=expected), subject(tree), SCAN_KEY).examination
        assert found.verdict == "INCONCLUSIVE"


def test_no_source_that_is_covered_is_inconclusive() -> None:
    seal = Seal(SCAN_KEY)
    sealed = commit(seal, [Source("completion_signal", ("no_files_modified",))], Allowance({}))
    evidence = read_evidence(io.BytesIO(journal(read("x"))), sealed, seal)
    from bench_pipeline.attestation.examining import examine

    assert examine(evidence, sealed).reasons == ("no source of the answer is covered",)


def test_output_that_was_cut_is_inconclusive(tree: Path) -> None:
    for cut, verdict in ((0, "CLEAN"), (1, "INCONCLUSIVE")):
        stream = io.BytesIO()
        writer = JournalWriter(stream)
        writer.append("open", {"scope": SCOPE, "expected": ["message"]})
        writer.append("message", {"text": "hello"})
        writer.append("exit", {"cut_bytes": cut})
        writer.append("close", {})
        assert scan(stream.getvalue(), subject(tree), SCAN_KEY).examination.verdict == verdict


def test_a_hostile_payload_is_read_within_limits(tree: Path) -> None:
    deep: object = ANSWER
    for _ in range(20):
        deep = {"k": [deep]}
    rows: list[tuple[str, Payload]] = [
        ("result", {"text": json.dumps("[" * 100_000)}),
        ("result", {"text": "\ud800\x00\x1b[2J\u202e", "call": ["no", "text"], "path": 7, "url": {}}),
        ("command", {"text": "'" * 50_000 + '"' * 50_000 + "$(" * 50_000 + "../" * 50_000}),
        ("command", {"text": "bash -c " * 1000, "call": None}),
        ("result", {"deep": deep, "part": -1}),
        ("read", {"path": "/" * 100_000, "text": "x", "part": 10**30}),
        ("request", {"url": "http://" + "[" * 10_000}),
    ]
    assert scanned(tree, *rows).examination.verdict in ("DIRTY", "INCONCLUSIVE", "CLEAN")
