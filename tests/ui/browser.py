"""A real browser on the dashboard, which notes whatever a page should not do."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright

from cluster_gw.server.ui.shell import FOLDER
from tests.fakes.admin import TOKEN

AXE: Final = files("axe_playwright_python") / "axe.min.js"
WITHIN_MS: Final = 10_000
QUIET: Final = frozenset({"log", "info", "debug", "verbose"})
SIGNED_IN: Final = f"sessionStorage.setItem('cluster-gw.token', '{TOKEN}')"
DESK: Final = ViewportSize(width=1280, height=900)
PHONE: Final = ViewportSize(width=360, height=740)

MENU: Final = (FOLDER / "app.js").read_text(encoding="utf-8")
PAGES: Final = tuple(re.findall(r'(?m)^  \{ name: "(\w+)", label: ', MENU))
"""As the menu has them; one that is added is tested as the others are."""
READ: Final = "#output[data-reads]"
READY: Final = dict.fromkeys(PAGES, READ) | {
    "overview": "#keys",
    "requests": "#recent",
    "explain": "#body",
    "keys": "#keys",
    "routing": "#scores",
    "trouble": "#failures",
    "pins": "#pins",
    "cache": "#stored",
    "usage": "#used",
}
"""What each page has when it has been read."""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start the machine's own chromium, without a window."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    if binary is None:
        pytest.fail("there is no chromium; Debian: sudo apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One tab.

    Args:
        page: new.
        url: of the operations port.

    Attributes:
        page: the tab.
        complaints: what the console and the page said that is no good news.
        foreign: addresses that were asked for elsewhere.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        page.set_default_timeout(WITHIN_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._see(request.url))

    def open(self, path: str = "", wait_for: str = "h1") -> Page:
        """Go to a page of the dashboard and wait until something is there."""
        self.page.goto(f"{self.url}/ui#/{path}")
        self.page.wait_for_selector(wait_for)
        return self.page

    def take_complaints(self) -> list[str]:
        """Give what was said, which a test expects, and forget it."""
        told, self.complaints = self.complaints, []
        return told

    def check(self) -> None:
        """Fail when something happened that should not."""
        assert self.complaints == []
        assert self.foreign == []
        assert self.page.context.cookies() == []

    def rows(self, label: str) -> list[list[str]]:
        """The cells of a table as they are read."""
        table = self.page.get_by_role("table", name=label, exact=True)
        rows = table.locator("> tbody > tr:not(.more)").all()
        return [[one.strip() for one in row.locator("> td").all_inner_texts()] for row in rows]

    def find_faults(self, *rules: str) -> list[str]:
        """What axe finds against WCAG 2.2 AA and good practice; only by some rules where named."""
        some = {"runOnly": list(rules)} if rules else {}
        options = {"resultTypes": ["violations"], "iframes": False, **some}
        found: Any = self.page.evaluate(
            "async (options) => (await axe.run(document, options)).violations.map("
            "({id, nodes}) => `${id}: ${nodes.map((one) => one.html).join(' | ')}`)",
            options,
        )
        return list(found)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in QUIET:
            self.complaints.append(f"{message.type}: {message.text}")

    def _see(self, url: str) -> None:
        if not url.startswith(f"{self.url}/"):
            self.foreign.append(url)
