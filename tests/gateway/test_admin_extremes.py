"""The admin API takes no number of any size and no nesting of any depth for a bug of its own."""

from typing import Final

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.test_overlay import told, write

BIG: Final = "9" * 400
NUMBERS: Final = [
    ("/api/fallback/routing", '{"cooldown_ceiling_ms":%s}', "cooldown_ceiling_ms"),
    ("/api/fallback/routing", '{"task_weight_share":%s}', "task_weight_share"),
    ("/api/fallback/routing", '{"peak_start_hour":%s}', "peak_hours.start_hour"),
    ("/api/fallback/routing", '{"weights":{"speed":%s}}', "weights.speed"),
    ("/api/models/a/one", '{"limits":{"rpm":%s}}', "limits.rpm"),
    ("/api/models/a/one", '{"weight":%s}', "weight"),
    ("/api/models/a/one", '{"monthlyTokens":%s}', "monthly_tokens"),
    ("/api/models/a/one", '{"qualityHint":%s}', "quality_hint"),
    ("/api/keys/a1", '{"caps":{"tpd":%s}}', "caps.tpd"),
    ("/api/combos/auto", '{"sticky":{"ttl_s":%s}}', "sticky.ttl_s"),
    ("/api/combos/auto", '{"response":{"min_content_length":%s}}', "response.min_content_length"),
    ("/api/settings/headroom", '{"floor":%s}', "headroom.floor"),
    ("/api/settings/thresholds", '{"bench":{"for_s":%s}}', "bench.for_s"),
]
DOORS: Final = [
    *(("PUT", "/api/combos/auto"), ("PUT", "/api/fallback"), ("PUT", "/api/fallback/routing")),
    ("PUT", "/api/settings/thresholds"),
    *(("PUT", "/api/settings/headroom"), ("PUT", "/api/models/a/one"), ("PUT", "/api/keys/a1")),
    *(("POST", "/api/profiles"), ("POST", "/api/explain"), ("POST", "/api/health/check")),
]


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start()


@pytest.mark.parametrize(("path", "body", "param"), NUMBERS, ids=[one[2] for one in NUMBERS])
@pytest.mark.parametrize("number", [BIG, "-" + BIG], ids=["above", "below"])
async def test_number_of_too_many_digits_is_a_fault_of_its_field(
    admin: httpx.AsyncClient, path: str, body: str, param: str, number: str
) -> None:
    answer = await admin.put(path, content=body % number)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
    assert (await admin.get("/api/config")).json()["config_version"] == 1


async def test_priority_of_any_size_orders_a_chain(admin: httpx.AsyncClient) -> None:
    shown = (await admin.get("/api/fallback")).json()["items"]
    ranks = [BIG, "1"]
    entries = [
        f'{{"route":"{one["route"]}","priority":{rank}}}'
        for one, rank in zip(shown, ranks, strict=False)
    ]

    answer = await admin.put("/api/fallback", content=f"[{','.join(entries)}]")

    assert answer.status_code == 200, answer.text
    after = [one["route"] for one in answer.json()["items"]]
    assert after == [one["route"] for one in reversed(shown)]


@pytest.mark.parametrize(("method", "path"), DOORS)
@pytest.mark.parametrize("depth", [34, 600, 900, 3000, 100_000])
async def test_body_that_nests_too_deeply_is_refused(
    admin: httpx.AsyncClient, method: str, path: str, depth: int
) -> None:
    for opening, closing in (("[", "]"), ('{"weights":', "}"), ('{"request":', "}")):
        answer = await admin.request(method, path, content=opening * depth + "1" + closing * depth)

        assert answer.status_code == 400, answer.text
    assert (await admin.get("/api/config")).json()["config_version"] == 1


async def test_refusal_of_nesting_says_so(admin: httpx.AsyncClient) -> None:
    answer = await admin.put("/api/combos/auto", content='{"a":' * 33 + "1" + "}" * 33)

    assert answer.json()["error"]["message"] == "the body is nested deeper than 32 levels"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    door=st.sampled_from(DOORS),
    opening=st.sampled_from(["[", '{"weights":', '{"limits":', '{"x":[', '[{"route":']),
    depth=st.integers(0, 60) | st.sampled_from([200, 800, 995, 1005, 4000]),
    digits=st.sampled_from([1, 308, 309, 400, 4300, 4301]),
)
async def test_nothing_of_any_size_is_a_bug_of_the_api(
    gateway: Gateway, door: tuple[str, str], opening: str, depth: int, digits: int
) -> None:
    ends = {"[": "]", "{": "}"}
    closing = "".join(ends[one] for one in reversed(opening) if one in ends)
    async with gateway.admin() as admin:
        answer = await admin.request(
            *door, content=opening * depth + "9" * digits + closing * depth
        )

    assert answer.status_code in {400, 404}, answer.text
    assert not told(gateway, "request.crashed")


@pytest.mark.parametrize(
    "patches",
    [
        '{"models":{"a/one":' + '{"a":' * 700 + "1" + "}" * 702,
        '{"models":{"a/one":' + '{"a":' * 3000,
    ],
)
async def test_stored_overlay_that_nests_too_deeply_changes_nothing(
    gateway: Gateway, patches: str
) -> None:
    await write(gateway, version="2", id="somebody", patches=patches)

    (refused,) = told(gateway, "config.refused")
    assert refused["faults"] == ["overlay: nested deeper than 32 levels"]


async def test_stored_number_of_too_many_digits_is_dropped_with_its_path(gateway: Gateway) -> None:
    await write(
        gateway, version="2", id="x", patches=f'{{"models":{{"a/one":{{"weight":{BIG}}}}}}}'
    )

    (dropped,) = told(gateway, "config.patch_dropped")
    assert dropped["faults"][0].startswith("models[0].weight: expected a number from 0 to 2, got a")


async def test_worker_keeps_what_it_has_whatever_reading_another_raises(gateway: Gateway) -> None:
    before = gateway.configuration.current.serving

    def read() -> None:
        raise OverflowError("sk-private")

    gateway.configuration.reload(read)  # type: ignore[arg-type]  # it gives nothing at all

    (refused,) = told(gateway, "config.refused")
    assert refused["faults"] == [
        "configuration: cannot be used, a bug of this version (OverflowError)"
    ]
    assert gateway.configuration.current.serving is before
    assert gateway.configuration.version == 1
