"""`docs/configuration.md`: every setting, made of the structs that check it.

`python -m cluster_gw.settings.page` writes it; a test compares it.
"""

import inspect as source
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import inspect

from cluster_gw.core.limits.windows import Limits
from cluster_gw.settings.bounds import BOUNDS, PATTERN_WORDS, TOKEN_FIELDS
from cluster_gw.settings.checking import range_of
from cluster_gw.settings.environment import places
from cluster_gw.settings.pool import ComboSettings, Settings
from cluster_gw.settings.secret import Secret

PAGE: Final = Path("docs/configuration.md")
HEAD: Final = """\
# Configuration

Made of `cluster_gw/settings` by `make docs`; do not edit it here.

One file in YAML (JSON is YAML, too): `--config`, else `GW_CONFIG`, else `./cluster-gw.yaml`.
Unknown fields are refused. `${NAME}` and `${NAME:-default}` in any text stand for environment
variables, `$${` for a plain `${`; secrets may also read `env:NAME` or `file:/path`. A
default holds neither a brace nor another reference. Counts of tokens take `150k`, `15M` and `1.5B`.
`cluster-gw check` lists every fault.

A variable such as `GW_SERVER__PORT` or `GW_ROUTING__PEEK__IDLE_MS` beats the file, for the fields
marked with (variable). One that is out of range is ignored with a warning; a wrong name, address or
mode is a fault.

Caps of a provider may also come from `PROVIDER_DAILY_REQUEST_CAP_<PLATFORM>`,
`PROVIDER_DAILY_TOKEN_CAP_<PLATFORM>`, `PROVIDER_MINUTE_REQUEST_CAP_<PLATFORM>` and its keys'
concurrency from `MAX_CONCURRENT_REQUESTS_PER_KEY[_<PLATFORM>]`: a whole number, 0 for none; the
platform is the provider or its preset, in capitals. What a key says itself wins.

A changed file is taken over while running if it is valid; else the one before stays in force, also
for workers that start again. Changes of `server` and `redis` need a restart, and of `telemetry`
`otlp_endpoint`, `otlp_metrics`, `trace_sample` and `propagate`.
"""
OWN_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rpm": "requests a minute",
        "rpd": "requests a day",
        "tpm": "tokens a minute",
        "tpd": "tokens a day",
        "concurrency": "requests at the same time",
    }
)


def configuration_page() -> str:
    """Give the text of the page."""
    root = inspect.type_info(Settings)
    if not isinstance(root, inspect.StructType):
        raise TypeError("Settings is a struct")
    variables = {".".join(place.steps) for place in places(root).values()}
    shown: dict[type, str] = {}
    sections: list[str] = []
    for path, kind in _structs(root, ""):
        first = shown.setdefault(kind.cls, path)
        same = f"## `{path}`\n\nThe same fields as `{first}`.\n"
        sections.append(_section(path, kind, variables) if first == path else same)
    return "\n".join([HEAD, *sections])


def _structs(kind: inspect.StructType, path: str) -> Iterator[tuple[str, inspect.StructType]]:
    """List every struct with the path of its section, parents first."""
    yield path, kind
    for field in kind.fields:
        inner = _struct_in(field.type)
        if inner is not None:
            steps = f"{path}.{field.name}" if path else field.name
            yield from _structs(inner, steps + _mark(field.type))


def _struct_in(kind: inspect.Type) -> inspect.StructType | None:
    match kind:
        case inspect.StructType():
            return kind
        case inspect.VarTupleType():
            return _struct_in(kind.item_type)
        case inspect.DictType():
            return _struct_in(kind.value_type)
        case inspect.UnionType():
            found = [inner for arm in kind.types if (inner := _struct_in(arm)) is not None]
            return found[0] if found else None
        case _:
            return None


def _mark(kind: inspect.Type) -> str:
    """Tell how the path of a list or mapping of structs goes on."""
    match kind:
        case inspect.VarTupleType():
            return "[]"
        case inspect.DictType():
            return ".<name>"
        case inspect.UnionType():
            return "".join(_mark(arm) for arm in kind.types)
        case _:
            return ""


def _section(path: str, kind: inspect.StructType, variables: set[str]) -> str:
    meanings = attributes_of(kind.cls)
    lines = [f"## `{path}`" if path else "## Top level", "", _summary(kind.cls), ""]
    lines += ["| Field | Value | Default | Meaning |", "|---|---|---|---|"]
    for field in kind.fields:
        place = f"{path}.{field.name}" if path else field.name
        meaning = meanings.get(field.name, "")
        cells = (
            f"`{field.name}`{' (variable)' if place in variables else ''}",
            _value(kind, field),
            _default(field),
            meaning,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def attributes_of(owner: type) -> Mapping[str, str]:
    """Give the meaning of each field of a struct, as its docstring tells it."""
    if owner is Limits:
        return OWN_LIMITS
    _, _, text = source.cleandoc(owner.__doc__ or "").partition("\nAttributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        start = re.match(r"    (\w+): (.*)", line)
        if start is not None:
            name = start[1]
            found[name] = start[2]
        elif name:
            found[name] += f" {line.strip()}"
    return {name: meaning.strip().rstrip(".") for name, meaning in found.items()}


def _summary(owner: type) -> str:
    paragraph = source.cleandoc(owner.__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("None", "null")


def _value(owner: inspect.StructType, field: inspect.Field) -> str:
    bounds = BOUNDS.get(owner.cls, {}).get(field.name)
    if bounds is None:
        return _words(field.type, field.name)
    kind = "tokens" if field.name in TOKEN_FIELDS else _kind(field.type)
    return f"{kind}{bounds.words()}{' or null' if field.default is None else ''}"


def _kind(type_: inspect.Type) -> str:
    arms = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    return "number" if any(isinstance(arm, inspect.FloatType) for arm in arms) else "whole number"


def _words(kind: inspect.Type, name: str = "") -> str:
    match kind:
        case inspect.UnionType():
            arms = [_words(arm, name) for arm in kind.types]
            return " or ".join(sorted(arms, key=lambda arm: arm == "null"))
        case inspect.VarTupleType():
            return f"list of {_words(kind.item_type)}"
        case inspect.DictType():
            return f"mapping of name to {_words(kind.value_type)}"
        case inspect.StructType():
            return "section"
        case _:
            return _scalar(kind, name)


def _scalar(kind: inspect.Type, name: str) -> str:
    words = "null"
    match kind:
        case inspect.IntType():
            unit = "tokens" if name in TOKEN_FIELDS else "whole number"
            words = f"{unit}{range_of(kind).words()}"
        case inspect.FloatType():
            words = f"number{range_of(kind).words()}"
        case inspect.BoolType():
            words = "true or false"
        case inspect.LiteralType():
            words = " or ".join(f"`{value}`" for value in kind.values)
        case inspect.EnumType():
            words = " or ".join(f"`{value}`" for value in kind.cls)
        case inspect.CustomType():
            words = "secret"
        case inspect.StrType():
            words = PATTERN_WORDS.get(kind.pattern or "", "text").removeprefix("must be ")
    return words


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    made = isinstance(field.default_factory, type)
    return _written(field.default_factory() if made else field.default)


def _written(value: Any) -> str:
    text = f"{value}"
    match value:
        case None:
            text = "null"
        case bool():
            text = text.lower()
        case float():
            text = f"{value:g}"
        case str():
            text = f"`{value}`"
        case Secret():
            text = f"`{value.reveal()}`"  # a default is no secret
        case msgspec.Struct():
            text = "see there"
        case tuple() | dict():
            text = ", ".join(_named(item) for item in value) or "none"
    return text


def _named(item: Any) -> str:
    return f"`{item.id}`" if isinstance(item, ComboSettings) else f"`{item}`"


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(configuration_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
