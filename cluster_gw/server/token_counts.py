"""Counts of tokens: the gateway's own estimate, without a call to any provider."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from cluster_gw.core.limits.demand import estimate_demand
from cluster_gw.core.routing.wishes import NameFault, choose
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Reply, Send
from cluster_gw.pipeline.vendor_headers import id_headers
from cluster_gw.server.answers import name_fault, send_error
from cluster_gw.server.body import ClientLeft, Receive, drain_unread, read_body
from cluster_gw.server.hints import echo_label
from cluster_gw.server.inference import Deps
from cluster_gw.surfaces.base import Surface
from cluster_gw.telemetry import catalog
from cluster_gw.wire.json_codec import write


class TokenCounts:
    """Answers how many tokens a request of one surface would take in.

    Args:
        surface: what reads the request.
        deps: what it works with.
        member: what the answer calls the number.
    """

    def __init__(self, surface: Surface, deps: Deps, member: str = "input_tokens") -> None:
        self._surface = surface
        self._deps = deps
        self._member = member

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one count (ASGI)."""
        headers = dict(scope["headers"])
        request_id = self._deps.mint_id()
        label = echo_label(headers, request_id)
        counted = await self._count(scope, headers, receive)
        reply = Reply(send)
        if isinstance(counted, ErrorBody):
            self._deps.registry.add(catalog.CLIENT_FAULTS, counted.code)
            await send_error(reply, self._surface, counted, label=label, request_id=request_id)
        elif isinstance(counted, int):
            own = id_headers(self._surface.dialect, request_id)
            answer = [*identity_headers(label, request_id), *own, JSON_TYPE]
            await reply.whole(200, answer, write({self._member: counted}))

    async def _count(
        self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes], receive: Receive
    ) -> int | ErrorBody | ClientLeft:
        """Authenticate, read and estimate; who may not use the model is not told either."""
        serving = self._deps.current.serving
        client = serving.clients.identify(headers)
        if isinstance(client, ErrorBody):
            refusal = await self._deps.guard.judge(client, scope, serving.strangers)
            await drain_unread(receive, headers)
            return refusal
        body = await read_body(receive, headers, serving.max_body_bytes)
        if not isinstance(body, bytes):
            return body
        request = self._surface.decode_request(body)
        if isinstance(request, ErrorBody):
            return request
        chosen = choose(serving.runtime.catalog, request, client.scope)
        if isinstance(chosen, NameFault):
            return name_fault(chosen)
        return estimate_demand(request).input_tokens
