"""`GET /v1/models` and `GET /v1/models/{id}`: what this client may ask for as `model`."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from cluster_gw.core.routing.aliases import AUTO, PREFIX
from cluster_gw.core.routing.catalog import Resolved, Route
from cluster_gw.core.routing.constraints import DROPS_FORMAT
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.core.routing.wishes import within
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Reply, Send
from cluster_gw.pipeline.vendor_headers import id_headers
from cluster_gw.server.answers import model_not_found, send_error
from cluster_gw.server.auth import Client
from cluster_gw.server.body import Receive
from cluster_gw.server.hints import echo_label
from cluster_gw.server.inference import Deps
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.surfaces.gemini_models import (
    GeminiPage,
    encode_gemini_model,
    encode_gemini_models,
)
from cluster_gw.surfaces.messages_models import Page, encode_vendor_model, encode_vendor_models
from cluster_gw.surfaces.models import ListedModel, encode_model, encode_models
from cluster_gw.units import ComboId

OWNER: Final = "cluster-gw"
NO_KEY: Final = "no_key"
OFF: Final = "disabled"
TOOL_PARAMETERS: Final = ("tools", "tool_choice")
FORMAT_PARAMETERS: Final = ("response_format",)
EMBEDDING_PARAMETERS: Final = ("dimensions", "encoding_format")
VERSION_HEADER: Final = b"anthropic-version"
GOOGLE_HEADER: Final = b"x-goog-api-client"  # what Google's clients say of themselves
GEMINI_API: Final = "/v1beta/"
GEMINI: Final = GenerateContent()  # of errors; each call has its own
MAX_LIMIT: Final = 1000
NARROWING: Final = ("available", "connected", "ready")


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is listed.

    Attributes:
        name: for people.
        is_alias: it stands for a way to choose among everything.
    """

    id: str
    name: str
    is_alias: bool = False


class Models:
    """Serves the listing."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

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
        # Which of three shapes is known to who asks; all vendors have the same path.
        is_vendor = VERSION_HEADER in headers
        surface = SURFACES["/v1/messages" if is_vendor else "/v1/chat/completions"]
        page: Page | GeminiPage | None = page_of(scope["query_string"]) if is_vendor else None
        if GOOGLE_HEADER in headers or scope["path"].startswith(GEMINI_API):
            surface, page = GEMINI, gemini_page_of(scope["query_string"])
        answer: bytes | ErrorBody
        if isinstance(client, ErrorBody):
            answer = await self._deps.guard.judge(client, scope, serving.strangers)
        else:
            answer = list_for(
                serving.runtime.catalog,
                client,
                scope["path_params"].get("model"),
                only_available=wants_available(scope["query_string"]),
                page=page,
            )
        reply = Reply(send)
        if isinstance(answer, ErrorBody):
            await send_error(reply, surface, answer, label=label, request_id=request_id)
        else:
            ids = [
                *identity_headers(label, request_id),
                *id_headers(surface.dialect, request_id),
            ]
            await reply.whole(200, [*ids, JSON_TYPE], answer)


def list_for(
    catalog: Catalog,
    client: Client,
    model: str | None,
    *,
    only_available: bool = False,
    page: Page | GeminiPage | None = None,
) -> bytes | ErrorBody:
    """Encode all models of a client, or one of them; an error when it has no such model.

    Args:
        catalog: of this configuration.
        client: who asks.
        model: the one that is asked for, by any of its names; None for all that are listed.
        only_available: names that cannot serve are left out.
        page: the part that is wanted, in Anthropic's shape or Gemini's; None for all, in OpenAI's.
    """
    if model is not None:
        known = catalog.resolve(model) or catalog.families.get(model)
        # Behind a slash too many no name stands, which a request means the default by.
        entry = _entry(catalog, client, _label(catalog, model, known)) if model else None
        if entry is None or (entry.is_embedding and isinstance(page, Page)):
            return model_not_found(model)
        if isinstance(page, GeminiPage):
            return encode_gemini_model(entry)
        return encode_model(entry) if page is None else encode_vendor_model(entry)
    entries = [_entry(catalog, client, label) for label in _labels(catalog, client)]
    shown = [one for one in entries if one is not None and (one.available or not only_available)]
    if page is None:
        return encode_models(shown)
    if isinstance(page, GeminiPage):
        return encode_gemini_models(shown, page)
    # Anthropic's API has no embeddings.
    return encode_vendor_models([one for one in shown if not one.is_embedding], page)


def _labels(catalog: Catalog, client: Client) -> Iterator[Label]:
    """Names in the order of the listing: combos, `auto`, profiles, aliases, groups, families,
    routes.

    Of several names for the same thing one is listed. An alias is useful to clients that may use
    everything; a group where there are several routes to choose from.
    """
    listed: set[str] = set()
    for label in _all_labels(catalog):
        is_useful = not label.is_alias or client.may_use(ComboId(label.id))
        if is_useful and label.id not in listed:
            listed.add(label.id)
            yield label


def _all_labels(catalog: Catalog) -> Iterator[Label]:
    for combo in catalog.combos.values():
        yield Label(id=combo.id, name=combo.id)
    yield Label(id=AUTO, name=AUTO)
    for combo in catalog.combos.values():
        if combo.is_profile:
            yield Label(id=f"{PREFIX}{combo.id}", name=combo.id)
    for alias in catalog.aliases:
        yield Label(id=alias, name=alias, is_alias=True)
    for group in catalog.groups:
        if len(group.members) > 1:
            yield Label(id=group.slug, name=group.label)
    for route in catalog.routes.values():
        if route.embedding is not None:
            yield Label(id=route.embedding.family, name=route.embedding.family)
    for route in catalog.routes.values():
        yield Label(id=route.id, name=route.name or route.model)


def _label(catalog: Catalog, model: str, resolved: Resolved | None) -> Label:
    """The name of a model by whatever name it was asked for."""
    for label in _all_labels(catalog):
        if label.id == model:
            return label
    is_route = resolved is not None and len(resolved.routes) == 1
    route = resolved.routes[0] if resolved is not None and is_route else None
    return Label(id=model, name=model if route is None else route.name or route.model)


def _entry(catalog: Catalog, client: Client, label: Label) -> ListedModel | None:
    """What is listed of a name; None where this client has none of that name.

    A profile without enabled members, or a model that is off in the catalogue, is listed as such.
    """
    resolved = catalog.resolve(label.id) or catalog.families.get(label.id)
    if resolved is None:
        is_known = catalog.problem_of(label.id) is not NameProblem.UNKNOWN
        if not is_known or not client.may_use(ComboId(label.id.removeprefix(PREFIX))):
            return None
        return _listed(label, (), OFF)
    allowed = within(resolved, client.scope)
    if allowed is None:
        return None
    has_key = any(route.keys for route in allowed.routes)
    return _listed(label, allowed.routes, None if has_key else NO_KEY if allowed.routes else OFF)


def _listed(label: Label, routes: Sequence[Route], reason: str | None) -> ListedModel:
    windows = [r.context_window for r in routes if r.context_window is not None]
    is_route = len(routes) == 1 and routes[0].id == label.id
    embedding = routes[0].embedding if routes else None
    return ListedModel(
        id=label.id,
        owned_by=routes[0].provider if is_route else OWNER,
        name=label.name,
        context_window=max(windows, default=None),
        parameters=_parameters(routes) if embedding is None else EMBEDDING_PARAMETERS,
        available=reason is None,
        unavailable_reason=reason,
        is_embedding=embedding is not None,
        dimensions=None if embedding is None else embedding.dimensions,
    )


def _parameters(routes: Sequence[Route]) -> tuple[str, ...]:
    """Optional members that every route understands, as far as that differs between routes."""
    if not routes:
        return ()
    found = [
        (TOOL_PARAMETERS, all(route.tools for route in routes)),
        (FORMAT_PARAMETERS, not any(DROPS_FORMAT in route.quirks for route in routes)),
    ]
    return tuple([name for names, holds in found if holds for name in names])


def wants_available(query: bytes) -> bool:
    """Whether a query asks for usable models only: `available`, `connected` or `ready`."""
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    return any(asked[name][-1].lower() not in {"false", "0"} for name in NARROWING if name in asked)


def page_of(query: bytes) -> Page:
    """The part of the listing that a query asks for; a limit that is none bounds nothing."""
    asked = parse_qs(query.decode("latin-1"))
    return Page(
        limit=limit_of(last_given(asked, "limit")),
        after=last_given(asked, "after_id"),
        before=last_given(asked, "before_id"),
    )


def gemini_page_of(query: bytes) -> GeminiPage:
    """The same in Gemini's words, which have two spellings; a size of 0 bounds nothing either."""
    asked = parse_qs(query.decode("latin-1"))
    size = last_given(asked, "pageSize", "page_size")
    token = last_given(asked, "pageToken", "page_token")
    return GeminiPage(size=limit_of(size) if size.strip("0") else None, token=token)


def last_given(asked: Mapping[str, Sequence[str]], *names: str) -> str:
    """The last value of a query under the first of some names that is in it; else empty."""
    return next((asked[name][-1] for name in names if name in asked), "")


def limit_of(given: str) -> int | None:
    """The number of entries that is asked for, as far as it is allowed; None for no number."""
    is_number = given.isascii() and given.isdigit() and len(given) <= len(str(MAX_LIMIT))
    return min(max(1, int(given)), MAX_LIMIT) if is_number else None
