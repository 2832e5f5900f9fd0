"""How a client's `model` becomes a list of routes: every name is looked up once, ahead of requests.

Order: combo, `auto:` alias, profile, route, group; the first that has a name holds it. A request
costs one look-up of a dictionary.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.aliases import AUTO, PREFIX, WORDS
from cluster_gw.core.routing.catalog import Combo, Group, Resolved, Route, epoch_of
from cluster_gw.core.routing.endpoints import handle_of, is_at
from cluster_gw.core.routing.families import family_names
from cluster_gw.units import ComboId, RouteId

ENDPOINT: Final = "@"
ENDPOINT_ALIAS: Final = "#"
ANY_PROVIDER: Final = "custom"
CLAUDE: Final = "claude"
CLAUDE_WORDS: Final = ("opus", "sonnet", "haiku")
CLAUDE_OTHERS: Final = "default"


class NameProblem(StrEnum):
    """Why a name cannot be served."""

    UNKNOWN = "unknown"
    NOT_ALLOWED = "not_allowed"  # the client may not use it
    EMPTY = "empty"  # a profile or the default combo without a single enabled member
    DISABLED = "disabled"  # every route of that name is switched off in the catalogue
    NO_PROVIDER = "no_provider"  # the request leaves out all its providers
    EMBEDS = "embeds"  # it makes vectors, and a chat was asked of it
    NO_EMBEDDING = "no_embedding"  # it makes none, and they were asked of it


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """All routes and names of one configuration version; a reload builds a new one.

    Attributes:
        aliases: by canonical name; their words are looked up, too.
        groups: routes that are the same model; empty where models are not unified.
        unknown_model_is_default: a name that nothing has means the default combo.
        claude_names: what such a name of the Claude family means, by the word in it.
        providers: that have a route.
        joined: lists that requests put together of several names; filled as they are asked for.
        families: what requests for embeddings may name; nothing else may.
    """

    version: int
    routes: dict[RouteId, Route]
    combos: dict[ComboId, Combo]
    default_combo: ComboId
    aliases: dict[ComboId, Combo] = {}
    groups: tuple[Group, ...] = ()
    unknown_model_is_default: bool = False
    claude_names: Mapping[str, str] = {}
    providers: frozenset[str] = frozenset()
    joined: dict[object, Resolved] = {}
    families: Mapping[str, Resolved] = {}
    _at: dict[RouteId, Resolved] = {}
    _names: Mapping[str, Resolved] = {}
    _problems: Mapping[str, NameProblem] = {}

    def __post_init__(self) -> None:
        """Resolve every name once: requests ask for the same few again and again."""
        table = _Table(self.routes, self.combos[self.default_combo])
        for combo in self.combos.values():
            table.add_combo(combo)
        table.add_default()
        table.add_aliases(self.aliases)
        for combo in self.combos.values():
            if combo.is_profile:
                table.copy(f"{PREFIX}{combo.id.lower()}", combo.id)
        table.add_routes()
        table.add_groups(self.groups)
        families = family_names(self.routes.values())
        table.add_families(families)
        providers = frozenset(route.provider for route in self.routes.values())
        msgspec.structs.force_setattr(self, "providers", providers)
        msgspec.structs.force_setattr(self, "families", families)
        msgspec.structs.force_setattr(self, "_names", table.names)
        msgspec.structs.force_setattr(self, "_problems", table.problems)

    def resolve(self, model: str) -> Resolved | None:
        """Tell what `model` stands for; None when it cannot be served: `problem_of` tells why."""
        found = self._names.get(model)
        return self._resolve_loosely(model) if found is None else found

    def problem_of(self, model: str) -> NameProblem:
        """Tell why a name does not resolve."""
        instead = self._instead(model)
        known = self._problems.get(_folded(model))
        if known is None and instead is not None:
            known = self._problems.get(instead)
        return known or NameProblem.UNKNOWN

    def problem_of_embedding(self, model: str) -> NameProblem:
        """Tell why a name is that of no model that makes vectors."""
        if model in self.families:
            return NameProblem.DISABLED
        name = _folded(model)
        is_other = name in self._names or name in self._problems
        return NameProblem.NO_EMBEDDING if is_other else NameProblem.UNKNOWN

    def _resolve_loosely(self, model: str) -> Resolved | None:
        """Look for names that are written in more ways than one, then for the default."""
        name = _folded(model)
        found = self._names.get(name)
        if found is None and name not in self._problems:
            found = self._at_endpoint(name)
        if found is None and name not in self._problems:
            instead = self._instead(name)
            return None if instead is None else self._names.get(instead)
        return found

    def _instead(self, name: str) -> str | None:
        """The name that stands for one that nothing has; None where none does."""
        folded = name.lower()
        if self.claude_names and CLAUDE in folded:
            word = next((word for word in CLAUDE_WORDS if word in folded), CLAUDE_OTHERS)
            if word in self.claude_names:
                return self.claude_names[word]
        return "" if self.unknown_model_is_default else None

    def _at_endpoint(self, name: str) -> Resolved | None:
        """Find the one route that `provider:model#endpoint` means; None when that is not one.

        Also `provider/model@endpoint`. The endpoint is an address or its handle, the provider's own
        among them; a provider `custom` stands for all. What was found is kept, once for each route.
        """
        mark = ENDPOINT_ALIAS if ENDPOINT_ALIAS in name else ENDPOINT
        plain, is_marked, endpoint = name.rpartition(mark)
        if not is_marked:
            return None
        between = ":" if mark == ENDPOINT_ALIAS else "/"
        found = [
            route
            for route in self.routes.values()
            if route.embedding is None
            and plain.endswith(f"{between}{route.model}")
            and plain.removesuffix(f"{between}{route.model}") in {route.provider, ANY_PROVIDER}
            and is_at(route.base_url, endpoint, route.endpoint)
        ]
        if len(found) != 1 or not found[0].enabled:
            return None
        route = found[0]
        known = self._names.get(route.id)
        if known is not None and known.routes == (route,):
            return known
        if route.id not in self._at:  # a model behind relays has the name of its own address
            combo = ComboId(f"{route.id}{ENDPOINT}{handle_of(route.base_url)}")
            self._at[route.id] = msgspec.structs.replace(alone(route), combo=combo, is_choice=True)
        return self._at[route.id]


def _folded(model: str) -> str:
    """The name with `auto:` words in lower case: their case does not matter."""
    is_auto = model[: len(PREFIX)].lower() == PREFIX
    return model.lower() if is_auto else model


class _Table:
    """Names in the making; what has a name first keeps it."""

    def __init__(self, routes: Mapping[RouteId, Route], default: Combo) -> None:
        self._routes = routes
        self._default = default
        declared = dict.fromkeys([*(member.route for member in default.members), *routes])
        self._places = {route: place for place, route in enumerate(declared)}
        self.names: dict[str, Resolved] = {}
        self.problems: dict[str, NameProblem] = {}

    def add_combo(self, combo: Combo) -> None:
        """A combo by its id; without any enabled member a profile cannot be served."""
        resolved = _of_combo(combo, self._routes)
        may_be_empty = combo.is_profile or combo is self._default
        if (may_be_empty and combo.members and not resolved.routes) or (
            combo.is_profile and not combo.members
        ):
            self.problems[combo.id] = NameProblem.EMPTY
        else:
            self.names[combo.id] = resolved

    def add_default(self) -> None:
        """No name at all, `auto` and `auto:` are the default combo."""
        for name in ("", AUTO, PREFIX):
            self.copy(name, self._default.id)

    def add_aliases(self, aliases: Mapping[ComboId, Combo]) -> None:
        """Aliases by their canonical name and by every word."""
        for alias in aliases.values():
            resolved = _of_combo(alias, self._routes)
            if resolved.routes:
                self._offer(alias.id, msgspec.structs.replace(resolved, is_choice=True))
            else:
                self._refuse(alias.id, NameProblem.EMPTY)
        for word, name in WORDS.items():
            if name in aliases:
                self.copy(f"{PREFIX}{word}", name)

    def add_routes(self) -> None:
        """Routes by id and alias; a model behind relays by the name they share, too."""
        shared: dict[str, list[Route]] = {}
        for route in self._routes.values():
            if route.embedding is not None:
                continue
            plain = f"{route.provider}/{route.model}"
            shared.setdefault(plain, []).append(route)
            if route.endpoint:
                handle = f"{route.provider}:{route.model}{ENDPOINT_ALIAS}{route.endpoint}"
                self._add_choice((route.id, handle), [route])
        for plain, routes in shared.items():
            first = routes[0]
            # Several are called by the alias: what a client may use is told by route ids, and one
            # of them has the other name.
            self._add_choice((f"{first.provider}:{first.model}", plain), routes)

    def add_groups(self, groups: Sequence[Group]) -> None:
        """Models by their own id and by the name of their group, in one list."""
        by_model: dict[str, list[Group]] = {}
        for group in groups:
            for model in dict.fromkeys(self._routes[member].model for member in group.members):
                by_model.setdefault(model, []).append(group)
        by_slug = {group.slug: group for group in groups}
        for name in dict.fromkeys([*by_model, *by_slug]):
            literal, named = list(by_model.get(name, ())), by_slug.get(name)
            only_by_slug: list[Group] = []
            if named is not None and named not in literal:
                (literal if named.is_named else only_by_slug).append(named)
            exact = self._members(literal)
            slug = self._members(only_by_slug)  # no route is in two groups
            self._add_choice((name,), [*exact, *slug], (0,) * len(exact) + (1,) * len(slug))

    def add_families(self, names: Iterable[str]) -> None:
        """Names of models that make vectors: whoever asks a chat of them is told so."""
        for name in names:
            self._refuse(name, NameProblem.EMBEDS)

    def copy(self, name: str, other: str) -> None:
        """Give what has one name another one, too."""
        if other in self.problems:
            self._refuse(name, self.problems[other])
        elif other in self.names:
            self._offer(name, self.names[other])

    def _members(self, groups: Iterable[Group]) -> list[Route]:
        """Routes of groups as the default combo orders them, then those it does not have."""
        wanted = {member for group in groups for member in group.members}
        return [self._routes[route] for route in sorted(wanted, key=self._places.__getitem__)]

    def _add_choice(
        self, names: tuple[str, ...], routes: Sequence[Route], tiers: tuple[int, ...] = ()
    ) -> None:
        """Routes that are tried for each other, and never one besides, under all names left.

        It is called by the first of them, which no combo has: a client that may use a combo of some
        name may not use what else would have it.
        """
        free = [name for name in names if name not in self.names and name not in self.problems]
        tiers = tiers or (0,) * len(routes)
        usable = [(r, tier) for r, tier in zip(routes, tiers, strict=True) if r.enabled]
        if not free:
            return
        if not usable:
            self.problems.update((name, NameProblem.DISABLED) for name in free)
            return
        is_one = len(usable) == 1
        found = self._alone(usable[0][0]) if is_one else self._choice(free[0], usable)
        self.names.update((name, found) for name in free)

    def _choice(self, name: str, usable: Sequence[tuple[Route, int]]) -> Resolved:
        """Several routes, ordered as the default combo orders its own."""
        default, routes = self._default, tuple(route for route, _ in usable)
        return Resolved(
            combo=ComboId(name),
            family=default.family,
            strategy=default.strategy,
            gate=default.gate,
            scoring=default.scoring,
            sticky=default.sticky,
            routes=routes,
            tiers=tuple(tier for _, tier in usable),
            is_choice=True,
            epoch=epoch_of(default.family, default.strategy, routes, default.epoch),
        )

    def _alone(self, route: Route) -> Resolved:
        known = self.names.get(route.id)
        return known if known is not None and known.routes == (route,) else alone(route)

    def _offer(self, name: str, resolved: Resolved) -> None:
        if name not in self.problems:
            self.names.setdefault(name, resolved)

    def _refuse(self, name: str, problem: NameProblem) -> None:
        if name not in self.names:
            self.problems.setdefault(name, problem)


def _of_combo(combo: Combo, routes: Mapping[RouteId, Route]) -> Resolved:
    members = [(routes[m.route], m.enabled) for m in combo.members]
    usable = tuple(r for r, enabled in members if enabled and r.enabled)
    return Resolved(
        combo=combo.id,
        family=combo.family,
        strategy=combo.strategy,
        gate=combo.gate,
        scoring=combo.scoring,
        sticky=combo.sticky,
        routes=usable,
        disabled=tuple(r for r, enabled in members if not (enabled and r.enabled)),
        epoch=epoch_of(combo.family, combo.strategy, usable, combo.epoch),
    )


def alone(route: Route) -> Resolved:
    """What the name of a single route stands for."""
    return Resolved(
        combo=ComboId(route.id),
        family="classic",
        strategy="priority",
        gate=GatePolicy(),
        routes=(route,),
        epoch=epoch_of("classic", "priority", (route,)),
    )
