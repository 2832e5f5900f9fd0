"""Around every route that changes something: the version it builds on, and who did what.

A change that was done is written down after it, in Redis and in the log. One that was refused is
none. Only names of fields are written, never values.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cluster_gw.errors import StoreLostError
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.writing import seen_version
from cluster_gw.server.introduction import ACTOR_HEADER, PEER_HEADER
from cluster_gw.store.audit import Entry
from cluster_gw.telemetry import events
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any

REFUSED, BROKEN = 400, 500
MOST_FIELDS: Final = 40
MOST_LETTERS: Final = 80
DEEPEST: Final = 3
MOST_PATH: Final = 300
NAMING: Final = ("id", "worker", "combo")
"""Fields whose value is the id of something that is there."""

Endpoint = Callable[[Request], Awaitable[Response]]


def audited(desk: Desk, endpoint: Endpoint) -> Endpoint:
    """Have a route that changes something look at `If-Match`, and write down what was done."""

    async def answer(request: Request) -> Response:
        seen = seen_version(request)
        if seen is not None:  # routes that change the configuration look again when they store it
            await desk.editor.expect(seen)
        before = desk.config_version
        status = BROKEN  # unless it answers: nobody knows then what was done
        try:
            response = await endpoint(request)
            status = response.status_code
        except Exception as fault:
            status = getattr(getattr(fault, "body", None), "status", BROKEN)
            raise
        finally:
            if not REFUSED <= status < BROKEN:
                await _note(desk, request, status, before)
        return response

    return answer


async def _note(desk: Desk, request: Request, status: int, before: int) -> None:
    query = f"?{request.url.query}" if request.url.query else ""
    body = await asyncio.to_thread(read_body, await request.body())
    entry = Entry(
        id=desk.deps.mint_id(),
        actor=request.headers.get(ACTOR_HEADER, "unknown")[:MOST_LETTERS],
        address=request.headers.get(PEER_HEADER, "unknown")[:MOST_LETTERS],
        method=request.method,
        path=f"{request.url.path}{query}"[:MOST_PATH],
        fields=tuple(names_in(body)),
        about=about_in(body) if status < REFUSED else "",
        status=status,
        config_version=desk.config_version,
        config_version_before=before,
    )
    is_stored = True
    try:
        await desk.audit.note(entry)
    except StoreLostError:
        is_stored = False  # the log has it
    desk.deps.log.event(
        events.ADMIN_CHANGED,
        actor=entry.actor,
        address=entry.address,
        method=entry.method,
        path=entry.path,
        about=entry.about,
        fields=list(entry.fields),
        status=status,
        stored=is_stored,
    )


def read_body(body: bytes) -> Any:
    """Read what a call sent; an empty object where it sent nothing that can be read."""
    try:
        return read_any(body) if body.strip() else {}
    except (InvalidJsonError, UnexpectedShapeError):
        return {}


def about_in(document: Any) -> str:
    """Give the id that a call which was done names in its body; empty where it names none."""
    if not isinstance(document, dict):
        return ""
    found = (document.get(name) for name in NAMING)
    return next((one[:MOST_LETTERS] for one in found if isinstance(one, str)), "")


def names_in(document: Any) -> list[str]:
    """Name the fields that a body sets, with dots, in order; of a list how long it is."""
    if isinstance(document, list):
        return [f"[{len(document)}]"]
    names = _names(document, "", DEEPEST) if isinstance(document, dict) else iter(())
    return [name for _, name in zip(range(MOST_FIELDS), names, strict=False)]


def _names(document: dict[str, Any], head: str, depth: int) -> Iterator[str]:
    for name, value in document.items():
        whole = f"{head}{name[:MOST_LETTERS]}"
        if isinstance(value, dict) and value and depth > 1:
            yield from _names(value, f"{whole}.", depth - 1)
        else:
            yield whole
