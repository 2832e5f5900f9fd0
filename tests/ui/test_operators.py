"""What operators do in the browser: clients and their keys, draining, and who changed what."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Page, Route, expect

from tests.fakes.admin import ENVIRON, TOKEN, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until
from tests.ui.browser import AXE, PHONE, READY, Visit
from tests.ui.demo import has_reported
from tests.ui.pool import CHAT

pytestmark = [pytest.mark.ui, pytest.mark.timeout(90)]

OF_FILE: Final = {"id": "of-file", "key_sha256": "0" * 64, "limits": {"rpm": 50}}
ALICE: Final = "another-admin-token-of-more-than-32-characters"


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    config = {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "s"}],
        "models": [{"provider": "a", "model": "m0"}],
        "combos": [{"id": name, "members": ["a/m0"]} for name in ("auto", "other")],
        "default_combo": "other",
        "auth": {"mode": "keys"},
        "clients": [OF_FILE],
    }
    environ = {**ENVIRON, "GW_ADMIN_TOKEN_ALICE": ALICE}
    with GatewayGroup(config, workers=2, environ=environ) as running:
        until(lambda: has_reported(running, 2))
        yield running
        running.stop()


def ask_as(group: GatewayGroup, key: str) -> int:
    """Send a request with the key of a client; its status."""
    request = urllib.request.Request(  # noqa: S310
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(CHAT).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        return fault.code


def read_client(group: GatewayGroup, name: str) -> Any:
    return call(group.admin_url, "GET", f"/api/clients/{name}").body


def make(group: GatewayGroup, name: str) -> str:
    """Make a client through the API; its key."""
    return str(call(group.admin_url, "POST", "/api/clients", {"id": name}).body["key"])


def say_yes(page: Page, word: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=word, exact=True).click()


def is_kept(page: Page, secret: str) -> bool:
    """Whether a text is anywhere in the page or in what it stored."""
    stored = page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    fields = page.evaluate("[...document.querySelectorAll('input, textarea')].map((x) => x.value)")
    return secret in page.content() or secret in stored or secret in fields


def test_client_is_made_after_a_yes_and_its_key_is_shown_once(
    visit: Visit, group: GatewayGroup
) -> None:
    page = visit.open("clients", READY["clients"])
    page.get_by_text("Make a client").click()
    page.get_by_label("Id", exact=True).fill("web-app")
    page.get_by_label("Requests a minute").fill("7")
    page.get_by_label("Combos it may name").fill("auto, other")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("It may do 7 requests a minute.")
    page.keyboard.press("Escape")
    assert call(group.admin_url, "GET", "/api/clients/web-app").status == 404
    page.get_by_role("button", name="Make it …").click()
    say_yes(page, "Make it")

    key = page.locator("#secret").inner_text()
    assert ask_as(group, key) == 200
    made = read_client(group, "web-app")
    assert (made["limits"]["rpm"], made["combos"]) == (7, ["auto", "other"])
    expect(page.get_by_role("link", name="web-app")).to_be_visible()
    row = next(row for row in visit.rows("Clients") if row[0].startswith("web-app"))
    assert row[1:4] == ["taken", "7 requests a minute", "auto\nother"]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == key
    page.get_by_role("button", name="I have it, hide it").click()
    assert not is_kept(page, key)


def test_key_that_is_shown_goes_with_the_page(visit: Visit, group: GatewayGroup) -> None:
    make(group, "rotated")
    visit.page.add_init_script(AXE.read_text())
    page = visit.open("clients/rotated", "#client dl")
    page.get_by_label("The key before is taken for").select_option("an hour")
    page.get_by_role("button", name="Give it another key").click()
    expect(page.get_by_role("dialog")).to_contain_text("The key of now is taken for an hour more.")
    assert visit.find_faults() == []
    say_yes(page, "Rotate")
    key = page.locator("#secret").inner_text()
    expect(page.locator("#client")).to_contain_text("taken until")
    assert ask_as(group, key) == 200
    assert visit.find_faults() == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert not is_kept(page, key)
    page.go_back()
    expect(page.get_by_role("heading", name="Client rotated")).to_be_visible()
    assert not is_kept(page, key)


def test_client_is_revoked_only_after_a_yes(visit: Visit, group: GatewayGroup) -> None:
    key = make(group, "leaking")
    page = visit.open("clients/leaking", "#client")
    button = page.get_by_role("button", name="Revoke all")
    button.press("Enter")
    page.keyboard.press("Enter")  # what is chosen beforehand means no
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert ask_as(group, key) == 200

    button.press("Enter")
    say_yes(page, "Revoke")

    expect(page.locator(".told").last).to_contain_text("All keys of leaking are refused.")
    until(lambda: ask_as(group, key) == 401)
    expect(page.locator("#client .badge")).to_have_text("refused")
    page.get_by_role("button", name="Remove the client").click()
    say_yes(page, "Remove")
    expect(page.locator("main")).to_contain_text("There is no client leaking (any more).")
    expect(page.get_by_role("button", name="Revoke all")).to_have_count(0)
    visit.take_complaints()  # 404


def test_two_operators_at_once_do_not_overwrite_each_other(
    visit: Visit, group: GatewayGroup
) -> None:
    key = make(group, "contested")
    page = visit.open("clients/contested", "#client")
    page.get_by_role("button", name="Pause refresh").click()
    other = call(group.admin_url, "PUT", "/api/clients/contested", {"limits": {"rpm": 9}})
    assert other.status == 200
    page.get_by_role("button", name="Revoke all").click()
    say_yes(page, "Revoke")

    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed the configuration")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done.")
    assert ask_as(group, key) == 200
    expect(page.locator("#client")).to_contain_text("9 requests a minute")
    page.get_by_label("Tokens a minute").fill("5000")
    call(group.admin_url, "PUT", "/api/clients/contested", {"limits": {"rpm": 8}})
    review = page.get_by_role("button", name="Review 1 change")
    review.click()
    say_yes(page, "Apply")
    expect(page.get_by_role("alert")).to_contain_text("what you typed is still here")
    expect(page.get_by_label("Requests a minute")).to_have_value("8")
    review.click()
    say_yes(page, "Apply")
    expect(page.locator(".told").last).to_contain_text("The change is in force.")
    limits = read_client(group, "contested")["limits"]
    assert (limits["rpm"], limits["tpm"]) == (8, 5000)
    assert ["412" in one for one in visit.take_complaints()] == [True, True]


def test_change_whose_answer_is_lost_is_not_told_to_be_undone(
    visit: Visit, group: GatewayGroup
) -> None:
    make(group, "unheard")
    page = visit.open("clients/unheard", "#client dl")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/revoke", lose)
    page.get_by_role("button", name="Revoke all").click()
    say_yes(page, "Revoke")

    expect(page.get_by_role("alert")).to_contain_text("It is not known whether it was changed")
    expect(page.locator("#client .badge")).to_have_text("refused")
    assert "ERR_FAILED" in visit.take_complaints()[0]


def test_limit_that_is_emptied_is_none_and_the_file_can_be_gone_back_to(
    visit: Visit, group: GatewayGroup
) -> None:
    page = visit.open("clients/of-file", "#client")
    page.get_by_label("Requests a minute").fill("")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("dialog")).to_contain_text("50 → no limit")
    say_yes(page, "Apply")
    expect(page.locator("#client")).to_contain_text("none")
    assert read_client(group, "of-file")["limits"]["rpm"] is None

    page.get_by_role("button", name="Go back to the file").click()
    say_yes(page, "Go back")

    expect(page.get_by_label("Requests a minute")).to_have_value("50")
    assert read_client(group, "of-file")["limits"]["rpm"] == 50


def busy(route: Route) -> None:
    """What the gateway says of its workers, were each of them to serve three requests now."""
    answer = route.fetch()
    told = answer.json()
    for worker in told["items"]:
        worker["state"]["in_flight"] = 3
    route.fulfill(response=answer, json=told)


def test_worker_is_drained_and_takes_part_again(visit: Visit, group: GatewayGroup) -> None:
    def drained() -> set[str]:
        items = call(group.admin_url, "GET", "/api/workers").body["items"]
        return {one["id"] for one in items if one["drained_since_ms"]}

    page = visit.open("drain", READY["drain"])
    names = [row[0].split("\n")[0] for row in visit.rows("Workers")]
    button = page.get_by_role("button", name=f"Drain {names[0]}")
    button.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("1 of 2 living workers stay in use.")
    page.keyboard.press("Escape")
    assert drained() == set()

    button.press("Enter")
    say_yes(page, "Drain")
    expect(page.locator(".told")).to_contain_text(f"{names[0]} is drained.")
    assert drained() == {names[0]}
    row = page.get_by_role("row").filter(has_text=names[0])
    expect(row).to_contain_text("nothing, it may be stopped")
    page.route("**/api/workers", busy)
    page.get_by_role("button", name="Refresh now").click()
    expect(row).to_contain_text("waits for 3")
    page.unroute("**/api/workers")
    page.get_by_role("button", name="Drain all").click()
    expect(page.get_by_role("dialog")).to_contain_text("No worker is left")
    say_yes(page, "Drain")
    expect(page.locator("#drain")).to_contain_text("No worker is left")
    assert drained() == set(names)
    page.get_by_role("button", name="Have all take part again").click()
    say_yes(page, "Take part")
    expect(page.locator(".told")).to_contain_text("take part again.")
    assert drained() == set()


def test_changes_are_told_with_who_and_from_which_version_to_which(
    visit: Visit, group: GatewayGroup
) -> None:
    token = f"Bearer {ALICE}"
    body = {"floor": 0.11}
    changed = call(group.admin_url, "PUT", "/api/settings/headroom", body, authorization=token)
    version = changed.body["config_version"]
    call(group.admin_url, "DELETE", "/api/pins?combo=auto")

    page = visit.open("audit", READY["audit"])

    pins, headroom = visit.rows("Changes")[:2]
    assert [pins[1].split("\n")[0], headroom[1].split("\n")[0]] == ["admin", "alice"]
    assert headroom[2:] == [
        *("PUT/api/settings/headroom", "floor", f"{version - 1} → {version}", "yes, 200")
    ]
    assert pins[4] == f"{version}, as before"
    call(group.admin_url, "POST", "/api/clients", {"id": "noted"})
    page.get_by_role("button", name="Refresh now").click()
    expect(page.locator("#audit tbody tr").first).to_contain_text("/api/clientsnoted")
    assert ALICE not in page.content()
    assert TOKEN not in page.content()
    page.get_by_label("Filter").fill("alice")
    expect(page.locator("#audit tbody tr")).to_have_count(1)


def test_ranking_is_that_of_the_default_combo_also_where_another_is_called_auto(
    visit: Visit,
) -> None:
    page = visit.open("routing", READY["routing"])

    expect(page.get_by_label("Combo", exact=True)).to_have_value("other")
    expect(page.locator("#ranking")).to_contain_text("as a short request to other would be ranked")
