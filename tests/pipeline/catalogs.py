"""Small catalogues for tests of routing and of the loop."""

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.catalog import Combo, Key, Member, Route
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.units import ComboId, KeyId, RouteId

UNLIMITED = Limits()


def make_key(name: str, provider: str = "p") -> Key:
    return Key(id=KeyId(name), provider=provider, account=name)


def make_route(
    model: str,
    *,
    provider: str = "p",
    keys: tuple[Key, ...] | None = None,
    limits: Limits = UNLIMITED,
    tools: bool = True,
    vision: bool = True,
    context_window: int | None = None,
    quirks: frozenset[str] = frozenset(),
    base_url: str = "http://127.0.0.1:1/v1",
    embedding: EmbeddingModel | None = None,
) -> Route:
    return Route(
        id=RouteId(f"{provider}/{model}"),
        provider=provider,
        model=model,
        dialect=Dialect.OPENAI,
        base_url=base_url,
        limits=limits,
        tools=tools,
        vision=vision,
        context_window=context_window,
        quirks=quirks,
        embedding=embedding,
        keys=(make_key("k", provider),) if keys is None else keys,
    )


def make_combo(name: str, *members: Member, strategy: str = "priority") -> Combo:
    return Combo(
        id=ComboId(name), family="classic", strategy=strategy, members=members, gate=GatePolicy()
    )


def make_catalog(*routes: Route, combos: tuple[Combo, ...] = ()) -> Catalog:
    everything = make_combo("auto", *(Member(route=route.id) for route in routes))
    return Catalog(
        version=1,
        routes={route.id: route for route in routes},
        combos={combo.id: combo for combo in (everything, *combos)},
        default_combo=ComboId("auto"),
    )


def make_request(model: str = "", **facts: object) -> ChatRequest:
    return ChatRequest(dialect=Dialect.OPENAI, model=model, stream=False, fields={}, **facts)  # type: ignore[arg-type]
