"""The pool of a scenario as the product has it: a checked configuration, its routes and targets."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.app.serving import build_serving
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.settings import load_bytes
from cluster_gw.settings.faults import unknown
from cluster_gw.settings.references import CUSTOM
from cluster_gw.settings.strategies import STRATEGIES
from cluster_gw.simulation.scenario import Scenario, World
from cluster_gw.store.keys import Keys
from cluster_gw.store.plan import Plans
from cluster_gw.store.scripts import Scripts

MODEL: Final = "model"
PREFIX: Final = "gw1"
BANDIT: Final = "bandit"
ORACLE: Final = "oracle"
BASELINES: Final = ("round-robin", "random", "least-latency", "priority", "weighted")
PLAIN: Final = "plain:"
"""Before a baseline: as a gateway has it that remembers nothing and knows no limits."""
COMPARED: Final = (BANDIT, *BASELINES)


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet serves from.

    Attributes:
        runtime: as in the product.
        plans: of its targets.
        combos: what requests ask for, ranked by the strategy of this run, and from when on: the
            combo grows where providers are added.
        strategy: its name here.
        weights: of the baseline `weighted`, by provider.
    """

    runtime: Runtime
    plans: Plans
    combos: tuple[tuple[float, Resolved], ...]
    strategy: str
    weights: Mapping[str, float]


def check_strategy(name: str) -> None:
    """Refuse a strategy nobody knows.

    Raises:
        ConfigInvalidError: with the nearest name.
    """
    known = known_strategies()
    if name not in known:
        raise ConfigInvalidError([f"--strategies: {unknown(name, known)}"])


def known_strategies() -> tuple[str, ...]:
    """Name what can be compared: the bandit, baselines, and the product's own by family."""
    own = [f"{family}:{name}" for family, names in STRATEGIES.items() for name in names]
    return (*COMPARED, *(f"{PLAIN}{name}" for name in BASELINES), *own)


def build_pool(
    scenario: Scenario, worlds: tuple[World, ...], strategy: str, scripts: Scripts
) -> Pool:
    """Build the pool of one run.

    Args:
        scenario: checked.
        worlds: its providers in the order in which this run declares them.
        strategy: one of `known_strategies`, or the oracle.
        scripts: the loaded scripts; only their names are used.

    Raises:
        ConfigInvalidError: the product would not take such a configuration.
    """
    document = msgspec.json.encode(_document(scenario, worlds, strategy))
    runtime = build_serving(load_bytes(document, {}).settings, 1).runtime
    return Pool(
        runtime=runtime,
        plans=Plans(Keys(PREFIX), scripts),
        combos=tuple(
            [
                (at_s, resolved)
                for at_s in _openings(worlds)
                if (resolved := runtime.catalog.resolve(_combo_at(at_s))) is not None
            ]
        ),
        strategy=strategy,
        weights={world.name: world.weight for world in worlds},
    )


def _document(scenario: Scenario, worlds: tuple[World, ...], strategy: str) -> dict[str, Any]:
    family, name = _combo_of(strategy, scenario)
    weighed = {"weights": scenario.weights} if strategy == BANDIT and name == CUSTOM else {}
    return {
        "providers": {world.name: _provider(world) for world in worlds},
        "keys": [key for world in worlds for key in _keys(world)],
        "models": [_model(world) for world in worlds],
        "combos": [
            {
                "id": _combo_at(at_s),
                "family": family,
                "strategy": name,
                "members": [f"{one.name}/{MODEL}" for one in worlds if one.opens_at_s <= at_s],
                **weighed,
            }
            for at_s in _openings(worlds)
        ],
        "default_combo": _combo_at(_openings(worlds)[0]),
        "routing": msgspec.to_builtins(scenario.routing),
        "auth": {"mode": "none"},
    }


def _openings(worlds: tuple[World, ...]) -> list[float]:
    """When there is another combo."""
    return sorted({world.opens_at_s for world in worlds})


def _combo_at(at_s: float) -> str:
    return f"from-{at_s:g}-s"


def _combo_of(strategy: str, scenario: Scenario) -> tuple[str, str]:
    if strategy == BANDIT:
        return "bandit", scenario.strategy
    strategy = strategy.removeprefix(PLAIN)
    if strategy in {"round-robin", "priority"}:
        return "classic", strategy
    if strategy in {*BASELINES, ORACLE}:
        return "classic", "priority"  # which the run does not ask
    family, _, name = strategy.partition(":")
    return family, name


def _provider(world: World) -> dict[str, Any]:
    found: dict[str, Any] = {
        "dialect": "openai",
        "base_url": f"https://{world.name}.invalid/v1",
        "day_reset": world.day_reset,
        "timeouts": {"first_byte_s": world.first_byte_timeout_s},
    }
    if _is_declared(world):
        limits = msgspec.to_builtins(world.limits)
        found["accounts"] = {_account(world): {"limits": limits}}
    return found


def _is_declared(world: World) -> bool:
    return world.shared_account and world.declares_account


def _account(world: World) -> str:
    return f"{world.name}-account"


def _keys(world: World) -> list[dict[str, Any]]:
    account = _account(world) if _is_declared(world) else None
    return [
        {
            "id": f"{world.name}-{number}",
            "provider": world.name,
            "secret": "not-a-secret",
            "account": account,
        }
        for number in range(1, world.keys + 1)
    ]


def _model(world: World) -> dict[str, Any]:
    limits = Limits() if _is_declared(world) else world.limits
    return {
        "provider": world.name,
        "model": MODEL,
        "tier": world.tier,
        "intelligence_rank": world.intelligence_rank,
        "limits": msgspec.to_builtins(limits),
        "price": msgspec.to_builtins(world.price),
    }
