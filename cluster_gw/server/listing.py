"""`GET /v1/models` and `GET /v1/models/{id}`: what this client may ask for as `model`."""

from collections.abc import MutableMapping
from typing import Any

from cluster_gw.core.routing.catalog import Catalog, Combo, Route
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Reply, Send
from cluster_gw.server.answers import model_not_found, send_error
from cluster_gw.server.auth import Client
from cluster_gw.server.body import Receive
from cluster_gw.server.hints import echo_label
from cluster_gw.server.inference import Deps
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.models import ListedModel, encode_model, encode_models


class Models:
    """Serves the listing."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._surface = ChatCompletions()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        _receive: Receive,
        send: Send,
    ) -> None:
        """Serve one listing (ASGI)."""
        headers = dict(scope["headers"])
        request_id = self._deps.mint_id()
        label = echo_label(headers, request_id)
        serving = self._deps.current.serving
        client = serving.clients.identify(headers)
        answer: bytes | ErrorBody
        if isinstance(client, ErrorBody):
            answer = await self._deps.guard.judge(client, scope, serving.strangers)
        else:
            answer = list_for(serving.runtime.catalog, client, scope["path_params"].get("model"))
        reply = Reply(send)
        if isinstance(answer, ErrorBody):
            await send_error(reply, self._surface, answer, label=label, request_id=request_id)
        else:
            await reply.whole(200, [*identity_headers(label, request_id), JSON_TYPE], answer)


def list_for(catalog: Catalog, client: Client, model: str | None) -> bytes | ErrorBody:
    """Encode all models of a client, or one of them; an error when it has no such model."""
    listed = [
        *(_combo(catalog, c) for c in catalog.combos.values() if client.may_use(c.id)),
        *(_route(r) for r in catalog.routes.values() if client.may_use(r.id)),
    ]
    if model is None:
        return encode_models(listed)
    for entry in listed:
        if entry.id == model:
            return encode_model(entry)
    return model_not_found(model)


def _combo(catalog: Catalog, combo: Combo) -> ListedModel:
    routes = [catalog.routes[m.route] for m in combo.members if m.enabled]
    routes = [route for route in routes if route.enabled]
    windows = [r.context_window for r in routes if r.context_window is not None]
    return ListedModel(
        id=combo.id,
        owned_by="cluster-gw",
        name=combo.id,
        context_window=max(windows, default=None),
        available=any(r.keys for r in routes),
    )


def _route(route: Route) -> ListedModel:
    return ListedModel(
        id=route.id,
        owned_by=route.provider,
        name=route.name or route.model,
        context_window=route.context_window,
        available=route.enabled and bool(route.keys),
    )
