"""Documents that a page is drawn from: held as they came, altered, or not to be had."""

import re
from typing import Any, Final

from playwright.sync_api import APIResponse, Page, Route

LOST: Final = {"error": {"code": "redis_lost", "message": "Redis did not answer"}}
SAMPLE: Final = re.compile(r"(?m)^(gw_\S+(?:\{.*\})?) (\S+)$")
MARK: Final = "~"


class Documents:
    """Stands between a page and the gateway from the first call on.

    Args:
        page: of the dashboard.

    Attributes:
        how: `held` as they came first, `altered` in every figure and word, or `lost`.
    """

    def __init__(self, page: Page) -> None:
        self.how = "held"
        self._held: dict[tuple[str, str, str | None], APIResponse] = {}
        page.route(re.compile(r"/(api/.*|readyz|metrics)$"), self._answer)

    def _answer(self, route: Route) -> None:
        asked = route.request
        if self.how == "lost":
            route.fulfill(status=503, json=LOST)
            return
        name = (asked.method, asked.url, asked.post_data)
        if name not in self._held:
            self._held[name] = route.fetch()
        held = self._held[name]
        if self.how == "held":
            route.fulfill(response=held)
        elif asked.url.endswith("/metrics"):
            route.fulfill(response=held, body=SAMPLE.sub(r"\g<1> 4\g<2>", held.text()))
        else:
            route.fulfill(response=held, json=altered(held.json()))


def altered(value: Any) -> Any:
    """A document with another value at every place."""
    match value:
        case dict():
            return {name: altered(one) for name, one in value.items()}
        case list():
            return [altered(one) for one in value]
        case bool():
            return not value
        case int() | float():
            return value + 7
        case str():
            return f"{value}{MARK}"
    return value
