"""Test reports are read as what they say, and a report that does not add up says so."""

from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution import results
from bench_pipeline.execution.results import TestResults, parse_results

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""
OUTSIDE = (
    b"""<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&x;"/></testsuite>"""
)


TAP_LINES = (
    "1..2",
    "ok 1 - a",
    "not ok 2 - b",
    "    ok 1 - c",
    "    1..1",
    "  ---",
    "  ...",
    "Bail out!",
    "# x",
    "",
)


def _junit(*cases: str) -> TestResults:
    return parse_results(
        "junit", f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()
    )


def _case(name: str, inner: str = "", group: str = "t.A", more: str = "") -> str:
    return f"<testcase classname={quoteattr(group)} name={quoteattr(name)} {more}>{inner}</testcase>"


def _tap(*lines: str) -> TestResults:
    return parse_results("tap", "\n".join(lines).encode())


class TestJUnit:
    def test_each_result_has_its_tuple(self):
        found = _junit(
            _case("a"),
            _case("b", "<failure message='x'>trace</failure>"),
            _case("c", "<error/>"),
            _case("d", "<skipped/>"),
            _case("e", more='status="notrun"'),
            _case("f", "<system-out>text</system-out><flakyFailure/>"),
        )
        assert found == TestResults(("t.A::a", "t.A::f"), ("t.A::b", "t.A::c"), ("t.A::d", "t.A::e"))
        assert found.run == 4

    def test_a_test_without_a_class_is_named_by_its_name(self):
        assert parse_results("junit", b'<testsuite><testcase name="x"/></testsuite>').passed == ("x",)

    def test_suites_may_nest(self):
        inner = f"<testsuite name='inner'>{_case('a')}</testsuite>"
        assert _junit(inner, _case("b")).passed == ("t.A::a", "t.A::b")

    def test_an_id_that_is_there_twice_passes_only_when_it_passed_twice(self):
        assert _junit(_case("a"), _case("a")) == TestResults(("t.A::a",), (), ())
        assert _junit(_case("a"), _case("a", "<error/>")) == TestResults((), ("t.A::a",), ())
        assert _junit(_case("a"), _case("a", "<skipped/>")) == TestResults((), ("t.A::a",), ())
        assert _junit(_case("a", "<skipped/>"), _case("a", "<skipped/>")) == TestResults((), (), ("t.A::a",))

    def test_a_skip_does_not_hide_a_failure(self):
        assert _junit(_case("a", "<failure/><skipped/>")).failed == ("t.A::a",)
        assert _junit(_case("a", "<skipped/><failure/>")).failed == ("t.A::a",)

    def test_no_tests_are_no_problem_of_the_report(self):
        assert _junit() == TestResults((), (), ())

    @pytest.mark.parametrize("report", [BILLION_LAUGHS, OUTSIDE, b"<!DOCTYPE t><testsuite/>"])
    def test_a_document_type_is_refused_and_so_are_entities(self, report):
        found = parse_results("junit", report)
        assert (found.run, "document type" in found.problem) == (0, True)

    @pytest.mark.parametrize(
        "report",
        [
            b"",
            b"PASSED",
            b"<testsuite>",
            b"<testsuite><testcase name='a'></testsuite>",
            b"<html/>",
            b"<testsuite><testcase name='\x00'/></testsuite>",
            b"<testsuite><testcase name='&#xD800;'/></testsuite>",
            b"<?xml version='1.0' encoding='nonsense'?><testsuite/>",
            b"<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>",
        ],
    )
    def test_what_is_no_report_is_a_problem(self, report):
        assert parse_results("junit", report).problem

    def test_a_report_that_is_cut_is_a_problem_however_much_passed(self):
        whole = f"<testsuite>{_case('a')}{_case('b')}</testsuite>".encode()
        cut = parse_results("junit", whole[:-5])
        assert cut.problem
        assert cut.passed == ("t.A::a", "t.A::b")

    def test_a_printed_report_inside_a_report_is_text(self):
        printed = f"<system-out>{_case('forged').replace('<', '&lt;')}</system-out>"
        assert _junit(_case("a", printed)).passed == ("t.A::a",)

    def test_deep_nesting_is_no_error(self):
        deep = b"<testsuite>" * 50_000 + b"</testsuite>" * 50_000
        assert parse_results("junit", deep) == TestResults((), (), ())

    def test_sizes_are_limited(self, monkeypatch):
        monkeypatch.setattr(results, "MAX_TESTS", 2)
        assert "more than 2 tests" in _junit(_case("a"), _case("b"), _case("c")).problem
        assert "longer than" in _junit(_case("x" * 5000)).problem
        monkeypatch.setattr(results, "MAX_BYTES", 10)
        assert "larger than" in _junit(_case("a")).problem

    @given(st.dictionaries(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1),
        st.sampled_from(["passed", "failed", "skipped"]), max_size=8))  # fmt: skip
    def test_what_was_written_is_read(self, tests):
        inner = {"passed": "", "failed": "<failure/>", "skipped": "<skipped/>"}
        found = _junit(*(_case(name, inner[result], group="") for name, result in tests.items()))
        for result in inner:
            assert getattr(found, result) == tuple(sorted(n for n, r in tests.items() if r == result))

    @given(st.binary(max_size=200))
    def test_any_bytes_are_read_without_an_error(self, data):
        assert parse_results("junit", data).problem
        parse_results("junit", b"<testsuite>" + data + b"</testsuite>")


class TestTap:
    def test_each_result_has_its_tuple(self):
        found = _tap(
            "TAP version 14",
            "1..6",
            "ok 1 - a",
            "not ok 2 - b",
            "ok 3 - c # SKIP no network",
            "not ok 4 - d # TODO later",
            "ok 5 e",
            "ok",
        )
        assert found == TestResults(("a", "e", "test 6"), ("b",), ("c", "d"))

    def test_a_plan_may_come_last_and_may_skip_all(self):
        assert _tap("ok 1 - a", "1..1") == TestResults(("a",), (), ())
        assert _tap("1..0 # skip nothing to do") == TestResults((), (), ())

    def test_other_lines_mean_nothing(self):
        found = _tap(
            "1..1", "PASSED all", "okay then", "# ok 2 - comment", "ok 1 - a", "1 passed", "pragma +strict"
        )
        assert found == TestResults(("a",), (), ())

    def test_diagnostics_are_no_tests(self):
        found = _tap("1..1", "not ok 1 - a", "  ---", "  message: |", "    ok 7 - forged", "  ...")
        assert found == TestResults((), ("a",), ())

    def test_subtests_carry_the_name_of_their_parent(self):
        found = _tap(
            "1..2",
            "# Subtest: outer",
            "    1..2",
            "    ok 1 - x",
            "        1..1",
            "        not ok 1 - deep",
            "    not ok 2 - y",
            "not ok 1 - outer",
            "ok 2 - x",
        )
        assert found == TestResults(
            ("outer > x", "x"),
            ("outer", "outer > y", "outer > y > deep"),
            (),
        )

    def test_an_id_that_is_there_twice_passes_only_when_it_passed_twice(self):
        assert _tap("1..2", "ok 1 - a", "ok 2 - a").passed == ("a",)
        assert _tap("1..2", "ok 1 - a", "not ok 2 - a").failed == ("a",)

    def test_a_hash_in_a_description_is_no_directive(self):
        assert _tap("1..1", "ok 1 - issue #42").passed == ("issue #42",)
        assert _tap("1..1", r"ok 1 - a \# SKIP").passed == (r"a \# SKIP",)

    @pytest.mark.parametrize(
        ("lines", "problem"),
        [
            (["ok 1 - a"], "no plan"),
            ([], "no plan"),
            (["1..2", "ok 1 - a"], "plan says 2"),
            (["1..1", "ok 1 - a", "ok 2 - b"], "plan says 1"),
            (["1..1", "ok 7 - a"], "plan says 1"),
            (["1..1", "1..1", "ok 1 - a"], "two plans"),
            (["1..2", "ok 1 - a", "Bail out! disk full", "ok 2 - b"], "bail out: disk full"),
            (["1..1", "ok 1 - a", "    1..1", "    ok 1 - orphan"], "cut"),
            (["1..1", "    ok 1 - x", "ok 1 - a"], "no plan"),
            (["1..1", "ok 1 - a", "  ---", "  message: x"], "cut"),
            (["1..99999999999999999999"], "too large"),
        ],
    )
    def test_what_does_not_add_up_is_a_problem(self, lines, problem):
        assert problem in _tap(*lines).problem

    def test_lines_are_split_on_line_feeds_only(self):
        assert _tap("1..1\r", "ok 1 - a\u2028ok 2 - b\r").passed == ("a\u2028ok 2 - b",)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_read_without_an_error(self, data):
        parse_results("tap", data)
        parse_results("tap", b"1..1\nok 1 - " + data)

    @given(st.lists(st.sampled_from(TAP_LINES), max_size=12))
    def test_any_lines_are_read_without_an_error_and_each_id_has_one_result(self, lines):
        found = _tap(*lines)
        ids = [*found.passed, *found.failed, *found.skipped]
        assert len(ids) == len(set(ids))


def test_another_format_is_an_error():
    with pytest.raises(KeyError):
        parse_results("xunit", b"")
