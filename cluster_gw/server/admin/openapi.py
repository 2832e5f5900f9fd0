"""`/api/openapi.json`: every route of the admin API, made of their table and of its types."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw import __version__
from cluster_gw.server.admin.answers import JSON, READING
from cluster_gw.server.admin.operations import OPERATIONS, Operation
from cluster_gw.server.admin.shapes import Error

PATH: Final = "/api/openapi.json"
VERSION: Final = "3.1.0"
PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")
WORD: Final = re.compile(r"\w+")
REFERENCE: Final = "#/components/schemas/{name}"
UNKNOWN: Final = Operation()


class OpenApi:
    """Answers with the document, which is made when somebody asks first.

    Args:
        routes: of the admin API, one for each method.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [*routes, self.route()]
        self._document = b""

    def route(self) -> Route:
        """The route of the document itself."""
        return Route(PATH, self.show, methods=["GET"])

    async def show(self, _request: Request) -> Response:
        """Show this document."""
        if not self._document:
            self._document = msgspec.json.encode(describe(self._routes))
        return Response(self._document, media_type=JSON)


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """Give the OpenAPI document of some routes."""
    calls = [
        (route, method)
        for route in routes
        for method in sorted(route.methods or ())
        if method != "HEAD"
    ]
    operations = [OPERATIONS.get((method, route.path), UNKNOWN) for route, method in calls]
    kinds = [kind for one in operations for kind in (one.answer, one.other, one.body)]
    known = [*(kind for kind in kinds if kind is not None), Error]
    schemas, components = msgspec.json.schema_components(known, ref_template=REFERENCE)
    told = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for (route, method), operation in zip(calls, operations, strict=True):
        answer: Any = next(told)
        if operation.other is not None:
            answer = {"anyOf": [answer, next(told)]}
        body = None if operation.body is None else next(told)
        path = PARAMETER.sub(r"{\1}", route.path)
        described = describe_call(route, method, operation, answer, body)
        paths.setdefault(path, {})[method.lower()] = described
    return {
        "openapi": VERSION,
        "info": {"title": "cluster-gw admin API", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"admin": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"admin": []}],
    }


def describe_call(
    route: Route, method: str, operation: Operation, answer: Any, body: Any
) -> dict[str, Any]:
    """Describe one method of a route.

    Args:
        route: whose.
        method: of it.
        operation: what is known of it.
        answer: schema of the answer.
        body: schema of what it takes; None for nothing.
    """
    text = inspect.getdoc(route.endpoint) or ""
    words = WORD.findall(PARAMETER.sub(r"\1", route.path.removeprefix("/api/")))
    described: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *words]),
        "summary": text.partition("\n")[0],
        "parameters": [
            *(_parameter(name, "path") for name in PARAMETER.findall(route.path)),
            *(_parameter(name, "query") for name in operation.query),
            *([] if method in READING else [_parameter("If-Match", "header")]),
        ],
        "responses": {
            str(operation.status): _content("Done.", answer),
            "default": _content("Not done.", {"$ref": REFERENCE.format(name=Error.__name__)}),
        },
    }
    if body is not None:
        described["requestBody"] = {"content": {JSON: {"schema": body}}}
    return described


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}


def _content(text: str, schema: Any) -> dict[str, Any]:
    return {"description": text, "content": {JSON: {"schema": schema}}}
