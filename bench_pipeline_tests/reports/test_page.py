"""The pages of a report: they stand alone, are well-formed, and hold nothing of others but text."""

import copy
import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.reports.page import html_page, markdown_page, preview
from bench_pipeline_tests.outcomes import tasks
from bench_pipeline_tests.reports.documents import (
    FIRST,
    SECOND,
    empty_project,
    ledger_route,
    report_at,
    score,
    write_outcomes,
    write_rows,
)

XHTML = "{http://www.w3.org/1999/xhtml}"
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "]]>&lt;&#60;&unknown;",
    "a\x00b\x1b[31mred\x07",
    "\u202egnp.exe\u2066\u200f",
    "\ud800 half",
    "| cell | [link](javascript:alert(1)) `code` ``",
    "@everyone see #12 https://evil.example www.evil.example",
    "line\nfeed\r\n# heading\u2028next",
    "-",
    "",
)
TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(HOSTILE)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report in which every lane has something, and something changed in each."""
    bench: Bench = empty_project(tmp_path_factory.mktemp("report") / "project")
    for round_, (moment, last) in enumerate(((FIRST, True), (SECOND, False)), 1):
        results = {"a/b/high": tasks(*[True] * 9, last), "c/d/-": tasks(*[False] * 9, None)}
        write_outcomes(bench, results, of_setup={"a/b/high": {"cost_usd": 0.5}, "c/d/-": {"cost_usd": 0.02}})
        rows = [
            score("agent", 1, 0.5),
            score("agent", 2, 0.7),
            score("agent", 3, 0.0, reasons=["safety 0: t1"]),
        ]
        for row in rows[: round_ + 1]:
            write_rows(bench, "composite_scores", [row], attempt=row["attempt"])
        result = {"setup": "agent", "setup_digest": "agent", "attempt": 1, "tier": "smoke", "task_id": "t1"}
        telemetry = {"telemetry_valid": False, "judged": "not_judged", "known_task": True, "attempted": True}
        failure = {"failure_category": "timeout", "failure_severity": "high"}
        none = {"tests_regressed": 0, "crashes": 0, "orphans": 0}
        write_rows(
            bench, "task_results", [{**result, **telemetry, **failure, **none}], tier="smoke", attempt=1
        )
        board = {
            "comparison": "desk",
            "rank": 1,
            "harness": "evidence",
            "total": 9,
            "attempted": 8,
            "errors": 1,
        }
        state = {"calls": 8, "call_budget": 8, "state": "budget-exhausted"}
        rate = {"rate": 0.5, "rate_low": 0.2, "rate_high": 0.8, "method": "wilson n=8"}
        write_rows(bench, "policy_leaderboard", [{**board, **state, **rate, "correct": 4}])
        pair = {"comparison": "styles", "attempt": 1, "left": "x", "right": "y", "judge": "rubric", "seed": 1}
        wins = {"left_wins": 3, "right_wins": 1, "ties": 1, "no_votes": round_, "inconsistent": 1, "pairs": 5}
        rate = {"left_winrate": 0.7, "winrate_low": 0.3, "winrate_high": 0.9, "notes": ["self-preference"]}
        write_rows(bench, "judge_reports", [{**pair, **wins, **rate}], attempt=1)
        routes = [ledger_route("RouterOnly", "router", 1), ledger_route("Baseline", "baseline", 2, passes=1)]
        write_rows(
            bench,
            "ledger_summaries",
            [*routes, ledger_route("Other", None, 3, avg_partial=None, partial_n=0)],
        )
        made = report_at(bench, moment)
    return made


def parsed(page: str) -> ET.Element:
    """The page as a strict parser reads it; it refuses what is not well-formed."""
    head, _, body = page.partition("<!DOCTYPE html>\n")
    assert head == ""
    return ET.fromstring(body)


def spoilt(value: Any, text: str) -> Any:
    """The document with every text in it, keys aside, replaced by one of others; times stay times."""
    if isinstance(value, dict):
        return {name: item if name in _OURS else spoilt(item, text) for name, item in value.items()}
    if isinstance(value, list):
        return [spoilt(item, text) for item in value]
    return text if isinstance(value, str) else value


# What is never anybody's text: times, and words that this program chooses from a few.
_OURS = {"made_at", "measure", "kind", "state", "outcome_class", "scope"}


def test_the_page_is_well_formed_stands_alone_and_is_small(document: dict[str, Any]) -> None:
    page = html_page(document)
    root = parsed(page)
    assert root.get("lang") == "en"
    assert len(page.encode()) < 200_000
    assert not list(root.iter(f"{XHTML}script"))
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name not in {"src", "srcset", "action", "data"}
            assert name != "href" or value.startswith("#")
    assert "url(" not in page
    assert "@import" not in page
    policies = [meta.get("content") for meta in root.iter(f"{XHTML}meta") if meta.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_headings_are_in_order_tables_have_captions_and_scopes_and_pictures_say_what_they_show(
    document: dict[str, Any],
) -> None:
    root = parsed(html_page(document))
    levels = [int(found.tag[-1]) for found in root.iter() if re.fullmatch(rf"{XHTML}h[1-6]", found.tag)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    ids = [found.get("id") for found in root.iter() if found.get("id")]
    assert len(ids) == len(set(ids))
    tables = list(root.iter(f"{XHTML}table"))
    assert len(tables) >= 10
    for table in tables:
        caption = table.find(f"{XHTML}caption")
        assert caption is not None
        assert caption.text
        assert {cell.get("scope") for cell in table.iter(f"{XHTML}th")} == {"col", "row"}
    pictures = [found for found in root.iter() if found.tag.endswith("svg")]
    assert len(pictures) == 5
    for picture in pictures:
        assert picture.get("role") == "img"
        named = (picture.get("aria-labelledby") or "").split()
        texts = {found.get("id"): found.text for found in picture}
        assert all(texts[name] for name in named)


def test_links_of_the_page_lead_to_its_sections(document: dict[str, Any]) -> None:
    root = parsed(html_page(document))
    ids = {found.get("id") for found in root.iter()}
    targets = [link.get("href", "")[1:] for link in root.iter(f"{XHTML}a")]
    assert len(targets) == 10
    assert set(targets) <= ids


@settings(max_examples=40)
@given(text=TEXTS)
def test_whatever_others_write_stays_text(document: dict[str, Any], text: str) -> None:
    clean, page = html_page(document), html_page(spoilt(copy.deepcopy(document), text))
    elements = {found.tag for found in parsed(page).iter()}
    assert elements <= {found.tag for found in parsed(clean).iter()}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)


@settings(max_examples=40)
@given(text=TEXTS)
def test_whatever_others_write_begins_no_line_link_or_mention_of_the_markdown(
    document: dict[str, Any], text: str
) -> None:
    clean, page = markdown_page(document), markdown_page(spoilt(copy.deepcopy(document), text))
    heads = ("#", "-", "**", "|", "State", "_", "", "No ")
    assert all(
        line.startswith(heads) or " more: `" in line or line[:1].isalpha() for line in page.split("\n")
    )
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
    assert not re.search(r"@|://|www\.", outside)
    assert not re.search(r"(?<!\\)<", outside)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    assert clean.count("\n### ") == page.count("\n### ")


def test_texts_of_any_length_are_cut_with_the_cut_noted(document: dict[str, Any]) -> None:
    page = html_page(spoilt(copy.deepcopy(document), "x" * 300_000))
    assert len(page.encode()) < 2**20
    assert "characters more)" in page
    parsed(page)


def test_unknown_numbers_are_said_to_be_unknown_and_never_zero(document: dict[str, Any]) -> None:
    page = html_page(document)
    assert '<span class="unknown">unknown</span>' in page
    row = next(
        line for line in markdown_page(document).split("\n") if line.startswith("| _unknown_ | north-lab")
    )
    assert row == "| _unknown_ | north-lab | 4 of 5 | 3 of 4 | _unknown_ | _unknown_ |"


def test_no_number_of_the_page_is_over_several_kinds_of_routes(document: dict[str, Any]) -> None:
    """Twelve valid rows of three kinds, seven of them passed: neither sum, nor their ratio, is anywhere."""
    section = next(
        found for found in parsed(html_page(document)).iter(f"{XHTML}section") if found.get("id") == "ledgers"
    )
    text = " ".join("".join(section.itertext()).split())
    assert "4 of 5" in text
    for total in ("12", "15", "7", "58.3", "0.58"):
        assert not re.search(rf"(?<![\d.]){re.escape(total)}", text)


def test_the_numbers_at_the_top_have_their_denominators(document: dict[str, Any]) -> None:
    assert preview(document).split("\n") == [
        "- new verdicts: **0** of 20 cells",
        "- flips: **1** 1 passed before and fail now",
        "- measured: **95.0%** 19 of 20 cells, 1 evaluation",
        "- closed gates: **1** of 3 composite scores",
        "- gaps: **3** each with its command",
    ]


def test_a_report_without_anything_is_a_page_all_the_same(tmp_path: Path) -> None:
    document = report_at(empty_project(tmp_path / "project"), FIRST)
    parsed(html_page(document))
    assert "No earlier report is kept" in markdown_page(document)
    json.dumps(document, allow_nan=False)


def test_the_markdown_fits_a_comment_and_names_where_the_rest_is(tmp_path: Path) -> None:
    bench = empty_project(tmp_path / "project")
    write_outcomes(bench, {f"setup-{number:03}": tasks(True, None) for number in range(60)})
    document = report_at(bench, FIRST)
    assert "48 more: `bench rank nightly`" in markdown_page(document)
    assert "20 more: <code>bench rank nightly</code>" in html_page(document)
