"""The door of Gemini's API: what its paths and queries say, before a surface takes over.

The model stands in the path, so there is no endpoint to look up; and the key may stand in the
query, from where it is taken at once, so that nothing behind this door ever sees it there.
"""

import re
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from cluster_gw.pipeline.headers import JSON_TYPE
from cluster_gw.pipeline.reply import Send
from cluster_gw.server.auth import find_credential
from cluster_gw.server.body import Receive
from cluster_gw.server.cycle import ANSWER_NOW, WRITE_NOW
from cluster_gw.server.inference import Deps
from cluster_gw.server.token_counts import TokenCounts
from cluster_gw.server.tracing import inference_of
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.gemini import CountTokens, GenerateContent
from cluster_gw.surfaces.gemini_embeddings import BatchEmbedContents, EmbedContent
from cluster_gw.surfaces.gemini_stream import ArrayFraming

API: Final = "/v1beta/"
PREFIXES: Final = (API, "/v1/models")  # the vendor's newer clients call its first version
UNARY: Final[Mapping[str, Callable[[str], Surface]]] = MappingProxyType(
    {
        "generateContent": GenerateContent,
        "embedContent": EmbedContent,
        "batchEmbedContents": BatchEmbedContents,
    }
)
CALLS: Final = (*UNARY, "streamGenerateContent", "countTokens")
CALL: Final = re.compile(rf"/v1(?:beta)?/models/(.+):({'|'.join(CALLS)})")
KEY: Final = "key"
KEY_HEADER: Final = b"x-goog-api-key"
CONTENT_TYPE: Final = b"content-type"

Scope = MutableMapping[str, Any]
Endpoint = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class GeminiDoor:
    """Finds the endpoint of a call by its path."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def find(self, scope: Scope) -> Endpoint | None:
        """What serves a POST; None when no call of this API has such a path."""
        match = CALL.fullmatch(scope["path"])
        if match is None:
            return None
        model, method = match.groups()
        if method == "countTokens":
            return TokenCounts(CountTokens(model), self._deps, "totalTokens")
        if method in UNARY:
            return inference_of(UNARY[method](model), self._deps)
        if wants_events(scope["query_string"]):
            return inference_of(GenerateContent(model, stream=True), self._deps)
        surface = GenerateContent(model, stream=True, framing=ArrayFraming)
        return sending_json(inference_of(surface, self._deps))


def sending_json(endpoint: Endpoint) -> Endpoint:
    """The endpoint with its streams labelled as JSON, which an array is."""

    def serve(scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        # Answers that bypass `send` would bypass the label as well.
        kept = {
            name: value
            for name, value in scope.get("extensions", {}).items()
            if name not in {WRITE_NOW, ANSWER_NOW}
        }
        return endpoint({**scope, "extensions": kept}, receive, labelled(send))

    return serve


def wants_events(query: bytes) -> bool:
    """Whether a query asks for server-sent events."""
    return ("alt", "sse") in parse_qsl(query.decode("latin-1"))


def is_path(path: str) -> bool:
    """Whether a path is one of this API and of no other; listings are shared."""
    return path.startswith(API) or (path.startswith(PREFIXES) and ":" in path)


def with_key_header(scope: Scope) -> Scope:
    """The scope with the key of its query as a header; a credential in a header goes first."""
    query = scope["query_string"]
    if KEY.encode() not in query:
        return scope
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    keys = [value for name, value in pairs if name == KEY and value]
    rest = [(name, value) for name, value in pairs if name != KEY]
    scope = {**scope, "query_string": urlencode(rest).encode()}
    if keys and find_credential(dict(scope["headers"])) is None:
        scope["headers"] = [*scope["headers"], (KEY_HEADER, keys[0].encode("latin-1", "replace"))]
    return scope


def labelled(send: Send) -> Send:
    """A `send` whose answers are labelled as JSON."""

    async def send_labelled(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0] != CONTENT_TYPE]
            message = {**message, "headers": [*headers, JSON_TYPE]}
        await send(message)

    return send_labelled
