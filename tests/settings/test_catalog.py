"""A configuration becomes exactly the routes, keys and combos it describes."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.axes import USUAL_RANK, USUAL_TIER, intelligence_composite
from cluster_gw.core.routing.catalog import Combo, Key, Member, PhaseTimeouts, Route
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.core.routing.sticky_policy import SESSION, StickyPolicy
from cluster_gw.settings import (
    Loaded,
    Secret,
    build_catalog,
    load_bytes,
    mask_secrets,
    secrets,
)
from cluster_gw.units import ComboId, KeyId, RouteId

Load = Callable[..., Loaded]

BIG, SMALL = RouteId("far/big"), RouteId("local/small")


def test_the_whole_catalog_of_a_small_configuration(base: dict[str, Any], load: Load) -> None:
    base["providers"]["far"] |= {
        "limits": {"rpd": 500, "concurrency": 4},
        "day_reset": "America/Los_Angeles",
        "timeouts": {"stall_s": 30},
    }
    base["keys"][0] |= {"account": "acme", "models": ["big"], "limits": {"rpd": 90, "tpm": "6k"}}
    base["models"][0] |= {
        "name": "Big One",
        "context_window": "131k",
        "tools": False,
        "vision": True,
        "limits": {"rpm": 30},
        "weight": 0.5,
    }
    base["combos"][0]["strategy"] = "priority"
    base["combos"].append(
        {
            "id": "coding",
            "family": "classic",
            "strategy": "round-robin",
            "members": ["local:small", {"route": "far/big", "enabled": False}],
            "response": {"min_content_length": 3},
        }
    )

    catalog = build_catalog(load(base).settings, 7)

    far_key = Key(
        id=KeyId("far-a"),
        provider="far",
        account="acme",
        models=frozenset({"big"}),
        limits=Limits(rpd=90, tpm=6000, concurrency=4),
    )
    own_key = Key(id=KeyId("local-keyless"), provider="local", account="local-keyless")
    assert catalog == Catalog(
        version=7,
        routes={
            BIG: Route(
                id=BIG,
                provider="far",
                model="big",
                dialect=Dialect.OPENAI,
                base_url="https://far.example/v1",
                name="Big One",
                limits=Limits(rpm=30),
                day_reset="America/Los_Angeles",
                timeouts=PhaseTimeouts(stall_s=30.0),
                context_window=131_000,
                tools=False,
                vision=True,
                weight=0.5,
                intelligence=intelligence_composite(USUAL_TIER, USUAL_RANK),
                keys=(far_key,),
            ),
            SMALL: Route(
                id=SMALL,
                provider="local",
                model="small",
                dialect=Dialect.OPENAI,
                base_url="http://127.0.0.1:9001/v1",
                name="small",
                keyless=True,
                intelligence=intelligence_composite(USUAL_TIER, USUAL_RANK),
                keys=(own_key,),
            ),
        },
        combos={
            ComboId("auto"): Combo(
                id=ComboId("auto"),
                family="bandit",
                strategy="priority",
                members=(Member(route=BIG), Member(route=SMALL)),
                gate=GatePolicy(reject_empty=True),
                sticky=StickyPolicy(enabled=True, scope=SESSION, is_hard=False),
            ),
            ComboId("coding"): Combo(
                id=ComboId("coding"),
                family="classic",
                strategy="round-robin",
                members=(Member(route=SMALL), Member(route=BIG, enabled=False)),
                gate=GatePolicy(min_content_length=3),
            ),
        },
        default_combo=ComboId("auto"),
        aliases=catalog.aliases,
        groups=catalog.groups,
    )


def test_a_key_serves_only_the_models_it_names(base: dict[str, Any], load: Load) -> None:
    base["models"].append({"provider": "far", "model": "mid"})
    base["keys"][0]["models"] = ["mid"]
    base["keys"].append(
        {"id": "far-b", "provider": "far", "secret": "x", "base_url": "https://relay.example/v1/"}
    )

    routes = build_catalog(load(base).settings, 1).routes

    relay = RouteId("far/mid@relay-example-v1")
    assert list(routes) == ["far/big@relay-example-v1", SMALL, "far/mid", relay]
    assert [k.id for k in routes[RouteId("far/mid")].keys] == ["far-a"]
    assert [k.id for k in routes[relay].keys] == ["far-b"]
    assert (routes[relay].base_url, routes[relay].endpoint) == (
        "https://relay.example/v1",
        "relay-example-v1",
    )


def test_a_response_given_in_part_keeps_the_default_of_its_family(
    base: dict[str, Any], load: Load
) -> None:
    base["combos"][0]["response"] = {"require_terminal": True}

    gate = build_catalog(load(base).settings, 1).combos[ComboId("auto")].gate

    assert gate == GatePolicy(reject_empty=True, require_terminal=True)


def test_an_unknown_model_goes_to_the_default_only_when_asked(
    base: dict[str, Any], load: Load
) -> None:
    assert build_catalog(load(base).settings, 1).resolve("nobody") is None

    base["unknown_model"] = "default"

    assert build_catalog(load(base).settings, 1).resolve("nobody") is not None


def test_secrets_are_apart_from_the_catalog(load: Load) -> None:
    settings = load().settings

    assert secrets(settings) == {KeyId("far-a"): Secret("sk-far-private")}
    assert "sk-far-private" not in repr(settings) + repr(build_catalog(settings, 1))


def test_settings_survive_a_round_trip_with_their_secrets_masked(load: Load) -> None:
    settings = load().settings

    shown = msgspec.json.decode(msgspec.json.encode(settings, enc_hook=mask_secrets))

    assert shown["keys"][0]["secret"] == shown["redis"]["url"] == "***"
    shown["keys"][0]["secret"] = "env:FAR_KEY"
    shown["redis"]["url"] = "embedded:"
    assert load(shown).settings == settings


def test_account_bounds_go_to_every_key_of_it(base: dict[str, Any], load: Load) -> None:
    base["providers"]["far"]["accounts"] = {"acme": {"limits": {"rpm": 60, "tpd": "1M"}}}
    base["providers"]["local"]["accounts"] = {"local-keyless": {"limits": {"concurrency": 2}}}
    base["keys"] = [
        {"id": name, "provider": "far", "secret": f"secret-of-{name}", "account": account}
        for name, account in (("a", "acme"), ("b", "acme"), ("c", None))
    ]

    routes = build_catalog(load(base).settings, 1).routes

    acme = Limits(rpm=60, tpd=1_000_000)
    assert [key.account_limits for key in routes[BIG].keys] == [acme, acme, Limits()]
    assert [key.account_limits for key in routes[SMALL].keys] == [Limits(concurrency=2)]


def test_caps_of_a_key_win_over_the_providers_and_those_over_the_presets(
    base: dict[str, Any], load: Load
) -> None:
    base["providers"]["far"] = {
        "preset": "openrouter",
        "caps": {"tpd": "1M", "monthly_tokens": "20M"},
    }
    base["keys"] = [
        {"id": name, "provider": "far", "secret": f"secret-of-{name}", "caps": caps}
        for name, caps in (("a", {}), ("b", {"rpd": 7}), ("c", {"rpd": 0, "monthly_tokens": 0}))
    ]

    keys = build_catalog(load(base).settings, 1).routes[BIG].keys

    assert [key.caps for key in keys] == [
        Caps(rpd=1000, tpd=1_000_000, monthly_tokens=20_000_000),
        Caps(rpd=7, tpd=1_000_000, monthly_tokens=20_000_000),
        Caps(tpd=1_000_000),
    ]


def test_models_of_a_preset_that_weighs_tokens_weigh_what_their_day_says(
    base: dict[str, Any], load: Load
) -> None:
    base["providers"]["far"] = {"preset": "navy"}
    base["models"] = [
        {"provider": "far", "model": "tripled", "limits": {"tpd": "50k"}},
        {"provider": "far", "model": "told", "limits": {"tpd": "50k"}, "token_weight": 2.5},
        {"provider": "far", "model": "plain"},
        {"provider": "local", "model": "elsewhere", "limits": {"tpd": 5}},
    ]

    routes = build_catalog(load(base).settings, 1).routes

    weights = {route.model: route.token_weight for route in routes.values()}
    assert weights == {"tripled": 3.0, "told": 2.5, "plain": 1.0, "elsewhere": 1.0}


def test_model_that_is_switched_off_serves_no_combo_and_no_name(
    base: dict[str, Any], load: Load
) -> None:
    base["models"][0]["enabled"] = False

    catalog = build_catalog(load(base).settings, 1)

    by_combo = catalog.resolve("auto")
    assert by_combo is not None
    assert [route.id for route in by_combo.routes] == [SMALL]
    assert [route.id for route in by_combo.disabled] == [BIG]
    assert [catalog.resolve(name) for name in ("far/big", "far:big", "big")] == [None] * 3


def test_key_that_is_switched_off_serves_nothing(base: dict[str, Any], load: Load) -> None:
    base["keys"][0]["enabled"] = False

    catalog = build_catalog(load(base).settings, 1)

    assert catalog.routes[BIG].keys == ()


@pytest.mark.parametrize("secret", ["token", "account:", ":token"])
def test_a_key_names_its_account_where_the_address_has_it(
    base: dict[str, Any], faults: Callable[..., list[str]], secret: str
) -> None:
    base["providers"]["far"] = {"preset": "cloudflare"}
    base["keys"][0]["secret"] = secret

    assert faults(base) == ["keys[0].secret: must read account:token at this provider"]


def test_slow_model_of_a_preset_has_longer_for_its_first_byte() -> None:
    def waits_s(**own: Any) -> list[float]:
        models = ["@cf/zai-org/glm-4.7-flash", "other"]
        config = {
            "auth": {"mode": "none"},
            "providers": {"cf": {"preset": "cloudflare", **own}},
            "models": [{"provider": "cf", "model": model} for model in models],
        }
        settings = load_bytes(msgspec.json.encode(config), {}).settings
        return [route.timeouts.first_byte_s for route in build_catalog(settings, 1).routes.values()]

    assert waits_s() == [200.0, 60.0]
    assert waits_s(timeouts={"first_byte_s": 7}) == [7.0, 7.0]
