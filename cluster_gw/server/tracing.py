"""The endpoint of a surface where traces are on: each request is given its place in one."""

import msgspec

from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.exchange import Exchange, Hints
from cluster_gw.pipeline.memory import Recalled
from cluster_gw.pipeline.trace import Trace, Tracer
from cluster_gw.server.auth import Client
from cluster_gw.server.inference import Arrival, Deps, Inference
from cluster_gw.surfaces.base import Surface
from cluster_gw.telemetry.trace_context import continue_trace


class TracedInference(Inference):
    """Serves one surface, and traces what is routed; what is refused before that is not.

    Args:
        surface: of clients.
        deps: of all endpoints.
        tracer: of this worker.
    """

    def __init__(self, surface: Surface, deps: Deps, tracer: Tracer) -> None:
        super().__init__(surface, deps)
        self._tracer = tracer

    def _exchange(
        self,
        arrival: Arrival,
        client: Client,
        hints: Hints,
        context: RouteContext,
        inputs: StrategyInputs,
        recalled: Recalled,
    ) -> Exchange:
        hints = msgspec.structs.replace(hints, adds_headers=True)
        exchange = super()._exchange(arrival, client, hints, context, inputs, recalled)
        tracer = self._tracer
        place = continue_trace(arrival.scope["headers"], tracer.random, tracer.sample)
        exchange.trace = Trace(tracer=tracer, context=place)
        return exchange


def inference_of(surface: Surface, deps: Deps) -> Inference:
    """The endpoint of a surface; one without traces knows nothing of them."""
    tracer = deps.tracer
    return Inference(surface, deps) if tracer is None else TracedInference(surface, deps, tracer)
