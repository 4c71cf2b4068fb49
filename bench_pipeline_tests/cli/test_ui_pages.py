"""Pages of the UI in a real browser: a partition launched by hand, and what there is to read of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from bench_pipeline.tables import meaning
from bench_pipeline_tests.browser import Browser, browser
from bench_pipeline_tests.cli.test_ui import Server, asked_by_people, project, server, wait_for

__all__ = ["project", "server"]

pytestmark = pytest.mark.services


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    (tmp_path / "browser").mkdir()
    with browser(tmp_path / "browser") as opened:
        opened.look(width=1500, height=1000)
        yield opened


def shown(page: Browser, words: str) -> list[WebElement]:
    """What is on the page and says just these words."""
    found = page.driver.find_elements(By.XPATH, f'//*[normalize-space(.)="{words}"][not(*)]')
    return [element for element in found if element.is_displayed()]


def click(page: Browser, words: str) -> None:
    wait_for(lambda: bool(shown(page, words)))
    shown(page, words)[-1].click()


def read(page: Browser, *sentences: str) -> None:
    """Wait until the page says all of this."""
    body = page.driver.find_element(By.TAG_NAME, "body")
    wait_for(lambda: all(sentence in body.text for sentence in sentences))


def test_a_partition_is_launched_by_hand_and_its_pages_explain_what_came_of_it(
    server: Server, page: Browser
) -> None:
    (server.root / "evaluations" / "broken.yaml").write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Evaluation\nattempts: many\n"
    )
    place = f"http://127.0.0.1:{server.port}"

    page.open(f"{place}/locations/bench_pipeline/jobs/evaluate")
    click(page, "Materialize all…")
    for key in ("1", "smoke"):
        # The first axis that has no key yet, and its list, which closes where one clicks beside it.
        wait_for(lambda: bool(shown(page, "Select a partition or create one")))
        shown(page, "Select a partition or create one")[0].click()
        click(page, key)
        click(page, "Partition selection")
        if not shown(page, "tier"):
            click(page, "Partition selection")
    click(page, "Launch 1 run")
    wait_for(lambda: asked_by_people(server) == ["SUCCESS"])

    page.open(f"{place}/assets/verdicts")
    read(page, "What came of every planned cell.", meaning("verdicts", "identity"), "Plots")

    page.open(f"{place}/assets/evaluation_cells?view=checks&checkDetail=documents")
    read(page, "documents", "broken.yaml:3", "attempts")
