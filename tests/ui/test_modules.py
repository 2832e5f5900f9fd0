"""Modules of the dashboard that only reckon, run by node: metrics as text, and what is changed."""

import json
import subprocess
from typing import Any, Final

import pytest

from cluster_gw.server.ui.shell import FOLDER

pytestmark = pytest.mark.ui

ROUTES: Final = [
    {"route": "a/one", "enabled": True, "keys": ["a1"]},
    {"route": "b/two", "enabled": True, "keys": []},
]


def run(module: str, code: str, given: Any) -> Any:
    """Run code behind a module that imports no other; what it returns of `given`."""
    text = (FOLDER / module).read_text(encoding="utf-8")
    whole = f"{text}\nconst work = (given) => {{ {code} }};\n"
    whole += f"console.log(JSON.stringify(work({json.dumps(given)})));"
    done = subprocess.run(
        ["node", "--input-type=module"],
        check=False,
        input=whole,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def drafted(code: str, **of_routing: Any) -> Any:
    """What some code gives of the draft of a combo that has just been read."""
    read = {
        "combos": {"items": [{"id": "auto"}]},
        "routing": {
            "combo": "auto",
            "family": "bandit",
            "strategies": ["custom", "balanced"],
            "strategy": "custom",
            "weights": {"speed": 0.25, "reliability": 0.75},
            "custom_weights": None,
            "peak_adjusted": False,
            "config_version": 4,
            **of_routing,
        },
        "chain": {"items": ROUTES, "config_version": 5},
    }
    start = "const draft = new Draft(); draft.take(given);"
    return run("pages/routing_draft.js", f"{start} {code}", read)


def test_metrics_are_read_whatever_their_labels_say() -> None:
    text = '# HELP x y\nx{a="q\\"},{",b="l\\\\n\\n"} 3\nx{a="2"} 1e3\nempty 0\n'
    code = (
        "const all = parseMetrics(given);"
        "return [all.get('x'), total(all, 'x'), total(all, 'none'), totalsBy(all, 'x', 'a')];"
    )

    told = run("metrics.js", code, text)

    first = {"labels": {"a": 'q"},{', "b": "l\\n\n"}, "value": 3}
    second = {"labels": {"a": "2"}, "value": 1000}
    assert told == [[first, second], 1003, None, [["2", 1000], ['q"},{', 3]]]


def test_nothing_is_sent_of_what_nobody_touched() -> None:
    told = drafted("return [draft.changes(), draft.bodies(), draft.version];")

    assert told == [[], {"routing": None, "chain": None}, 4]


def test_only_what_was_touched_is_sent_and_read_out_before() -> None:
    code = (
        "draft.weights.speed = 0.5; draft.chain.reverse(); draft.chain[0].enabled = false;"
        "return [draft.changes(), draft.bodies()];"
    )

    changes, bodies = drafted(code)

    assert changes == ["Weight of speed: 0.25 → 0.5", "b/two: on → off", "Order: b/two, a/one"]
    assert bodies == {
        "routing": {"weights": {"speed": 0.5, "reliability": 0.75}},
        "chain": {
            "items": [{"route": "b/two", "enabled": False}, {"route": "a/one", "enabled": True}]
        },
    }


def test_weights_of_the_strategy_before_are_not_sent_with_another() -> None:
    code = "draft.weights.speed = 0.5; draft.strategy = 'balanced'; return draft.bodies().routing;"

    assert drafted(code) == {"strategy": "balanced"}


def test_weights_that_an_hour_has_shifted_are_not_sent_back_as_set() -> None:
    own = {"speed": 0.5, "reliability": 0.5}
    code = "draft.weights.speed = 0.6; return draft.bodies().routing.weights;"

    told = drafted(code, custom_weights=own, peak_adjusted=True)

    assert told == {"speed": 0.6, "reliability": 0.5}


def test_what_is_being_changed_stays_when_something_else_is_read() -> None:
    code = (
        "draft.strategy = 'balanced'; given.routing.config_version = 9;"
        "given.chain.config_version = 9;"
        "const isNews = draft.take(given); const seen = [isNews, draft.isOutdated, draft.version];"
        "draft.forget(); draft.take(given); return [...seen, draft.version, draft.strategy];"
    )

    assert drafted(code) == [False, True, 4, 9, "custom"]


def test_what_was_touched_is_put_over_what_somebody_else_has_changed_meanwhile() -> None:
    code = """
        draft.strategy = 'balanced'; draft.chain.reverse(); draft.chain[1].enabled = false;
        given.routing = {...given.routing, config_version: 9, weights: {speed: 1, reliability: 0}};
        given.chain = {config_version: 9, items: [{route: 'c/new', enabled: true},
          {route: 'a/one', enabled: true}, {route: 'b/two', enabled: false}]};
        draft.keepOver(); draft.take(given);
        return [draft.changes(), draft.version, draft.chain, draft.isOutdated];
    """

    changes, version, chain, is_outdated = drafted(code)

    assert changes == [
        "Strategy: custom → balanced",
        "a/one: on → off",
        "Order: b/two, a/one, c/new",
    ]
    assert (version, is_outdated) == (9, False)
    assert [(one["route"], one["enabled"]) for one in chain] == [
        ("b/two", False),
        ("a/one", False),
        ("c/new", True),
    ]


def test_limits_are_picked_by_how_full_they_are_and_what_is_not_known_is_not_told() -> None:
    def bound(used: float | None, limit: float | None) -> dict[str, float | None]:
        return {"used": used, "limit": limit}

    free = {name: bound(9, None) for name in ("rpd", "tpm", "tpd", "concurrency")}
    windows = [
        {"scope": "model", "routes": ["a/x"], "day_ends_ms": 7, "rpm": bound(used, limit), **free}
        for used, limit in ((7, 10), (8, 10), (0, 0))
    ]
    caps = {"rpd": bound(None, 5), "tpd": bound(99, 100), "monthly_tokens": bound(1, None)}
    key = {"provider": "a", "key": "a1", "windows": windows, "caps": caps}

    told = run("parts/trouble.js", "return nearLimits(given);", {"items": [key]})

    assert [(one["used"], one["limit"]) for one in told] == [(0, 0), (99, 100), (8, 10)]
