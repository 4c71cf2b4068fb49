"""The browser that other tests look through sees what it has to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_pipeline_tests.browser import Browser, browser

pytestmark = pytest.mark.services
PAGE = """<!doctype html><html lang="en"><title>Page</title>
<style>body {background: white} @media (prefers-color-scheme: dark) {body {background: black}}
@media print {body {background: yellow}}</style><p>Words</p>"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


def test_a_quiet_page_asks_for_itself_alone_and_is_seen_as_it_was_asked_to_be(
    opened: Browser, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    opened.open(page)
    assert opened.complaints() == []
    assert opened.requests() == [page.as_uri()]
    shown = []
    for look in ({}, {"dark": True}, {"printed": True}):
        opened.look(width=400, height=300, **look)
        shown.append(opened.picture(tmp_path / "page.png").read_bytes())
    assert all(picture.startswith(b"\x89PNG") for picture in shown)
    assert len(set(shown)) == 3


def test_a_page_that_calls_out_and_fails_is_found_out(opened: Browser, tmp_path: Path) -> None:
    page = tmp_path / "loud.html"
    page.write_text(
        f'{PAGE}<img alt="" src="http://elsewhere.invalid/x.png"><script>console.error("no")</script>'
    )
    opened.open(page)
    assert "http://elsewhere.invalid/x.png" in opened.requests()
    complaints = " ".join(opened.complaints())
    assert "no" in complaints
    assert "ERR_NAME_NOT_RESOLVED" in complaints
