"""What would happen to a request if it came now: asked by operators, answered without a trace."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from cluster_gw.core.routing.explanation import Explanation
from cluster_gw.core.routing.posterior import Chance
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.pipeline.backlog import KeyTurns
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.continuing import is_lost
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.explaining import explain
from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.pipeline.plan import make_ranking, strategy_of
from cluster_gw.pipeline.trail import skip_excluded
from cluster_gw.pipeline.view import View
from cluster_gw.server.answers import answer_not_found
from cluster_gw.server.auth import ANONYMOUS, Client
from cluster_gw.server.hints import decode_hints
from cluster_gw.server.reading import read_request
from cluster_gw.server.serving import Serving
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.surfaces.refusals import refused

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {path.removeprefix("/v1/").partition("/")[0]: path for path in SURFACES}
)
"""What a surface is called: the first word of its path."""
GEMINI: Final = "gemini"  # its calls have the model in their paths; here it stands in the body
LABEL: Final = "explain"
T = TypeVar("T")
ANYBODY: Final = Client(id=ANONYMOUS, detail=True)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The question.

    Attributes:
        request: a body, as a client would send it.
        surface: the API it would be sent to.
        client: who would ask; None for somebody who may ask for everything.
        headers: what would come along.
        sample: draw as for a real request; otherwise means stand in for draws.
    """

    request: msgspec.Raw
    surface: str = "chat"
    client: str | None = None
    headers: dict[str, str] = {}
    sample: bool = False


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know now.

    Attributes:
        serving: the configuration in force.
        view: the snapshot in force.
        turns: among the keys of each route; none is taken.
    """

    serving: Serving
    view: View
    foresight: Foresight
    clock: Clock
    chance: Chance
    turns: KeyTurns


async def explain_request(asked: Asked, scene: Scene) -> Explanation:
    """Tell how a request would be ranked and what would refuse it.

    Raises:
        ClientFault: it could not be served at all; the error is the one its client would get.
        StoreLostError: Redis is away.
    """
    surface, client = surface_of(asked.surface), _client(asked.client, scene.serving)
    headers = {as_sent(name.lower()): as_sent(text) for name, text in asked.headers.items()}
    hints = _accepted(decode_hints(headers, LABEL, may_see_detail=True))
    context = _accepted(read_request(surface, scene.serving, client, hints, bytes(asked.request)))
    recalled = await scene.foresight.recall(context, strategy_of(context))
    if is_lost(context, recalled.keeper):
        raise ClientFault(answer_not_found())
    now_s = scene.clock.monotonic_s()
    inputs = StrategyInputs(
        cursor=recalled.cursor,
        last_good=recalled.last_good,
        pinned=recalled.pinned,
        signals=scene.view.signals,
        chance=scene.chance if asked.sample else None,
        now_s=now_s,
        toolless=scene.foresight.conditions.toolless,
    )
    exchange = Exchange(
        id=LABEL,
        client=client.id,
        share=client.share,
        request=context.request,
        surface=surface,
        hints=hints,
        runtime=scene.serving.runtime,
        context=context,
        ranking=make_ranking(context, inputs),
        started_s=now_s,
        deadline_s=math.inf,
        turns=scene.turns,
        inputs=inputs,
        recalled=recalled,
    )
    exchange.skipped.extend(skip_excluded(exchange.ranking.excluded))
    await scene.foresight.ask(exchange)
    return explain(exchange, scene.clock.wall_ms())


def as_sent(text: str) -> bytes:
    """The bytes of a header; those of a command line that are no UTF-8 are what they were."""
    return text.encode(errors="surrogateescape")


def surface_of(name: str) -> Surface:
    """The codec of an API by its name or its path.

    Raises:
        ClientFault: there is none of that name.
    """
    if name == GEMINI:
        return GenerateContent()
    path = NAMES.get(name) or (name if name in SURFACES else None)
    if path is None:
        known = ", ".join((*NAMES, GEMINI))
        problem = f"there is no surface '{name[:64]}'; {known}"
        raise ClientFault(refused("invalid_request", problem, "surface"))
    return SURFACES[path]


def _client(name: str | None, serving: Serving) -> Client:
    if name is None:
        return ANYBODY
    client = serving.clients.named(name)
    if client is None:
        problem = f"there is no client '{name[:64]}'"
        raise ClientFault(refused("invalid_request", problem, "client"))
    return client


def _accepted(read: T | ErrorBody) -> T:
    if isinstance(read, ErrorBody):
        raise ClientFault(read)
    return read
