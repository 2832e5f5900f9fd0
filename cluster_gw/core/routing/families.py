"""What a request for embeddings may call its model: a family, or one route of it.

Vectors of different models must never mix, so a name never stands for routes of two families, and
there is no default: who embeds with whatever is there today cannot search it tomorrow.
"""

from collections.abc import Iterable, Sequence

from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.catalog import Resolved, Route, epoch_of
from cluster_gw.units import ComboId


def family_names(routes: Iterable[Route]) -> dict[str, Resolved]:
    """Give what each name stands for; of a name with `routes` empty all are switched off.

    Names are families, then route ids and `provider:model`, then models by the name they have at a
    provider, for the whole family. Of several that are the same the first holds.

    Args:
        routes: of the catalogue, in declared order; those that make no vectors are passed over.
    """
    families: dict[str, list[Route]] = {}
    plain: dict[str, list[Route]] = {}
    models: dict[str, list[str]] = {}
    for route in routes:
        if route.embedding is None:
            continue
        families.setdefault(route.embedding.family, []).append(route)
        for name in {f"{route.provider}/{route.model}", f"{route.provider}:{route.model}"}:
            plain.setdefault(name, []).append(route)
        if route.endpoint:
            plain[route.id] = [route]
        models.setdefault(route.model, []).append(route.embedding.family)
    names = {family: _choice(family, members) for family, members in families.items()}
    for name, members in plain.items():
        names.setdefault(name, _choice(name, members))
    for model, found in models.items():
        if len(set(found)) == 1:
            names.setdefault(model, names[found[0]])
    return names


def _choice(name: str, members: Sequence[Route]) -> Resolved:
    """Routes that are tried for each other in declared order."""
    usable = tuple([route for route in members if route.enabled])
    return Resolved(
        combo=ComboId(name),
        family="classic",
        strategy="priority",
        gate=GatePolicy(),
        routes=usable,
        disabled=tuple([route for route in members if not route.enabled]),
        is_choice=True,
        epoch=epoch_of("classic", "priority", usable),
    )
