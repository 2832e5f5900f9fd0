"""Models that make vectors: what is declared of them, and what is wrong with it."""

from collections.abc import Sequence
from typing import Final

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import Dialect
from cluster_gw.core.routing.aliases import AUTO, PREFIX
from cluster_gw.settings.bundled import provider_facts
from cluster_gw.settings.faults import Absent, Faults, at_name, shown
from cluster_gw.settings.pool import ModelSettings, Settings
from cluster_gw.settings.relays import Place
from cluster_gw.settings.written import Document

GEMINI_INPUTS: Final = 100  # of one `batchEmbedContents`


def embedding_of(model: ModelSettings, dialect: Dialect) -> EmbeddingModel | None:
    """Give what a model that makes vectors does; None for one that makes none.

    Args:
        model: as configured.
        dialect: of its provider.
    """
    own, is_gemini = model.embedding, dialect is Dialect.GEMINI
    if own is None:
        return None
    return EmbeddingModel(
        family=own.family or model.model,
        dimensions=own.dimensions,
        sizes=own.sizes,
        max_input_tokens=own.max_input_tokens,
        max_inputs=own.max_inputs or (GEMINI_INPUTS if is_gemini else None),
        takes_tokens=not is_gemini if own.tokens is None else own.tokens,
    )


def families_of(settings: Settings) -> list[str]:
    """List the families of a configuration, each once."""
    made = [m.embedding.family or m.model for m in settings.models if m.embedding is not None]
    return list(dict.fromkeys(made))


def is_plain(name: str) -> bool:
    """Tell whether a name can be written on a line: printable and without spaces."""
    return name.isprintable() and " " not in name


def taken_names(settings: Settings, places: Sequence[Place]) -> dict[str, str]:
    """Name what has a name already that no family may have, by that name."""
    chats = [model.model for model in settings.models if model.embedding is None]
    taken = dict.fromkeys(chats, "a model that chats")
    for place in places:
        taken[place.id] = taken[place.plain] = "a route"
        taken[f"{place.model.provider}:{place.model.model}"] = "a route"
    return taken | {combo.id: "a combo" for combo in settings.combos}


def problem_of(family: str, taken: dict[str, str]) -> str | None:
    """Tell what is wrong with the name of a family; None when nothing is."""
    if not is_plain(family):
        return "must be printable and without spaces"
    if family in taken:
        return f"{shown(family)} is {taken[family]}; name it otherwise"
    if family.lower() == AUTO or family.lower().startswith(PREFIX):
        return f"{shown(family)} is one of the gateway's own names; name it otherwise"
    return None


def check_embeddings(
    settings: Settings, document: Document, places: Sequence[Place], faults: Faults
) -> None:
    """Report families that contradict themselves or have the name of something else."""
    taken = taken_names(settings, places)
    first: dict[str, tuple[str, int]] = {}
    for path, model in document.items("models", settings.models):
        own = model.embedding
        if own is None:
            continue
        family, place = own.family or model.model, at_name(path, "embedding")
        provider = settings.providers.get(model.provider)
        if provider is not None and provider_facts(provider).dialect is Dialect.ANTHROPIC:
            faults.add(place, "there are no embeddings in the dialect of its provider, anthropic")
        problem = None if isinstance(model.model, Absent) else problem_of(family, taken)
        if problem and (own.family or is_plain(family)):  # else it is told of the model already
            faults.add(at_name(place, "family"), problem)
        if own.dimensions is None:
            continue
        there, dimensions = first.setdefault(family, (place, own.dimensions))
        if dimensions != own.dimensions:
            faults.add(
                at_name(place, "dimensions"),
                f"{own.dimensions} is not the {dimensions} of {there}, of the same family",
            )
        if any(size >= own.dimensions for size in own.sizes or ()):
            faults.add(at_name(place, "sizes"), f"must be below dimensions, {own.dimensions}")


def embedding_routes(places: Sequence[Place]) -> frozenset[str]:
    """Everything by which a member of a combo may name a model that makes vectors."""
    made = [place for place in places if place.model.embedding is not None]
    return frozenset(name for place in made for name in (place.plain, place.id))
