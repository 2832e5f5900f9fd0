"""The dashboard in a real browser, on a real gateway with three routes."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from cluster_gw.supervisor.admin_door import DISABLED
from tests.fakes.admin import TOKEN, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.ui.browser import AXE, PAGES, PHONE, READY, SIGNED_IN, Visit
from tests.ui.figures import check_figures
from tests.ui.pool import CHAT, HOSTILE, failing, fall_back, running_group, serve

pytestmark = [pytest.mark.ui, pytest.mark.timeout(90)]

TOOLS: Final = [{"type": "function", "function": {"name": "look", "parameters": {}}}]


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with running_group(provider) as running:
        yield running


def test_token_opens_the_pages_and_is_forgotten_with_the_tab(stranger: Visit) -> None:
    page = stranger.open()
    page.get_by_label("Admin token").fill(TOKEN)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]
    assert TOKEN not in page.content()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_token_that_is_kept_survives_a_reload_but_not_signing_out(stranger: Visit) -> None:
    page = stranger.open()
    page.get_by_label("Admin token").fill(TOKEN)
    page.get_by_label("Keep it in this tab over a reload").check()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_wrong_token_is_told_so(stranger: Visit) -> None:
    page = stranger.open()
    page.get_by_label("Admin token").fill("x" * 40)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("This token is not known here (401).")
    (complaint,) = stranger.take_complaints()
    assert "401" in complaint


def test_token_of_any_characters_is_sent_as_the_gateway_reads_it(stranger: Visit) -> None:
    page, sent = stranger.open(), []
    page.on("request", lambda request: sent.append(request.headers.get("authorization")))
    page.get_by_label("Admin token").fill("Schlüssel €" * 4)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("(401)")
    (header,) = sent
    assert header is not None
    assert header.encode("latin-1").decode() == "Bearer " + "Schlüssel €" * 4
    stranger.take_complaints()


def test_answer_that_is_not_understood_is_told(visit: Visit) -> None:
    visit.page.route("**/api/limits", lambda route: route.fulfill(json={"items": 1}))

    page = visit.open("keys", ".notice")

    expect(page.get_by_role("alert")).to_contain_text("not as this page expects it")
    visit.take_complaints()


def test_part_that_cannot_be_read_leaves_the_others(visit: Visit) -> None:
    lost = {"error": {"code": "redis_lost", "message": "Redis did not answer"}}
    visit.page.route("**/api/limits", lambda route: route.fulfill(status=503, json=lost))

    page = visit.open("keys", "#keys")

    expect(page.get_by_role("alert")).to_contain_text("Redis did not answer")
    assert len(visit.rows("Keys")) == 4
    visit.take_complaints()


def test_token_that_is_changed_meanwhile_leads_back_to_the_door(visit: Visit) -> None:
    page = visit.open("keys", "#keys")
    page.evaluate("sessionStorage.removeItem('cluster-gw.token')")
    page.route("**/api/keys", lambda route: route.continue_(headers={"authorization": "Bearer x"}))

    page.get_by_role("button", name="Refresh now").click()

    expect(page.get_by_role("alert")).to_contain_text("(401)")
    expect(page.get_by_role("table")).to_have_count(0)
    assert "401" in visit.take_complaints()[0]


def test_api_that_is_off_is_told_with_what_to_do(stranger: Visit) -> None:
    page = stranger.open()
    told = {"error": {"code": DISABLED.code, "message": DISABLED.message}}
    page.route("**/api/**", lambda route: route.fulfill(status=403, json=told))
    page.get_by_label("Admin token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("Set GW_ADMIN_TOKEN to at least 32")
    assert "403" in stranger.take_complaints()[0]


def test_request_that_fell_back_is_explained_with_its_trail(
    visit: Visit, group: GatewayGroup
) -> None:
    name = fall_back(group)
    told = call(group.admin_url, "GET", f"/api/requests/{name}").body

    page = visit.open("requests", "#recent")
    page.get_by_role("link", name=f"Request {name}").click()
    page.wait_for_selector("#trail")

    trail = visit.rows("Attempts")
    assert [row[1:3] for row in trail] == [[one["route"], one["key"]] for one in told["attempts"]]
    assert len(trail) == 2
    assert "HTTP 500" in trail[0][3]
    assert trail[1][3] == "success"
    winner = page.locator("#outcome dt:text('Winner') + dd").inner_text()
    assert winner == told["route"] == trail[1][1]
    assert page.locator("tr.chosen").locator(".badge").first.inner_text() == "answered"
    assert page.locator("tr.chosen .route").inner_text() == told["route"]
    check_figures(visit, told)


def test_request_that_would_come_is_explained_as_the_api_does(
    visit: Visit, group: GatewayGroup
) -> None:
    serve(group)
    page = visit.open("explain", "#body")

    with page.expect_response("**/api/explain") as answered:
        page.get_by_role("button", name="Explain", exact=True).click()
    told = answered.value.json()
    page.wait_for_selector("#ranking")

    asked = call(group.admin_url, "POST", "/api/explain", {"request": CHAT}).body
    assert {one["route"] for one in told["ranking"]} == {one["route"] for one in asked["ranking"]}
    refused = {(one["route"], one["key"]) for one in told["skipped"]}
    open_ones = [
        place["route"]
        for place in told["ranking"]
        if any((place["route"], key["id"]) not in refused for key in place["keys"])
    ]
    assert page.locator("#winner").inner_text() == open_ones[0]
    assert page.locator("#context").inner_text().count("balanced") == 1
    check_figures(visit, told)


def test_what_is_left_out_is_shown_with_its_reason(visit: Visit, group: GatewayGroup) -> None:
    page = visit.open("explain", "#body")
    page.get_by_label("Body").fill(json.dumps({**CHAT, "tools": TOOLS}))
    with page.expect_response("**/api/explain") as answered:
        page.get_by_role("button", name="Explain", exact=True).click()
    page.wait_for_selector("#skipped")

    told = answered.value.json()["skipped"]
    rows = visit.rows("Routes and keys that were left out")
    assert [row[:4] for row in rows] == [
        [one["route"], one["key"] or "all", one["code"], one["scope"]] for one in told
    ]
    assert "a/m0" in [row[0] for row in rows]


def test_order_without_scores_and_bad_questions_are_told(visit: Visit) -> None:
    page = visit.open("explain", "#body")
    body, button = page.get_by_label("Body"), page.get_by_role("button", name="Explain", exact=True)
    body.fill(json.dumps({**CHAT, "model": "ordered"}))
    button.click()
    expect(page.locator("#ranking")).to_contain_text("The strategy priority only orders")

    body.fill("{")
    button.click()
    expect(page.locator("#answer")).to_contain_text("JSON")
    body.fill(json.dumps({**CHAT, "model": "<i>nothing</i>"}))
    button.click()
    expect(page.locator("#answer")).to_contain_text("model_not_found")
    assert all("404" in one for one in visit.take_complaints())


def test_names_stay_text_wherever_they_are_shown(visit: Visit, group: GatewayGroup) -> None:
    serve(group, failing(500), model=f"a/{HOSTILE}")
    serve(group, model="pinned")
    call(group.admin_url, "PUT", f"/api/models/a/{quote(HOSTILE)}", {"weight": 1})
    named = [f"{page}/{HOSTILE}" for page in ("routing", "explain", "requests", "clients")]
    for path in (*PAGES, *named):
        page = visit.open(path.replace("/<", "/%3C"), READY.get(path, ".notice"))
        if path == "explain":
            page.get_by_role("button", name="Explain", exact=True).click()
            page.wait_for_selector("#ranking")
        if path == "usage":
            page.get_by_label("By").select_option("model")
        assert page.locator("img, main b, script:not([src])").count() == 0
        if path not in {"overview", "keys", "cache", "clients", "drain"}:
            expect(page.locator("main")).to_contain_text("onerror=alert(1)>")
    assert {one.split("(")[0] for one in visit.take_complaints()} <= {
        "error: Failed to load resource: the server responded with a status of 404 "
    }


def test_browser_itself_refuses_html_and_scripts_from_texts(visit: Visit) -> None:
    page = visit.open("overview", "#keys")

    for attempt in (
        "document.body.innerHTML = '<p>x</p>'",
        "document.body.insertAdjacentHTML('beforeend', '<p>x</p>')",
        "document.createElement('script').text = 'x'",
    ):
        told = page.evaluate(f"() => {{ try {{ {attempt} }} catch (e) {{ return e.name }} }}")
        assert told == "TypeError", attempt
    visit.take_complaints()


def test_keys_show_what_their_windows_count(visit: Visit, group: GatewayGroup) -> None:
    serve(group, model="a/m0")
    limits = call(group.admin_url, "GET", "/api/limits").body["items"]
    (window,) = [
        one
        for row in limits
        for one in row["windows"]
        if row["key"] == "a1" and one["rpm"]["limit"]
    ]

    page = visit.open("keys", "#keys")
    row = page.locator("#keys tbody > tr", has=page.get_by_text("a1", exact=True))

    day = row.locator(".meter", has_text="tokens a day").first.inner_text()
    assert re.sub(r"\s+", " ", day).endswith(f"{window['tpd']['used']} of 90,000")
    assert {one[0].split("\n")[0]: one[1].split("\n")[0] for one in visit.rows("Keys")}[
        "a2"
    ] == "disabled"
    page.get_by_label("Filter").fill("b1")
    expect(page.get_by_role("heading", name="Keys (1 of 4)")).to_be_visible()


def test_key_that_rests_says_for_how_long_also_where_the_clock_of_the_browser_is_wrong(
    visit: Visit, group: GatewayGroup
) -> None:
    serve(group, failing(429, retry_after=3600), model="limited")
    visit.page.clock.install(time="2020-02-02T02:02:02")

    page = visit.open("keys", "#keys")

    row = page.locator("#keys tbody > tr", has=page.get_by_text("c1", exact=True))
    expect(row).to_contain_text(re.compile(r"c/m3: rests \(.+\), ends in (1\.0 h|59 min)"))
    expect(row).to_contain_text("of 80,000")
    page = visit.open("explain", "#body")
    page.get_by_label("Body").fill(json.dumps({**CHAT, "model": "limited"}))
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#answer").get_by_role("status")).to_contain_text(
        "Nothing could take it now"
    )
    (skipped,) = visit.rows("Routes and keys that were left out")
    assert skipped[:3] == ["c/m3", "c1", "cooldown"]
    assert re.match(r"in (1\.0 h|59 min)", skipped[5])


def test_overview_tells_what_the_metrics_say(visit: Visit, group: GatewayGroup) -> None:
    serve(group)
    with urllib.request.urlopen(f"{group.admin_url}/metrics", timeout=10) as answer:  # noqa: S310
        lines = re.findall(r"(?m)^gw_requests_total\{.*\} (\S+)$", answer.read().decode())

    page = visit.open("overview", "#keys")

    finished = page.locator(".tile", has_text="Finished").locator("strong").inner_text()
    assert float(finished) == sum(map(float, lines)) > 0
    facts = page.locator("#group").inner_text()
    assert "ready" in facts
    assert "version" in facts


def test_strategy_is_changed_only_after_a_yes(visit: Visit, group: GatewayGroup) -> None:
    def strategy() -> str:
        return str(
            call(group.admin_url, "GET", "/api/fallback/routing?combo=switched").body["strategy"]
        )

    page = visit.open("routing/switched", "#scores")
    page.get_by_label("Strategy").select_option("smart")
    review = page.get_by_role("button", name="Review 1 change")
    review.click()
    expect(page.get_by_role("dialog")).to_contain_text("Strategy: priority → smart")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert strategy() == "priority"

    review.click()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()

    expect(page.locator("#told")).to_contain_text("The change is in force.")
    assert strategy() == "smart"
    expect(page.locator("fieldset")).to_contain_text("cache affinity")


def test_chain_is_put_in_order_by_keyboard(visit: Visit, group: GatewayGroup) -> None:
    page = visit.open("routing/sorted", "#scores")
    page.get_by_role("button", name="Move b/m2 up").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert visit.rows("Chain")[0][1] == "b/m2"
    assert "Move b/m2 down" in str(page.evaluate("document.activeElement.ariaLabel"))
    page.get_by_label("a/m0 takes part").uncheck()
    page.get_by_role("button", name="Review 2 changes").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#told")).to_contain_text("The change is in force.")

    chain = call(group.admin_url, "GET", "/api/fallback?combo=sorted").body["items"]
    assert chain[0]["route"] == "b/m2"
    assert {one["route"] for one in chain if not one["enabled"]} == {"a/m0"}


def test_change_of_somebody_else_is_not_overwritten(visit: Visit, group: GatewayGroup) -> None:
    page = visit.open("routing/changing", "#scores")
    page.get_by_label("Strategy").select_option("fastest")
    changed = call(
        group.admin_url, "PUT", "/api/fallback/routing?combo=changing", {"strategy": "smartest"}
    )
    assert changed.status == 200

    page.get_by_role("button", name="Review 1 change").click()
    page.get_by_role("button", name="Apply").click()

    expect(page.locator("#told")).to_contain_text("Somebody else changed the configuration first")
    assert "412" in visit.take_complaints()[0]
    expect(page.locator("#scores")).to_contain_text("as smartest ranks")  # it was read again
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("dialog")).to_contain_text("Strategy: smartest → fastest")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#told")).to_contain_text("The change is in force.")


def test_page_is_read_again_unless_that_is_paused(visit: Visit) -> None:
    page, asked = visit.page, []
    page.clock.install()
    page.on("request", lambda request: asked.append(request.url))
    visit.open("requests", "#recent")
    with page.expect_response("**/api/requests?*"):
        page.clock.run_for(6000)
    page.get_by_role("button", name="Pause refresh").click()
    asked.clear()

    page.clock.run_for(60_000)

    assert asked == []
    with page.expect_response("**/api/requests?*"):
        page.get_by_role("button", name="Refresh is paused").click()


def test_what_was_read_stays_while_the_gateway_cannot_be_reached(visit: Visit) -> None:
    page = visit.open("keys", "#keys")
    page.context.set_offline(True)

    page.get_by_role("button", name="Refresh now").click()

    expect(page.get_by_role("alert")).to_contain_text("The gateway cannot be reached.")
    expect(page.locator("#trouble")).to_contain_text("What is shown below was read at")
    assert len(visit.rows("Keys")) == 4
    page.context.set_offline(False)
    page.get_by_role("button", name="Refresh now").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert all("ERR_INTERNET_DISCONNECTED" in one for one in visit.take_complaints())


@pytest.mark.parametrize("path", [*PAGES, "sign in", "record"])
def test_page_has_no_fault_that_axe_finds_and_fits_a_phone(
    stranger: Visit, group: GatewayGroup, path: str
) -> None:
    page = stranger.page
    page.add_init_script(AXE.read_text())
    if path != "sign in":
        page.add_init_script(SIGNED_IN)
    name = fall_back(group) if path in {"record", "requests"} else ""
    at = {"record": f"requests/{name}", "sign in": ""}.get(path, path)
    stranger.open(at, {**READY, "record": "#skipped"}.get(path, "h1"))
    if path == "explain":
        page.get_by_role("button", name="Explain", exact=True).click()
        page.wait_for_selector("#ranking")
    for summary in page.locator("summary").all():
        summary.click()

    assert stranger.find_faults() == []
    page.emulate_media(color_scheme="dark")
    assert stranger.find_faults("color-contrast") == []
    page.set_viewport_size(PHONE)
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


def test_first_stop_of_the_keyboard_leads_past_the_menu(visit: Visit) -> None:
    page = visit.open("overview", "#keys")
    links = page.get_by_role("navigation").get_by_role("link").all()
    assert [link.get_attribute("href") for link in links] == [f"#/{name}" for name in PAGES]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/overview")


def test_what_is_unfolded_and_focused_stays_so_when_the_page_is_read_again(visit: Visit) -> None:
    page = visit.open("keys", "#keys")
    summary = page.locator("summary").first
    summary.click()
    summary.focus()
    page.evaluate("document.querySelector('#keys').dataset.isOld = ''")
    page.get_by_role("button", name="Refresh now").dispatch_event("click")
    page.wait_for_selector("#keys:not([data-is-old])")

    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.locator("details[open]").count() == 1


def test_question_goes_out_as_it_was_typed(visit: Visit) -> None:
    page = visit.open("explain", "#body")
    typed = '{"messages": [{"role": "user", "content": "hello"}], "seed": 12345678901234567890}'
    page.get_by_label("Body").fill(typed)
    page.get_by_label("Headers").fill("X-Gw-Session-Id: s1\nuser-agent:me")
    with page.expect_request("**/api/explain") as asked:
        page.get_by_role("button", name="Explain", exact=True).click()
    page.wait_for_selector("#ranking")

    sent = asked.value.post_data or ""
    assert typed in sent
    assert json.loads(sent)["headers"] == {"X-Gw-Session-Id": "s1", "user-agent": "me"}


def test_shown_tree_becomes_what_is_drawn_even_with_names_that_occur_twice(visit: Visit) -> None:
    page = visit.open("overview", "#keys")

    told = page.evaluate(
        """async () => {
        const {h, show} = await import('/ui/dom.js');
        const top = h('div', {});
        const draw = (names) => show(top, names.map((name) => h('p', {'data-key': name}, name)));
        const seen = [];
        for (const names of ['abc', 'cab', 'aab', 'b', 'bbaac', '', 'ca']) {
          draw([...names]);
          seen.push(top.textContent);
        }
        return seen;
        }"""
    )

    assert told == ["abc", "cab", "aab", "b", "bbaac", "", "ca"]


def test_usage_is_shown_as_the_api_tells_it_and_grouped_as_chosen(
    visit: Visit, group: GatewayGroup
) -> None:
    fall_back(group)
    page = visit.open("usage", "#used")
    page.get_by_label("By").select_option("client,model")
    expect(page.get_by_role("columnheader", name="Client")).to_be_visible()

    told = call(group.admin_url, "GET", "/api/usage?group_by=client,model").body["items"]
    shown = visit.rows("Usage")
    assert [row[:2] for row in shown] == [[one["client"], one["model"]] for one in told]
    assert [row[2] for row in shown] == [f"{one['requests']:,}" for one in told]
    costs = [one["cost_usd"] for one in told]
    assert [row[7] for row in shown] == ["unknown" if usd is None else "0 USD" for usd in costs]
