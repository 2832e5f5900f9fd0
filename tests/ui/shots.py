"""Takes the pictures of `docs/dashboard.md`: `python -m tests.ui.shots FOLDER`."""

import sys
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, FloatRect, ViewportSize

from tests.fakes.admin import call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until
from tests.ui.browser import READY, SIGNED_IN, Visit, running_browser
from tests.ui.demo import running_demo, send
from tests.ui.pool import failing

SIZE: Final = ViewportSize(width=1280, height=1000)
HIGHEST: Final = 1550
COLOURS: Final = 64
SERVED: Final = 200
SHOWN: Final = ("overview", "trouble", "keys", "clients", "routing", "pins", "cache")


def take(browser: Browser, group: GatewayGroup, folder: Path, names: tuple[str, ...]) -> None:
    """Write a picture of each page, and of a request that fell back."""
    context = browser.new_context(viewport=SIZE)
    visit = Visit(context.new_page(), group.admin_url)
    visit.page.add_init_script(SIGNED_IN)
    for name in names:
        visit.open(name, READY[name])
        shoot(visit, folder / f"dashboard-{name}.png")
    visit.open(f"requests/{fall_back(group)}", "#skipped")
    visit.page.locator("#ranking summary").first.click()
    shoot(visit, folder / "dashboard.png")
    visit.check()
    context.close()


def shoot(visit: Visit, path: Path) -> None:
    """Write a picture of the page, from its top."""
    height = visit.page.evaluate("document.body.scrollHeight")
    clip = FloatRect(x=0, y=0, width=SIZE["width"], height=min(height, HIGHEST))
    visit.page.set_viewport_size(ViewportSize(width=SIZE["width"], height=HIGHEST))
    # Flat colours: a third of the size, and nobody sees the difference.
    taken = Image.open(BytesIO(visit.page.screenshot(clip=clip))).convert("RGB")
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def fall_back(group: GatewayGroup) -> str:
    """Have the pool well again and send a request whose first call fails; the id of its record."""
    call(group.admin_url, "DELETE", "/api/fallback/penalty-inspector")
    until(lambda: send(group, "auto", failing(500)) == SERVED)
    until(lambda: bool(fell_back(group)))
    return fell_back(group)[0]


def fell_back(group: GatewayGroup) -> list[str]:
    """The ids of requests that another route than the first has answered."""
    items = call(group.admin_url, "GET", "/api/requests?kind=notable").body["items"]
    tried = [one for one in items if one["combo"] == "auto" and one["attempts"] > 1]
    return [one["id"] for one in tried if one["status"] == SERVED]


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
