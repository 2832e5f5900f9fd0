"""`/api/cache`: what is stored of answers, how much of it there may be, and its removal."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault, RecordUnreadableError, StoreLostError
from cluster_gw.server.admin.answers import invalid, read_object, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.read_only import ReadOnly, changed_only, split_read_only
from cluster_gw.server.admin.writing import seen_version, snake_case
from cluster_gw.store.cache_index import CacheStats

SECTION: Final = "cache"
VERSION: Final = "config_version"
COUNTED: Final = (*CacheStats.__struct_fields__, "hit_rate", "saved_tokens", "reachable")
READ_ONLY: Final = ReadOnly(measured=frozenset({*COUNTED, VERSION, "warnings"}))
TTL, OLD_TTL = "ttl_s", "ttl_seconds"
WHOSE: Final = ("client", "model")
PLACES: Final = 4  # of a rate


def cache_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/cache`."""
    cache = Cache(desk)
    return [
        Route("/api/cache", cache.show, methods=["GET"]),
        Route("/api/cache/stats", cache.show, methods=["GET"]),
        Route("/api/cache", cache.flush, methods=["DELETE"]),
        Route("/api/cache", cache.change, methods=["PUT"]),
        Route("/api/cache/config", cache.change, methods=["PUT"]),
    ]


def cache_document(settings: Mapping[str, Any], stats: CacheStats | None) -> dict[str, Any]:
    """What is told of the cache: its settings, and what it did.

    Args:
        settings: the section `cache` as it holds.
        stats: as the index tells them; None while its Redis does not, and then each is null.
    """
    if stats is None:
        return {**settings, **dict.fromkeys(COUNTED), "reachable": False}
    asked = stats.hits + stats.misses
    return {
        **settings,
        **msgspec.structs.asdict(stats),
        "hit_rate": round(stats.hits / asked, PLACES) if asked else None,
        "saved_tokens": stats.saved_prompt_tokens + stats.saved_completion_tokens,
        "reachable": True,
    }


class Cache:
    """Shows, bounds and empties the response cache of the cluster."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, _request: Request) -> Response:
        """Show settings and sums."""
        return await self._told()

    async def change(self, request: Request) -> Response:
        """Change settings for all workers; null goes back to what the file says."""
        given = snake_case(await read_object(request))
        if OLD_TTL in given:
            if TTL in given:
                raise ClientFault(invalid(f"{TTL} is given twice", TTL))
            given[TTL] = given.pop(OLD_TTL)
        settings = self._settings()
        whole = {**settings, VERSION: self._desk.config_version}
        fields = changed_only(given, whole, READ_ONLY)
        fields, warnings = split_read_only(fields, whole, READ_ONLY)
        for name in fields:
            if name not in settings:
                known = ", ".join(settings)
                raise ClientFault(invalid(f"the cache has {known}; got {name}", name))
        change = Change(noun="settings", id=SECTION, fields=fields)
        await self._desk.editor.write(lambda: [change], seen_version(request))
        return await self._told(warnings)

    async def flush(self, request: Request) -> Response:
        """Remove the answers of a client, of a model, of both, or all; how many there were."""
        given = dict(request.query_params)
        for name, value in given.items():
            if name not in WHOSE or not value:  # a misspelt bound would remove everything
                message = "write ?client=ID, ?model=PROVIDER/MODEL, both, or nothing for all"
                raise ClientFault(invalid(message, name))
        removed = await self._desk.cache.flush(**given)
        return told({"removed": removed, **given}, self._desk.config_version)

    def _settings(self) -> dict[str, Any]:
        return dict(self._desk.editor.shown()[SECTION])

    async def _told(self, warnings: Sequence[str] = ()) -> Response:
        stats: CacheStats | None = None
        try:
            stats = await self._desk.cache.stats()
        except RecordUnreadableError:
            raise
        except StoreLostError:  # settings are told all the same: they were changed, perhaps
            pass
        document = cache_document(self._settings(), stats)
        return told(document, self._desk.config_version, warnings=warnings)
