"""A browser for each module, a tab for each test; a module says by `group` what it looks at."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.fakes.group import GatewayGroup
from tests.ui.browser import DESK, SIGNED_IN, Visit, running_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Not for longer: its loop stands in the way of asynchronous tests in the same process.
    with running_browser() as running:
        yield running


@pytest.fixture
def stranger(browser: Browser, group: GatewayGroup) -> Iterator[Visit]:
    """A tab where nobody has signed in."""
    context = browser.new_context(viewport=DESK)
    visit = Visit(context.new_page(), group.admin_url)
    yield visit
    visit.check()
    context.close()


@pytest.fixture
def visit(stranger: Visit) -> Visit:
    """A tab where somebody has, and kept it."""
    stranger.page.add_init_script(SIGNED_IN)
    return stranger
