"""`/api/pins`: which routes runs and sessions stay on, and their removal."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.store.pins import Pin, WhichPins
from cluster_gw.units import ComboId

LISTED, MOST_LISTED = 100, 1000
WHICH: Final = WhichPins.__struct_fields__


def pin_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/pins`."""
    pins = PinDesk(desk)
    return [
        Route("/api/pins", pins.show_all, methods=["GET"]),
        Route("/api/pins", pins.remove, methods=["DELETE"]),
    ]


class PinDesk:
    """Walks over Redis; no request does."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, request: Request) -> Response:
        """List pins, of one `?combo=`, `?scope=` and `?key=` or of all; at most `?limit=`."""
        given = dict(request.query_params)
        most = read_limit(given.pop("limit", str(LISTED)))
        found = await self._desk.pins.find(read_which(given), most)
        catalog = self._desk.deps.current.serving.runtime.catalog
        document = {
            "items": [shown(pin, catalog) for pin in found.pins],
            "complete": found.is_complete,
        }
        return told(document, self._desk.config_version)

    async def remove(self, request: Request) -> Response:
        """Remove the pins of a combo, a scope, a key, or all; how many there were."""
        given = dict(request.query_params)
        removed, is_complete = await self._desk.pins.remove(read_which(given))
        document = {"removed": removed, "complete": is_complete, **given}
        return told(document, self._desk.config_version)


def shown(pin: Pin, catalog: Catalog) -> dict[str, Any]:
    """Give a pin, and whether requests would find it now: its combo may have changed since."""
    combo = ComboId(pin.combo)
    found = catalog.resolve(combo) if combo in catalog.combos else None
    is_current = found is not None and found.epoch == pin.epoch
    return {**msgspec.structs.asdict(pin), "is_current": is_current}


def read_which(given: dict[str, str]) -> WhichPins:
    """Read which pins are meant: a misspelt bound must not stand for all.

    Raises:
        ClientFault: a bound is unknown or empty.
    """
    for name, value in given.items():
        if name not in WHICH or not value:
            message = "write ?combo=ID, ?scope=run or session, ?key=HASH, or nothing for all"
            raise ClientFault(invalid(message, name))
    return WhichPins(**given)


def read_limit(text: str) -> int:
    """Read how many are asked for.

    Raises:
        ClientFault: it is no number within bounds.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_LISTED))
    if not is_number or not 1 <= int(text) <= MOST_LISTED:
        raise ClientFault(invalid(f"limit has to be a number from 1 to {MOST_LISTED}", "limit"))
    return int(text)
