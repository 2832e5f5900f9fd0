"""From a file to a scenario, or every fault with its path."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

from cluster_gw.core.routing.axes import TIERS
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.checking import Checker
from cluster_gw.settings.document import MAX_BYTES, read_document
from cluster_gw.settings.expand import Expander, why
from cluster_gw.settings.faults import Faults, at_index, at_name, unknown
from cluster_gw.settings.strategies import STRATEGIES
from cluster_gw.simulation.scenario import TUNED, Point, RatioPoint, Scenario, World

BUNDLED: Final = Path(__file__).parent / "scenarios"
SUFFIX: Final = ".yaml"


def list_bundled() -> tuple[str, ...]:
    """Name the scenarios that come with the product."""
    return tuple(sorted(path.stem for path in BUNDLED.glob(f"*{SUFFIX}")))


def find(name: str) -> Path:
    """Give the file of a scenario: that of a bundled one by its name, else the path itself."""
    return BUNDLED / f"{name}{SUFFIX}" if name in list_bundled() else Path(name)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Raises:
        ConfigInvalidError: it cannot be used; every fault is a line `file: path: what`.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = "does not exist" if is_missing else f"cannot be read{why(error)}"
        near = unknown(str(path), list_bundled()) if len(path.parts) == 1 else ""
        hint = f": {near}" if "did you mean" in near else ""
        raise ConfigInvalidError([f"scenario file {path} {reason}{hint}"]) from None
    try:
        return parse_scenario(data, path.stem)
    except ConfigInvalidError as error:
        raise ConfigInvalidError([f"{path}: {line}" for line in error.faults]) from None


def parse_scenario(data: bytes, name: str) -> Scenario:
    """Read the text of a scenario; see `read_scenario`.

    Args:
        data: YAML or JSON.
        name: of the scenario, where it gives none itself.
    """
    faults = Faults()
    document = read_document(data, faults)
    if faults.lines:
        raise ConfigInvalidError(_named(faults.lines))
    _fill(document)
    checker = Checker(faults, Expander({}, faults).secret)
    checked = checker.check(document, inspect.type_info(Scenario), "")
    if not faults.lines:
        scenario = msgspec.convert(checked, Scenario)
        _check_whole(scenario, faults)
    if faults.lines:
        raise ConfigInvalidError(_named(faults.lines))
    return scenario if scenario.name else msgspec.structs.replace(scenario, name=name)


def _fill(document: dict[str, Any]) -> None:
    """Tune the fields of `routing` that a scenario does not give."""
    given = document.get("routing")
    if isinstance(given, dict):
        document["routing"] = {**msgspec.to_builtins(TUNED), **given}


def _named(lines: list[str]) -> list[str]:
    """A file as a whole is a scenario here."""
    return [line.replace("configuration:", "scenario:", 1) for line in lines]


def _check_whole(scenario: Scenario, faults: Faults) -> None:
    """What no single field can tell."""
    if not scenario.providers:
        faults.add("providers", "at least one is needed")
    elif all(provider.opens_at_s > 0 for provider in scenario.providers):
        faults.add("providers", "at least one must be there from the start (opens_at_s: 0)")
    if scenario.routing.queue.max_wait_ms:
        faults.add("routing.queue.max_wait_ms", "waiting for capacity is not simulated; leave it 0")
    strategies = STRATEGIES["bandit"]
    if scenario.strategy not in strategies:
        faults.add("strategy", unknown(scenario.strategy, strategies))
    seen: set[str] = set()
    for place, provider in enumerate(scenario.providers):
        path = at_index("providers", place)
        if provider.name in seen:
            faults.add(at_name(path, "name"), f'"{provider.name}" stands twice')
        seen.add(provider.name)
        for name, message in _faults_of(provider):
            faults.add(at_name(path, name), message)


def _faults_of(provider: World) -> Iterator[tuple[str, str]]:
    if provider.tier is not None and provider.tier not in TIERS:
        yield "tier", unknown(provider.tier, list(TIERS))
    for name in ("reliability", "tokens_per_s", "first_byte_ms"):
        curve: object = getattr(provider, name)
        if isinstance(curve, tuple):
            yield from _faults_of_curve(name, curve)
    for place, span in enumerate(provider.outages):
        if span.to_s <= span.from_s:
            yield at_index("outages", place), "ends before it begins"
    flapping = provider.flapping
    if flapping is not None and flapping.down_s >= flapping.period_s:
        yield "flapping.down_s", "must be below period_s: it would be down for good"


def _faults_of_curve(name: str, curve: tuple[Point | RatioPoint, ...]) -> Iterator[tuple[str, str]]:
    if not curve:
        yield name, "needs at least one point"
    for place, (one, other) in enumerate(pairwise(curve), start=1):
        if other.at_s < one.at_s:
            yield f"{at_index(name, place)}.at_s", "is before the point above it"
