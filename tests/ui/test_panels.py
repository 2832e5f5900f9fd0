"""The panels of the dashboard on a pool in trouble: they say what the API says, each by itself."""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.fakes.admin import call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until
from tests.ui.altered import Documents
from tests.ui.browser import DESK, PAGES, READ, READY, SIGNED_IN, Visit
from tests.ui.demo import rest_groq, running_demo, send
from tests.ui.figures import shortest
from tests.ui.pool import CHAT, HOSTILE

pytestmark = [pytest.mark.ui, pytest.mark.timeout(90)]

HELD: Final = "/api/fallback/penalty-inspector"
REFRESH_MS: Final = 5100


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with running_demo(provider, workers=2) as running:
        yield running


def told_by(visit: Visit, path: str, page: str) -> Any:
    """Open a page; the document that it is drawn from."""
    with visit.page.expect_response(f"**{path}") as answered:
        visit.open(page, READY[page])
    visit.page.get_by_role("button", name="Pause refresh").click()
    return answered.value.json()


def test_rests_breakers_and_penalties_are_those_of_the_document(visit: Visit) -> None:
    rows = told_by(visit, HELD, "trouble")["rows"]
    rests = [(row["route"], one) for row in rows for one in row["cooldowns"]]
    breakers = [(row["route"], one) for row in rows for one in row["breakers"]]
    assert len(rests) >= 2
    assert len(breakers) == 1

    shown = {row[0].split("\n")[0]: row for row in visit.rows("Keys that rest")}
    assert shown.keys() == {one["key"] for _, one in rests}
    for route, rest in rests:
        _, about, why, _, ends, _ = shown[rest["key"]]
        assert about == (route if rest["scope"] == "target" else "all its models")
        assert why.split("\n")[0] == rest["reason"].replace("_", " ")
        assert ends.startswith(("in 24 min", "in 25 min"))
    ((route, breaker),) = breakers
    ((key, about, state, failures, _),) = visit.rows("Open breakers")
    assert (key.split("\n")[0], about) == (breaker["key"], route)
    assert (state, failures) == (breaker["state"].replace("_", " "), str(breaker["failures"]))
    held = [row for row in rows if row["penalty"]["value"]]
    points = visit.page.locator("#penalties td:nth-child(2) span, #penalties td:nth-child(3) span")
    assert [one.get_attribute("title") for one in points.all()] == [
        shortest(row["penalty"][name]) for row in held for name in ("value", "rate_limit_factor")
    ]
    failed = [one["request_id"] for row in rows for one in row["recent_errors"]]
    links = visit.page.locator("#failures a").all()
    assert sorted(str(link.get_attribute("href")) for link in links) == sorted(
        f"#/requests/{name}" for name in failed
    )


def test_limit_that_is_used_up_is_told_with_its_figures(visit: Visit, group: GatewayGroup) -> None:
    send(group, "google/gemini-2.5-flash", "one more")  # minutes pass while tests run
    for turn in range(4):
        send(group, "google/gemini-2.5-flash", f"more {turn}")
    items = told_by(visit, "/api/limits", "trouble")["items"]
    (window,) = [
        one["rpm"]
        for row in items
        if row["key"] == "google-a"
        for one in row["windows"]
        if one["rpm"]["limit"]
    ]

    (row,) = [row for row in visit.rows("Limits used up, or nearly") if "google-a" in row[0]]

    assert f"{window['used']} of {window['limit']} " in row[2]
    assert "used up" in row[2]
    assert row[3] == "within a minute"


def test_workers_are_those_of_the_document(visit: Visit) -> None:
    items = told_by(visit, "/api/workers", "overview")["items"]

    rows = visit.rows("Workers")

    assert [row[0].split("\n")[0] for row in rows] == [one["id"] for one in items]
    for row, one in zip(rows, items, strict=True):
        state = one["state"]
        assert f"process {state['pid']}" in row[0]
        assert row[1] == state["status"]
        named = ("in_flight", "config_version", "file_version", "snapshot_version")
        assert row[3:7] == [str(state[name]) for name in named]


def test_glance_counts_what_the_panels_list(visit: Visit) -> None:
    visit.open("trouble", READY["trouble"])
    names = ("Keys that rest", "Limits used up, or nearly", "Penalties and benches")
    rests, limits, penalties = (len(visit.rows(name)) for name in names)

    page = visit.open("overview", READY["overview"])

    tiles = page.locator("#holds .tile strong").all_inner_texts()
    counts = [int(text.split()[0]) for text in tiles]
    assert (counts[0], counts[4]) == (rests, penalties)
    assert counts[2] <= limits
    assert "look" in tiles[0]


def test_panel_that_cannot_be_read_says_how_old_it_is_and_leaves_the_others(visit: Visit) -> None:
    page = visit.open("trouble", READY["trouble"])
    lost = {"error": {"code": "redis_lost", "message": "Redis did not answer"}}
    page.route("**/api/limits", lambda route: route.fulfill(status=503, json=lost))
    page.route(f"**{HELD}", lambda route: route.fulfill(json={"rows": 1}))

    page.get_by_role("button", name="Refresh now").click()

    expect(page.locator("#used-up").get_by_role("alert")).to_contain_text("Redis did not answer")
    expect(page.locator("#used-up")).to_contain_text("What is shown here is old: it was read at")
    expect(page.locator("#rests")).to_contain_text("not as this page expects it")
    expect(page.locator("#refused")).to_contain_text("No key is refused.")
    page.unroute("**/api/limits")
    page.get_by_role("button", name="Refresh now").click()
    expect(page.locator("#used-up").get_by_role("alert")).to_have_count(0)
    visit.take_complaints()


def test_document_that_does_not_come_holds_up_no_other_panel(visit: Visit) -> None:
    visit.page.route("**/api/limits", lambda _: None)

    page = visit.open("trouble", "#rests table")

    expect(page.locator("#used-up")).to_contain_text("Reading …")
    expect(page.locator("#refused")).to_contain_text("No key is refused.")


def test_refresh_moves_nothing(visit: Visit) -> None:
    page, known = visit.page, {}

    def as_before(route: Route) -> None:
        """Give what came first: a rest that ends meanwhile is no fault of the page."""
        url = route.request.url
        if url not in known:
            known[url] = route.fetch().json()
        route.fulfill(json=known[url])

    page.route("**/api/**", as_before)
    for name in ("trouble", "overview", "cache"):
        visit.open(name, READY[name])
        # What was drawn last is painted first; that moves, and is no refresh.
        page.evaluate("new Promise((then) => requestAnimationFrame(() => setTimeout(then)))")
        page.evaluate(
            "window.moved = 0; new PerformanceObserver((list) => list.getEntries()"
            ".forEach(({value}) => { window.moved += value; })).observe({type: 'layout-shift'})"
        )
        at = page.locator("main section").last.bounding_box()
        for _ in range(2):
            with page.expect_response("**/api/**"):
                page.get_by_role("button", name="Refresh now").click()
        page.wait_for_load_state("networkidle")

        after = page.locator("main section").last.bounding_box()
        assert at is not None
        assert after is not None
        assert at["y"] == after["y"]
        assert page.evaluate("window.moved") < 0.01


def test_key_is_let_serve_again_only_after_a_yes(visit: Visit, group: GatewayGroup) -> None:
    def resting() -> set[str]:
        rows = call(group.admin_url, "GET", HELD).body["rows"]
        return {one["key"] for row in rows for one in row["cooldowns"]}

    page = visit.open("trouble", READY["trouble"])
    button = page.get_by_role("button", name="Forget what is held against groq-spare")
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert "groq-spare" in resting()
    button.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Forget").press("Enter")

    expect(page.locator(".told")).to_contain_text("What was held against groq-spare is forgotten.")
    assert "groq-spare" not in resting()
    expect(page.locator("#rests")).not_to_contain_text("groq-spare")
    rest_groq(group)  # as it was, for other tests


def test_pins_are_those_of_the_document_and_can_be_removed(
    visit: Visit, group: GatewayGroup
) -> None:
    items = told_by(visit, "/api/pins?*", "pins")["items"]
    assert len(items) >= 3
    page, pin = visit.page, items[0]
    assert [row[:5] for row in visit.rows("Pins")] == [
        [one["combo"], one["scope"], one["key"], one["route"], str(one["requests"])]
        for one in items
    ]

    page.get_by_role("button", name=f"Remove the pin {pin['key']}").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()

    expect(page.locator(".told")).to_contain_text("Removed: 1 pins.")
    left = call(group.admin_url, "GET", "/api/pins").body["items"]
    assert pin["key"] not in {one["key"] for one in left}
    expect(page.get_by_role("cell", name=pin["key"])).to_have_count(0)


def test_cache_shows_its_sums_and_its_switch_is_seen_by_another_browser_and_all_workers(
    visit: Visit, group: GatewayGroup, browser: Browser
) -> None:
    context = browser.new_context(viewport=DESK)
    other = Visit(context.new_page(), group.admin_url)
    other.page.add_init_script(SIGNED_IN)
    other.page.clock.install()
    other.open("cache", READY["cache"])
    told = told_by(visit, "/api/cache", "cache")
    page = visit.page
    tiles = page.locator("#stored .tile strong").all_inner_texts()
    named = ("entries", "stored_bytes", "hits", "misses", "saved_tokens")
    assert tiles == ["on", *(f"{told[name]:,}" for name in named)]

    page.get_by_label("Answers are stored").uncheck()
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("dialog")).to_contain_text("Answers are stored: true → false")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".told")).to_contain_text("The change is in force.")

    expect(page.locator("#stored .tile").first).to_contain_text("off")
    for _ in range(2):
        with other.page.expect_response("**/api/cache"):
            other.page.clock.run_for(REFRESH_MS)
    expect(other.page.locator("#stored .tile").first).to_contain_text("off")
    expect(other.page.get_by_label("Answers are stored")).not_to_be_checked()
    other.check()
    context.close()
    until(lambda: is_reached(group))


def test_strategy_that_a_browser_sets_is_that_of_every_worker(
    visit: Visit, group: GatewayGroup
) -> None:
    page = visit.open("routing/coding", READY["routing"])
    page.get_by_label("Strategy").select_option("fastest")
    page.get_by_role("button", name="Review 1 change").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#told")).to_contain_text("The change is in force.")

    until(lambda: is_reached(group))
    ranked = call(group.admin_url, "POST", "/api/explain", {"request": {**CHAT, "model": "coding"}})
    assert ranked.body["strategy"] == "fastest"
    expect(page.get_by_label("Strategy")).to_have_value("fastest")


def is_reached(group: GatewayGroup) -> bool:
    """Whether both workers have the newest configuration, as each says itself."""
    told = call(group.admin_url, "GET", "/api/workers").body
    states = [one["state"] for one in told["items"] if one["alive"]]
    return [one["config_version"] for one in states] == [told["config_version"]] * 2


def test_conflict_is_told_and_what_was_typed_stays(visit: Visit, group: GatewayGroup) -> None:
    page = visit.open("routing/auto", READY["routing"])
    page.get_by_role("button", name="Pause refresh").click()
    page.get_by_label("Lowers a score from").fill("0.35")
    other = call(group.admin_url, "PUT", "/api/settings/headroom", {"floor": 0.15})
    assert other.status == 200

    review = page.locator("#headroom").get_by_role("button", name="Review 1 change")
    review.click()
    page.get_by_role("button", name="Apply").click()

    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed the configuration")
    assert "412" in visit.take_complaints()[0]
    expect(page.get_by_label("Down to")).to_have_value("0.15")
    expect(page.get_by_label("Lowers a score from")).to_have_value("0.35")
    review.click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".told")).to_contain_text("The change is in force.")
    held = call(group.admin_url, "GET", "/api/settings/headroom").body
    assert (held["ramp_start"], held["floor"]) == (0.35, 0.15)


def test_value_that_does_not_fit_is_told_and_stays_to_be_mended(visit: Visit) -> None:
    page = visit.open("routing/auto", READY["routing"])
    page.get_by_label("Down to").fill("7")
    page.locator("#headroom").get_by_role("button", name="Review 1 change").click()
    page.get_by_role("button", name="Apply").click()

    expect(page.locator(".told").get_by_role("alert")).to_contain_text("floor")
    expect(page.get_by_label("Down to")).to_have_value("7")
    assert "400" in visit.take_complaints()[0]
    page.locator("#headroom").get_by_role("button", name="Discard").click()
    expect(page.get_by_label("Down to")).not_to_have_value("7")


def test_thresholds_and_the_gate_of_a_combo_are_changed_after_a_question(
    visit: Visit, group: GatewayGroup
) -> None:
    page = visit.open("routing/coding", READY["routing"])
    page.get_by_label("Failures in a row that open a breaker").fill("5")
    page.get_by_label("A 429 counts for it").check()
    page.locator("#limits").get_by_role("button", name="Review 2 changes").click()
    expect(page.get_by_role("dialog")).to_contain_text("open a breaker: 3 → 5")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".told")).to_contain_text("The change is in force.")
    expect(page.locator("#cut")).to_contain_text("5 failures in a row")
    page.get_by_label("Rejects an answer without an end").check()
    page.locator("#gate").get_by_role("button", name="Review 1 change").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".told")).to_contain_text("The change is in force.")

    until(lambda: is_reached(group))
    held = call(group.admin_url, "GET", "/api/settings/thresholds").body["breaker"]
    gate = call(group.admin_url, "GET", "/api/combos/coding").body["response"]
    assert (held["threshold"], held["count_rate_limit"]) == (5, True)
    assert gate["require_terminal"] is True


def test_no_text_of_any_answer_becomes_html(visit: Visit, group: GatewayGroup) -> None:
    # Whatever ran before: something was changed, or there is no text of who did.
    assert call(group.admin_url, "PUT", "/api/settings/headroom", {"floor": None}).status == 200

    def poison(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=poisoned(answer.json()))

    visit.page.route("**/api/**", poison)
    for name in PAGES:
        page = visit.open(name, READY[name])
        if name == "explain":
            page.get_by_role("button", name="Explain", exact=True).click()
            page.wait_for_selector("#ranking")
        for summary in page.locator("summary").all():
            summary.click()
        assert page.locator("img, b, script:not([src])").count() == 0, name
        if name == "cache":  # its only text is a choice between two
            continue
        assert "onerror" in page.locator("main").inner_text(), name
    visit.check()


def poisoned(value: Any) -> Any:
    """A document whose every text is hostile."""
    match value:
        case dict():
            return {name: poisoned(one) for name, one in value.items()}
        case list():
            return [poisoned(one) for one in value]
        case str():
            return json.loads(json.dumps(HOSTILE))
    return value


def test_every_panel_moves_with_what_it_is_drawn_from_and_says_when_it_cannot_be_read(
    visit: Visit, group: GatewayGroup
) -> None:
    recent = call(group.admin_url, "GET", "/api/requests?kind=notable").body["items"]
    tried = next(one["id"] for one in recent if one["attempts"])
    assert call(group.admin_url, "PUT", "/api/combos/batch", {"strategy": "priority"}).status == 200
    page = visit.page
    page.clock.set_fixed_time(time.time())  # what only time moves is not told apart from data
    visit.open()
    for path in (*PAGES, "routing/batch", "clients/web-app", f"requests/{tried}"):
        documents = Documents(page)
        page.evaluate("document.querySelector('#output').remove()")
        visit.open(path, READY.get(path, READ))
        read_anew(page, path)
        seen = panels_of(page)
        assert seen, path
        assert page.get_by_role("alert").count() == 0, path

        documents.how = "altered"
        read_anew(page, path)
        told = panels_of(page)
        assert page.get_by_role("alert").count() == 0, path
        assert {name for name in seen if told.get(name) == seen[name]} == set(), path

        documents.how = "lost"
        read_anew(page, path)
        expect(page.get_by_role("alert").first).to_contain_text("Redis did not answer")
        if path != "explain":  # which shows an answer to a question, or why there is none
            assert panels_of(page).keys() == told.keys()
        page.unroute_all()
    assert {one for one in visit.take_complaints() if "503" not in one} == set()


def read_anew(page: Page, path: str) -> None:
    """Have a page read all that it shows."""
    reads = page.locator("#output").get_attribute("data-reads")
    if path == "explain":
        with page.expect_response("**/api/explain"):
            page.get_by_role("button", name="Explain", exact=True).click()
        expect(page.locator("#answer")).not_to_contain_text("Asking …")
        return
    page.get_by_role("button", name="Refresh now").click()
    expect(page.locator("#output")).not_to_have_attribute("data-reads", str(reads))


def panels_of(page: Page) -> dict[str, str]:
    """The text of each panel of a page, by its name."""
    told: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll(':is(#output, #answer) section[id]')]"
        ".map((panel) => [panel.id, panel.textContent]))"
    )
    return told
