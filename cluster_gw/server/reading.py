"""From the bytes of a request to what routing needs to know of it (rooms 2 and 3)."""

from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.wishes import NameFault, choose
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.exchange import Hints
from cluster_gw.server.answers import name_fault
from cluster_gw.server.auth import Client
from cluster_gw.server.guardrails import bounded_request
from cluster_gw.server.serving import Serving
from cluster_gw.surfaces.base import Surface


def read_request(
    surface: Surface, serving: Serving, client: Client, hints: Hints, body: bytes
) -> RouteContext | ErrorBody:
    """Decode a request and find what it asks for; or why it cannot be served.

    Args:
        surface: of the API it was sent to.
        serving: the configuration in force.
        client: who asks.
        hints: what came in headers.
        body: as it was sent.
    """
    request = surface.decode_request(body)
    if type(request) is ErrorBody:
        return request
    routes = serving.runtime.catalog
    resolved = routes.resolve(request.model) if request.embedding is None else None
    if resolved is None or request.wishes is not None or not client.may_use(resolved.combo):
        chosen = choose(routes, request, client.scope)
        if isinstance(chosen, NameFault):
            return name_fault(chosen)
        resolved = chosen
    rails = serving.runtime.policy.guardrails
    if rails.bounds_output:
        bounded = bounded_request(rails, request)
        if isinstance(bounded, ErrorBody):
            return bounded
        request = bounded
    return build_context(
        request,
        resolved,
        client.id,
        run_label=hints.run_label,
        session_label=hints.session_label,
        task=hints.task,
    )
