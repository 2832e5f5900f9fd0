"""`/api/combos`: the named chains of routes, and how each ranks its members."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.writing import seen_version

READ_ONLY: Final = ("id", "default", "all_routes", "profile", "epoch")


def combo_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/combos`."""
    combos = Combos(desk)
    return [
        Route("/api/combos", combos.show_all, methods=["GET"]),
        *combos.routes("/api/combos/{id:path}"),
    ]


class Combos(Items):
    """Shows and changes combos, profiles among them."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, "combos", show_combo, READ_ONLY)

    def change_of(self, name: str, fields: dict[str, Any]) -> Change:
        """Give the change of fields of a combo; new members end an order of the old ones."""
        if "members" in fields:
            fields = {**fields, "order": None}
        return Change(noun=noun_of(self.desk, name), id=name, fields=fields)

    async def reset(self, request: Request) -> Response:
        """Go back to what the file says of a combo; one that no file has gets its defaults."""
        name: str = self.find(request.path_params["id"])["id"]
        noun = noun_of(self.desk, name)
        held = self.desk.editor.patches().get(noun, {}).get(name, {})
        kept = {"members"} if noun == "profiles" else set()
        fields = {field: None for field in held if field not in kept}
        change = Change(noun=noun, id=name, fields=fields)
        await self.desk.editor.write([change], seen_version(request))
        return self.told(name)


def noun_of(desk: Desk, name: str) -> str:
    """Tell where changes of a combo stand: a profile that was made at run time is all overlay."""
    return "profiles" if name in desk.editor.patches().get("profiles", {}) else "combos"


def show_combo(desk: Desk, combo: Item) -> dict[str, Any]:
    """Give a combo with what its family decides where nothing is said, and every member."""
    catalog = desk.deps.current.serving.runtime.catalog
    held = catalog.combos[combo["id"]]
    sticky, gate = held.sticky, held.gate
    return {
        **combo,
        "strategy": held.strategy,
        "members": [{"route": one.route, "enabled": one.enabled} for one in held.members],
        "all_routes": combo["members"] == "all",
        "sticky": {
            "enabled": sticky.enabled,
            "scope": sticky.scope,
            "mode": "hard" if sticky.is_hard else "prefer",
            "ttl_s": sticky.ttl_s,
            "min_headroom": sticky.min_headroom,
        },
        "response": {**combo["response"], "reject_empty": gate.reject_empty},
        "default": combo["id"] == catalog.default_combo,
    }
