"""The report in a real browser: it needs nothing but itself, fits two widths, and shows hostile text as text."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_pipeline.reports.page import html_page
from bench_pipeline_tests.browser import Browser, browser
from bench_pipeline_tests.reports.documents import (
    FIRST,
    empty_project,
    ledger_route,
    report_at,
    score,
    write_outcomes,
    write_rows,
)

pytestmark = pytest.mark.services

HOSTILE = "<script>document.title='taken'</script>\"'&<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that shows the report of a project whose setups have hostile names."""
    folder = tmp_path_factory.mktemp("report")
    bench = empty_project(folder / "project")
    results = {
        HOSTILE: {"one": [True], "two": [None]},
        "plan-then-build/cautious-large": {"one": [True], "two": [True]},
    }
    write_outcomes(bench, results, cost_usd=1.25)
    rows = [score(HOSTILE, 1, 0.5), score(HOSTILE, 2, 0.0, reasons=["safety"])]
    for row in rows:
        write_rows(bench, "composite_scores", [row], attempt=row["attempt"])
    routes = [
        ledger_route("RouterOnly", "router/with-a-long-name", 0),
        ledger_route("Baseline", "baseline", 1),
    ]
    write_rows(bench, "ledger_summaries", routes)
    report = folder / "report.html"
    report.write_text(html_page(report_at(bench, FIRST)), encoding="utf-8")
    with browser(folder) as opened:
        opened.open(report)
        yield opened


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (420, True)])
def test_the_page_fits_its_window_and_what_is_wide_scrolls_by_itself(
    page: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    page.look(width=width, dark=dark)
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
    clipped = page.driver.execute_script(
        "return [...document.querySelectorAll('.scroll:has(table)')].filter(box => box.scrollWidth > box.clientWidth)"
        ".map(box => box.querySelector('caption').textContent)"
    )
    assert width < 1000 or clipped == [], "whole tables are seen on a desk"
    assert page.picture(tmp_path / "page.png").stat().st_size > 10_000


def test_nothing_is_complained_about_and_no_request_leaves_the_page(page: Browser) -> None:
    assert page.complaints() == []
    assert [address for address in page.requests() if not address.startswith("file:")] == []


def test_a_hostile_name_is_text(page: Browser) -> None:
    assert page.driver.title != "taken"
    assert page.driver.execute_script("return document.scripts.length + document.images.length") == 0
    assert HOSTILE in page.driver.execute_script("return document.body.innerText")


def test_colours_follow_the_reader_and_paper_is_white(page: Browser) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    page.look(dark=False)
    light = page.driver.execute_script(colour)
    page.look(dark=True)
    assert page.driver.execute_script(colour) != light
    page.look(dark=True, printed=True)
    assert page.driver.execute_script(colour) in {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}


def test_every_plot_says_in_words_what_it_shows(page: Browser) -> None:
    plots = page.driver.execute_script(
        "return [...document.querySelectorAll('svg')].map(plot => plot.getAttribute('role') + ' ' +"
        " (plot.querySelector('title')?.textContent ?? plot.getAttribute('aria-label') ?? ''))"
    )
    assert plots
    assert all(said.startswith("img ") and len(said) > len("img ") for said in plots)
