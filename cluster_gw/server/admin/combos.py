"""`/api/combos`: the named chains of routes, and how each ranks its members."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly, as_sent
from cluster_gw.server.admin.writing import seen_version

READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"id", "profile"}),
    moving=frozenset({"default", "epoch"}),
    deciding=frozenset({"family"}),
)


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

    def fields_of(
        self, sent: dict[str, Any], shown: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Give what somebody wants to change of a combo; see `Items.fields_of`."""
        return super().fields_of(without_shown_members(sent, shown), shown)

    def change_of(self, name: str, fields: dict[str, Any]) -> Change:
        """Give the change of fields of a combo; new members end an order of the old ones."""
        if "members" in fields:
            fields = {**fields, "order": None}
        return Change(noun=noun_of(self.desk, name), id=name, fields=fields)

    async def reset(self, request: Request) -> Response:
        """Go back to what the file says of a combo; one that no file has gets its defaults."""
        name: str = request.path_params["id"]

        def changes() -> list[Change]:
            self.find(name)
            noun = noun_of(self.desk, name)
            held = self.desk.editor.patches().get(noun, {}).get(name, {})
            kept = {"members"} if noun == "profiles" else set()
            fields = {field: None for field in held if field not in kept}
            return [Change(noun=noun, id=name, fields=fields)]

        await self.desk.editor.write(changes, seen_version(request))
        return self.told(name)


def without_shown_members(sent: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Give the body of a change without `all_routes`, and without members that it only sends back.

    Members that were `all` and come back as a list would else be those of today for ever.

    Raises:
        ClientFault: `all_routes` is neither what holds nor what the members say.
    """
    if "all_routes" not in sent:
        return sent
    is_all, members = sent["all_routes"], sent.get("members")
    fields = {name: value for name, value in sent.items() if name != "all_routes"}
    if is_all is shown["all_routes"]:
        if members == as_sent(shown["members"]):
            fields.pop("members", None)
    elif members is None or is_all is not (members == "all"):
        message = 'all_routes only tells of members; send "members": "all", or a list of them'
        raise ClientFault(invalid(message, "all_routes"))
    return fields


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
