"""Settings from the environment: `GW_<SECTION>__<FIELD>` and `MODEL_ROUTING_OVERRIDES`.

A tunable out of range leaves the file's value, or the default, and warns. A wrong
name, address or mode is a fault like in the file: running with another Redis than the operator
named would break every limit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

from cluster_gw.settings.amounts import is_finite
from cluster_gw.settings.checking import Checker, SecretReader
from cluster_gw.settings.faults import Expanded, Faults, nearest
from cluster_gw.settings.pool import ModelSettings

PREFIX: Final = "GW_"
STEP: Final = "__"
WEIGHTS: Final = "MODEL_ROUTING_OVERRIDES"
MAX_WEIGHT: Final = 2.0


class Place(msgspec.Struct, frozen=True):
    """Where a variable points: the struct that owns the field, and the field."""

    steps: tuple[str, ...]
    owner: inspect.StructType
    field: inspect.Field


def places(root: inspect.StructType, steps: tuple[str, ...] = ()) -> dict[str, Place]:
    """List every variable that can set a value, with the place it sets."""
    found: dict[str, Place] = {}
    for field in root.fields:
        here = (*steps, field.name)
        if isinstance(field.type, inspect.StructType):
            found |= places(field.type, here)
        elif _is_one_value(field.type):
            found[PREFIX + STEP.join(here).upper()] = Place(here, root, field)
    return found


def apply_environment(
    document: dict[str, Any],
    environ: Mapping[str, str],
    root: inspect.StructType,
    faults: Faults,
    read_secret: SecretReader,
) -> None:
    """Put the values of the environment into `document`; it beats the file."""
    known = places(root)
    for name in sorted(environ):
        place = known.get(name)
        if place is not None:
            _apply(document, name, Expanded(environ[name], [name]), place, faults, read_secret)
        elif name.startswith(PREFIX) and STEP in name:
            near = nearest(name, known)
            faults.warn(name, f"names no setting{f'; did you mean {near}?' if near else ''}")


def _apply(
    document: dict[str, Any],
    name: str,
    value: Expanded,
    place: Place,
    faults: Faults,
    read_secret: SecretReader,
) -> None:
    trial, path = Faults(), ".".join(place.steps)
    Checker(trial, read_secret).check_field(value, place.owner, place.field, name)
    if trial.lines and _is_tunable(place.field.type):
        for line in trial.lines:
            faults.warnings.append(f"{line} (sets {path}); it is ignored")
    elif trial.lines:
        faults.lines.extend(f"{line} (sets {path})" for line in trial.lines)
    else:
        target = document
        for step in place.steps[:-1]:
            inner = target.get(step)
            if not isinstance(inner, dict):
                inner = target[step] = {}
            target = inner
        target[place.steps[-1]] = value


def _is_one_value(kind: inspect.Type) -> bool:
    arms = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    many = (inspect.StructType, inspect.VarTupleType, inspect.DictType)
    return not any(isinstance(arm, many) for arm in arms)


def _is_tunable(kind: inspect.Type) -> bool:
    arms = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return any(isinstance(a, (inspect.IntType, inspect.FloatType, inspect.BoolType)) for a in arms)


def read_weights(
    environ: Mapping[str, str], models: Sequence[ModelSettings], faults: Faults
) -> tuple[ModelSettings, ...]:
    """Give the models with the weights of `MODEL_ROUTING_OVERRIDES`.

    It is a JSON object of model or route id to a number in 0..2, or to `{"weight": number}`. An
    entry that is neither is dropped, other text is ignored, both with a warning.
    """
    text = environ.get(WEIGHTS)
    if not text:
        return tuple(models)
    try:
        table = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        faults.warn(WEIGHTS, "is not a JSON object; it is ignored")
        return tuple(models)
    weights: dict[str, float] = {}
    ids = {m.model for m in models} | {f"{m.provider}/{m.model}" for m in models}
    for name, entry in table.items():
        weight = _weight(entry)
        if weight is None:
            faults.warn(WEIGHTS, f'"{name[:80]}" needs a number from 0 to 2; the entry is ignored')
        elif name not in ids:
            faults.warn(WEIGHTS, f'"{name[:80]}" is no model of this configuration')
        else:
            weights[name] = weight
    return tuple(_weighted(model, weights) for model in models)


def _weighted(model: ModelSettings, weights: Mapping[str, float]) -> ModelSettings:
    route = f"{model.provider}/{model.model}"
    weight = weights.get(route, weights.get(model.model))
    return model if weight is None else msgspec.structs.replace(model, weight=weight)


def _weight(entry: Any) -> float | None:
    value = entry.get("weight") if isinstance(entry, dict) else entry
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_finite(value):
        return None
    return float(value) if 0 <= value <= MAX_WEIGHT else None
