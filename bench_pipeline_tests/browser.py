"""Debian's Chromium for tests of what people look at: pages of ours and the UI of Dagster.

What belongs here: starting a browser that reaches this machine and nothing else, and asking it what it showed, fetched
and complained about. What does not: what a page has to show (the tests).
"""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_ARGUMENTS = (
    "--headless",
    # Tests run as root, in containers without a GPU and with a small /dev/shm.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--force-color-profile=srgb",
    # Whatever is asked for outside of this machine is an address that nobody has.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
# The tab that a browser starts with.
_OWN_PAGES = "chrome://"
_LOAD_S = 120


@dataclass(frozen=True)
class Browser:
    """A running browser with one tab; ``driver`` is Selenium's, for clicking and waiting."""

    driver: Chrome

    def open(self, url: str | Path) -> None:
        """Load a page, or a file, and wait until it is loaded."""
        self.driver.get(url.absolute().as_uri() if isinstance(url, Path) else url)

    def look(
        self, *, width: int = 1280, height: int = 900, dark: bool = False, printed: bool = False
    ) -> None:
        """Show the page at this size, to somebody who prefers dark colours or holds it on paper."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = {"media": "print" if printed else "", "features": [scheme]}
        self._command("Emulation.setEmulatedMedia", media)

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        """A PNG of the page, all of it or what fits the window, in a file."""
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self._command("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        path.write_bytes(base64.b64decode(self._command("Page.captureScreenshot", options)["data"]))
        return path

    def complaints(self) -> list[str]:
        """What stands in the console since the last call: errors, warnings and refused requests."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call, the page's own among them."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and not event["params"]["documentURL"].startswith(_OWN_PAGES)
        ]

    def _command(self, name: str, parameters: dict[str, Any]) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile and downloads are in a folder, ended with the block."""
    options = ChromeOptions()
    options.binary_location = _program("chromium")
    for argument in (*_ARGUMENTS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, Service(_program("chromedriver"), log_output=str(folder / "driver.log")))
    try:
        driver.set_page_load_timeout(_LOAD_S)
        yield Browser(driver)
    finally:
        driver.quit()


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not installed: apt-get install chromium chromium-driver"
    return found
