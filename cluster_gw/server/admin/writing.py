"""What a change of the admin API says: fields in either spelling, and the version it builds on."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.server.admin.answers import invalid, read_object

CAMEL: Final = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+")
HUMP: Final = re.compile(r"(?=[A-Z])")
MATCH: Final = re.compile(r'(?:W/)?"?(\d{1,15})"?')
ANY: Final = "*"


async def read_fields(request: Request) -> dict[str, Any]:
    """Read the fields of a change; `taskWeightShare` is `task_weight_share`.

    What the answers add and a client may send back unread, `config_version`, is left out.

    Raises:
        ClientFault: the body is no JSON object, or names a field in both spellings.
    """
    # In a thread: ten megabytes would hold up all requests of this worker.
    fields = await asyncio.to_thread(snake_case, await read_object(request))
    return {name: value for name, value in fields.items() if name != "config_version"}


def snake_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give a document with its camelCase names as snake_case; other names stay.

    Raises:
        ClientFault: a name stands there in both spellings.
    """
    found: dict[str, Any] = {}
    for name, value in fields.items():
        own = HUMP.sub("_", name).lower() if CAMEL.fullmatch(name) else name
        if own in found:
            raise ClientFault(invalid(f"{own} is given twice", own))
        found[own] = _snake_values(value)
    return found


def _snake_values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return snake_case(value)
    return [_snake_values(item) for item in value] if isinstance(value, list) else value


def seen_version(request: Request) -> int | None:
    """Give the version that a change builds on, from `If-Match`; None for whatever it is.

    Raises:
        ClientFault: the header cannot be read.
    """
    text = request.headers.get("if-match", ANY).strip()
    if text == ANY:
        return None
    match = MATCH.fullmatch(text)
    if match is None:
        raise ClientFault(
            ErrorBody(
                status=400,
                type="invalid_request_error",
                code="invalid_header",
                message="If-Match has to be a config_version, such as 7",
                param="If-Match",
            )
        )
    return int(match[1])
