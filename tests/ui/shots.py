"""Takes the pictures of `docs/dashboard.md`: `python -m tests.ui.shots FOLDER`."""

import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, FloatRect, ViewportSize

from tests.fakes.admin import call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until
from tests.ui.browser import READY, SIGNED_IN, Visit, running_browser
from tests.ui.demo import running_demo

SIZE: Final = ViewportSize(width=1280, height=1000)
HIGHEST: Final = 1700
SHOWN: Final = ("overview", "trouble", "keys", "clients", "routing", "pins", "cache")


def take(browser: Browser, group: GatewayGroup, folder: Path, names: tuple[str, ...]) -> None:
    """Write a picture of each page."""
    context = browser.new_context(viewport=SIZE)
    visit = Visit(context.new_page(), group.admin_url)
    visit.page.add_init_script(SIGNED_IN)
    for name in names:
        visit.open(name, READY[name])
        height = visit.page.evaluate("document.body.scrollHeight")
        clip = FloatRect(x=0, y=0, width=SIZE["width"], height=min(height, HIGHEST))
        visit.page.set_viewport_size(ViewportSize(width=SIZE["width"], height=HIGHEST))
        visit.page.screenshot(path=folder / f"dashboard-{name}.png", clip=clip)
    visit.check()
    context.close()


def main(folder: Path) -> None:
    """Start everything, take the pictures, and end it."""
    with (
        SimulatedProvider({"any_key": True, "any_model": True}) as provider,
        running_demo(provider, workers=2) as group,
        running_browser() as browser,
    ):
        until(lambda: bool(call(group.admin_url, "GET", "/api/snapshot").body["version"]))
        take(browser, group, folder, SHOWN)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
