"""The same model at several providers as one name: what belongs together, and what it is called.

Pure, and independent of the order in which models are declared, but for ties that nothing else
decides.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from cluster_gw.core.routing.catalog import Group
from cluster_gw.units import RouteId

SUFFIX: Final = re.compile(r"\s*\([^()]*\)\s*$")
FREE: Final = re.compile(r"\s+free$", re.IGNORECASE)
SEPARATORS: Final = re.compile(r"[\s_-]+")
NOT_OF_A_SLUG: Final = re.compile(r"[^a-z0-9.\s-]")
DASHES: Final = re.compile(r"[\s-]+")
UNRANKED: Final = math.inf
NAMELESS: Final = "model"  # slug of a name in which no letter or digit is left


class MergeRule(Protocol):
    """Names and routes that count as one group.

    Attributes:
        into: name of the group.
        keys: names of models, in any spelling that gives the same key, or route ids.
    """

    @property
    def into(self) -> str: ...  # noqa: D102

    @property
    def keys(self) -> tuple[str, ...]: ...  # noqa: D102


class SplitRule(Protocol):
    """A route that leaves the group its name would put it in.

    Attributes:
        member: route id; that of a model behind relays stands for all of them.
        group_key: name of the group it gets instead; None is one of its own.
    """

    @property
    def member(self) -> str: ...  # noqa: D102

    @property
    def group_key(self) -> str | None: ...  # noqa: D102


class Grouped(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at of a route.

    Attributes:
        name: of its model, for people.
        rank: of its intelligence, 1 is the best; None when nobody said.
    """

    id: RouteId
    provider: str
    model: str
    name: str
    endpoint: str = ""
    rank: int | None = None

    def is_called(self, text: str) -> bool:
        """Whether a text is its id, or that of its model whatever the relay."""
        plain, colon = f"{self.provider}/{self.model}", f"{self.provider}:{self.model}"
        return text in {self.id, plain, colon, f"{colon}#{self.endpoint}"}


class _Token(msgspec.Struct, frozen=True, kw_only=True):
    """What a route is grouped by; `label` is the operator's own name for the group."""

    key: str
    label: str | None = None
    is_named: bool = False


def group_routes(
    routes: Sequence[Grouped], merges: Sequence[MergeRule] = (), splits: Sequence[SplitRule] = ()
) -> tuple[Group, ...]:
    """Give all groups, in the order of their keys; each route is in exactly one.

    Args:
        routes: of the catalogue, in declared order.
        merges: of the operator; of two that name a route the first holds.
        splits: of the operator; they win over merges.
    """
    members: dict[str, list[Grouped]] = {}
    tokens: dict[str, _Token] = {}
    for route in routes:
        token = _token(route, merges, splits)
        members.setdefault(token.key, []).append(route)
        first = tokens.setdefault(token.key, token)
        if token.is_named and not first.is_named:
            tokens[token.key] = token
    used: set[str] = set()
    groups = []
    for key in sorted(members):
        label = tokens[key].label or _label(members[key])
        slug = _free(slug_of(label), used)
        used.add(slug)
        groups.append(
            Group(
                slug=slug,
                label=label,
                members=tuple(route.id for route in members[key]),
                is_named=tokens[key].is_named,
            )
        )
    return tuple(groups)


def shown_name(name: str) -> str:
    """A name without what only tells the provider or the price: `(Groq)`, `free`."""
    text, before = name.strip(), None
    while text != before:
        before = text
        text = FREE.sub("", SUFFIX.sub("", text).strip()).strip()
    return text


def key_of(name: str) -> str:
    """What names of the same model have in common; `Command R` and `Command R+` differ."""
    return SEPARATORS.sub(" ", shown_name(name).lower()).strip()


def slug_of(name: str) -> str:
    """A name as clients write it: lower case, digits, dots and dashes."""
    return DASHES.sub("-", NOT_OF_A_SLUG.sub("", name.lower())).strip("-") or NAMELESS


def without_effect(
    routes: Sequence[Grouped], merges: Iterable[MergeRule], splits: Iterable[SplitRule]
) -> list[tuple[str, str]]:
    """What of the operator's names is about no route: place below `unify`, and the name."""
    keys = {key_of(route.name) for route in routes}
    found = []
    for i, merge in enumerate(merges):
        for j, text in enumerate(merge.keys):
            if key_of(text) not in keys and not any(r.is_called(text) for r in routes):
                found.append((f"merges[{i}].keys[{j}]", text))
    for i, split in enumerate(splits):
        if not any(r.is_called(split.member) for r in routes):
            found.append((f"splits[{i}].member", split.member))
    return found


def _token(route: Grouped, merges: Sequence[MergeRule], splits: Sequence[SplitRule]) -> _Token:
    for split in splits:
        if route.is_called(split.member):
            if split.group_key is None:
                # No name normalises to a key with two spaces, so nothing else joins it.
                return _Token(key=f"  {split.member}", is_named=True)
            return _Token(
                key=key_of(split.group_key), label=shown_name(split.group_key), is_named=True
            )
    key = key_of(route.name)
    for merge in merges:
        if any(route.is_called(text) or key_of(text) == key for text in merge.keys):
            return _Token(key=key_of(merge.into), label=shown_name(merge.into), is_named=True)
    return _Token(key=key)


def _label(members: Sequence[Grouped]) -> str:
    """The name of the best ranked member; of equal ones the shortest, then the first by id."""
    best = min(members, key=lambda r: (r.rank or UNRANKED, len(shown_name(r.name)), r.id))
    return shown_name(best.name)


def _free(slug: str, used: set[str]) -> str:
    """A slug nobody has: with `-2`, `-3` and so on where it is taken."""
    found, number = slug, 2
    while found in used:
        found, number = f"{slug}-{number}", number + 1
    return found
