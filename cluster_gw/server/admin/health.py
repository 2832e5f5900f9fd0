"""`/api/health`: what is known of keys, and checking them now instead of with the next pass."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, nothing_called, read_object, told
from cluster_gw.server.admin.desk import Desk, KeyPlace

ACCEPTED: Final = 202
FIELDS: Final = ("provider", "key")


def health_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/health`."""
    health = KeyHealth(desk)
    return [
        Route("/api/health", health.show, methods=["GET"]),
        Route("/api/health/check", health.check, methods=["POST"]),
    ]


class KeyHealth:
    """Reads and orders; the elected worker checks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, _request: Request) -> Response:
        """Tell what is known of each key, of models that are gone, of the pool and of orders."""
        return told(await self._desk.health.show(), self._desk.config_version)

    async def check(self, request: Request) -> Response:
        """Order a check of all keys, of those of a provider, or of one."""
        provider, key = read_scope(await read_object(request))
        places = self._desk.health.list_places()
        provider, planned = chosen(places, provider, key)
        checkable = [place for place in planned if place.is_checkable]
        if not checkable:
            raise ClientFault(invalid("none of these keys can be checked without using its quota"))
        ordered = await self._desk.health.order(provider, key, checkable)
        content = {
            **ordered,
            "planned": shown(checkable),
            "not_checkable": shown([place for place in planned if not place.is_checkable]),
        }
        return told(content, self._desk.config_version, ACCEPTED)


def read_scope(body: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Read provider and key of an order, None for all.

    Raises:
        ClientFault: a field is unknown, or no name.
    """
    for name, value in body.items():
        if name not in FIELDS:
            raise ClientFault(invalid(f"unknown field '{name[:80]}'", name[:80]))
        if value is not None and (not isinstance(value, str) or not value):
            raise ClientFault(invalid(f"{name} has to be a name", name))
    return body.get("provider"), body.get("key")


def chosen(
    places: Sequence[KeyPlace], provider: str | None, key: str | None
) -> tuple[str | None, list[KeyPlace]]:
    """Give the provider that is meant and the keys to check.

    Raises:
        ClientFault: there is no such provider, or no such key of it.
    """
    of_provider = [place for place in places if provider in {None, place.provider}]
    if provider is not None and not of_provider:
        raise nothing_called("provider with keys", provider)
    if key is None:
        return provider, of_provider
    of_key = [place for place in of_provider if place.key == key]
    if not of_key:
        raise nothing_called("key", key)
    return of_key[0].provider, of_key


def shown(places: Sequence[KeyPlace]) -> list[dict[str, str]]:
    """Places as JSON."""
    return [{"provider": place.provider, "key": place.key} for place in places]
