"""Scenarios drawn at random: a setting is chosen by some of them and judged by others."""

import math
import random
from typing import Any, Final

import msgspec

from cluster_gw.simulation.reading import parse_scenario
from cluster_gw.simulation.scenario import Scenario

DURATION_S: Final = 3600
TO_CHOOSE_BY: Final = range(100, 124)
HELD_OUT: Final = range(200, 224)
FAILINGS: Final = (
    {"kind": "status", "status": 503, "after_ms": 200},
    {"kind": "status", "status": 500, "after_ms": 1500},
    {"kind": "timeout"},
    {"kind": "cut", "after_ms": 800},
    {"kind": "empty", "after_ms": 2000},
)


def draw_scenario(number: int, *, requests: int = 1500) -> Scenario:
    """Draw one; the same number gives the same.

    Two to six providers: a third of them changes over the hour, one in four fails altogether for
    some time, one in three has limits, of which some are less than stated, one in eight comes
    later.
    """
    chance = random.Random(number)  # noqa: S311 - no secret
    providers = [_provider(chance, place) for place in range(chance.randint(2, 6))]
    providers[0].pop("opens_at_s", None)  # somebody is there from the start
    document = {
        "about": f"Drawn at random, number {number}.",
        "asking": {
            "requests": requests,
            "duration_s": DURATION_S,
            "output_tokens": chance.choice((80, 200, 300, 600)),
            "spread": chance.uniform(0.1, 0.6),
            "deadline_s": chance.choice((20, 30, 60, 60, 120)),
        },
        "providers": providers,
    }
    return parse_scenario(msgspec.json.encode(document), f"drawn-{number}")


def _provider(chance: random.Random, place: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": f"p{place}",
        "reliability": _reliability(chance),
        "tokens_per_s": _log_uniform(chance, 20.0, 160.0),
        "first_byte_ms": _log_uniform(chance, 200.0, 3000.0),
        "spread": chance.uniform(0.1, 0.5),
        "failing": chance.choice(FAILINGS),
        "keys": chance.choice((1, 1, 1, 2, 4)),
    }
    if chance.random() < 1 / 3:
        changed = chance.choice(("reliability", "tokens_per_s", "first_byte_ms"))
        after = _reliability(chance) if changed == "reliability" else found[changed]
        factor = 1.0 if changed == "reliability" else _log_uniform(chance, 0.25, 4.0)
        begins_s, takes_s = chance.uniform(0, 2400), chance.choice((1, 300, 1200))
        found[changed] = [
            {"at_s": begins_s, "value": found[changed]},
            {"at_s": begins_s + takes_s, "value": after * factor},
        ]
    if chance.random() < 1 / 4:
        period_s = chance.uniform(300, 1500)
        found["flapping"] = {
            "period_s": period_s,
            "down_s": min(chance.choice((20, 60, 180, 600)), 0.6 * period_s),
            "from_s": chance.uniform(0, 1500),
        }
    if chance.random() < 1 / 3:
        rpm = chance.choice((5, 10, 20, 40))
        found["limits"] = {"rpm": rpm, "rpd": chance.choice((None, None, 200, 500))}
        if chance.random() < 1 / 4:
            found["enforced"] = {"rpm": max(1, rpm // 2)}
            found["states_wait"] = chance.random() < 1 / 2
    if chance.random() < 1 / 8:
        found["opens_at_s"] = chance.uniform(300, 2000)
    return found


def _reliability(chance: random.Random) -> float:
    return chance.choice((0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0))


def _log_uniform(chance: random.Random, low: float, high: float) -> float:
    return math.exp(chance.uniform(math.log(low), math.log(high)))
