"""Takes the pictures in ``docs/images`` anew: the example project, run, in the real web server and a real browser.

``python -m bench_pipeline_tests.screenshots docs/images``. What belongs here: which pages, and when they are ready to
be looked at. What does not: what they have to show (tests).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from selenium.webdriver.common.by import By

from bench_pipeline_tests.browser import Browser, browser
from bench_pipeline_tests.cli.test_ui import Server, command, environment, launch, serving, wait_for

EXAMPLE = Path(__file__).parents[1] / "data"
# A picture of documentation is looked at, not kept for ever: what is larger slows each clone.
MOST_BYTES = 150_000
BROKEN = """\
apiVersion: bench.ber.run/v1alpha1
kind: Evaluation
attempts: many
tools: [{tool: predictions, model: careful-largo}]
"""
# Whatever folder this works in is shown as this one.
SHOWN_FOLDER = "/home/you"


class Page(NamedTuple):
    """A page of the UI: its picture, its path, words that it shows once it is ready, and the height of the window."""

    picture: str
    path: str
    ready: tuple[str, ...]
    height: int


_GROUPS = ",".join(f"global@global:{group}" for group in ("evaluations", "golden", "report"))
PAGES = (
    Page("graph.png", f"/asset-groups?expanded={_GROUPS}", ("evaluation_cells", "bench_report"), 700),
    Page("verdicts.png", "/assets/verdicts?view=overview", ("Column name", "verify_key", "At 02:17 AM"), 720),
    Page(
        "partitions.png", "/assets/verdicts?view=partitions&partition=1%7Csmoke", ("hit_rate", "stretch"), 860
    ),
)
FAILED_CHECK = Page(
    "failed-check.png",
    "/assets/evaluation_cells?view=checks&checkDetail=documents",
    ("draft.yaml:3", "Target materialization"),
    640,
)


def main(folder: Path) -> None:
    """Write every picture into a folder."""
    with tempfile.TemporaryDirectory(prefix="bench-pictures-") as name:
        work = Path(name)
        root = Path(shutil.copytree(EXAMPLE, work / "demo", ignore=shutil.ignore_patterns(".bench")))
        _bench(root, "clean-run", "init-key")
        _bench(root, "run")
        _bench(root, "report", "--out", str(work / "report.html"))
        (work / "browser").mkdir()
        with browser(work / "browser") as page:
            page.look(width=1180, height=860)
            page.open(work / "report.html")
            _take(page, work, folder / "report.png")
            with serving(root) as server:
                for each in PAGES:
                    _look(page, server, each)
                    _take(page, work, folder / each.picture)
                # `bench run` refuses it; a run from the UI goes on with what is whole, and its check says what is not.
                (root / "evaluations" / "draft.yaml").write_text(BROKEN)
                launch(server, "smoke")
                _look(page, server, FAILED_CHECK)
                _take(page, work, folder / FAILED_CHECK.picture)


def _bench(root: Path, *words: str) -> None:
    key = {"BENCH_AUDIT_KEY_FILE": str(root.parent / "audit.key")}
    subprocess.run(command(root, *words), check=True, env={**environment(), **key}, stdout=sys.stderr)


def _look(page: Browser, server: Server, wanted: Page) -> None:
    page.look(width=1280, height=wanted.height)
    page.open(f"http://127.0.0.1:{server.port}{wanted.path}")
    body = page.driver.find_element(By.TAG_NAME, "body")
    wait_for(lambda: all(word in body.text for word in wanted.ready))


def _take(page: Browser, work: Path, picture: Path) -> None:
    page.driver.execute_script(
        """
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (texts.nextNode())
            texts.currentNode.nodeValue = texts.currentNode.nodeValue.replaceAll(arguments[0], arguments[1]);
        """,
        str(work),
        SHOWN_FOLDER,
    )
    size = page.picture(picture, whole=False).stat().st_size
    assert size <= MOST_BYTES, f"{picture.name} has {size} bytes"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
