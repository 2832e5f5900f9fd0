"""`/api/profiles`: named chains that are made, changed and activated at run time."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.server.admin.answers import invalid, listed, nothing_called, told
from cluster_gw.server.admin.combos import show_combo, without_shown_members
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly, split_read_only
from cluster_gw.server.admin.writing import read_fields, seen_version

PROFILES: Final = "profiles"
READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"id", "profile"}),
    moving=frozenset({"active", "default", "epoch"}),
    deciding=frozenset({"family"}),
)
OF_NEW: Final = ReadOnly(
    fixed=frozenset({"profile"}), moving=frozenset({"active", "all_routes", "default", "epoch"})
)


def profile_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/profiles`."""
    profiles = Profiles(desk)
    return [
        Route("/api/profiles", profiles.show_all, methods=["GET"]),
        Route("/api/profiles", profiles.create, methods=["POST"]),
        Route("/api/profiles/{id}/activate", profiles.activate, methods=["POST"]),
        *profiles.routes("/api/profiles/{id}"),
    ]


class Profiles(Items):
    """A profile is a combo with `profile: true`; the active one is the default combo."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, "combos", show_profile, READ_ONLY)

    async def show_all(self, _request: Request) -> Response:
        """List all profiles, those of the file first."""
        shown = self.desk.editor.shown()["combos"]
        items = [show_profile(self.desk, combo) for combo in shown if combo["profile"]]
        return listed(items, self.desk.config_version)

    async def create(self, request: Request) -> Response:
        """Make a profile; its name is `id` or `name`, and without `members` it has all routes."""
        read = await read_fields(request)
        name = read.pop("id", None) or read.pop("name", None)
        if not isinstance(name, str) or not name:
            raise ClientFault(invalid("a profile needs an id", "id"))
        fields, passed_over = split_read_only(read, new_profile(read), OF_NEW)

        def changes() -> list[Change]:
            taken = {combo["id"].lower() for combo in self.desk.editor.shown()["combos"]}
            if name.lower() in taken or name in self.desk.editor.patches().get(PROFILES, {}):
                raise ClientFault(already_there(name))
            return [Change(noun=PROFILES, id=name, fields=fields)]

        warnings = await self.desk.editor.write(changes, seen_version(request))
        return self.told(name, 201, [*passed_over, *warnings])

    async def reset(self, request: Request) -> Response:
        """Remove a profile that was made at run time, unless it is the active one."""
        name: str = request.path_params["id"]

        def changes() -> list[Change]:
            self.find(name)
            if name not in self.desk.editor.patches().get(PROFILES, {}):
                raise ClientFault(invalid("a profile of the file is removed in the file"))
            return [Change(noun=PROFILES, id=name, fields={}, remove=True)]

        await self.desk.editor.write(changes, seen_version(request))
        return told({"id": name, "deleted": True}, self.desk.config_version)

    async def activate(self, request: Request) -> Response:
        """Make a profile the default combo."""
        name: str = request.path_params["id"]

        def changes() -> list[Change]:
            self.find(name)
            return [Change(noun="settings", id="default_combo", fields={"combo": name})]

        await self.desk.editor.write(changes, seen_version(request))
        return self.told(name)

    def fields_of(
        self, sent: dict[str, Any], shown: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Give what somebody wants to change of a profile; see `Items.fields_of`."""
        return super().fields_of(without_shown_members(sent, shown), shown)

    def change_of(self, name: str, fields: dict[str, Any]) -> Change:
        """Give the change of fields of a profile; new members end an order of the old ones."""
        is_made = name in self.desk.editor.patches().get(PROFILES, {})
        if "members" in fields:
            fields = {**fields, "order": None}
        return Change(noun=PROFILES if is_made else "combos", id=name, fields=fields)

    def find(self, name: str) -> Item:
        """Give a profile as it holds now.

        Raises:
            ClientFault: there is none of this name.
        """
        found = super().find(name)
        if not found["profile"]:
            raise nothing_called("profile", name)
        return found


def show_profile(desk: Desk, combo: Item) -> dict[str, Any]:
    """Give a profile, and whether it is the active one."""
    shown = show_combo(desk, combo)
    return {**shown, "active": shown["default"]}


def new_profile(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Give what cannot be set of a profile that is made, as it will be shown."""
    return {
        "profile": True,
        "active": False,
        "default": False,
        "epoch": None,
        "all_routes": sent.get("members", "all") == "all",
    }


def already_there(name: str) -> ErrorBody:
    """The error of a name that a combo has already."""
    return ErrorBody(
        status=409,
        type="invalid_request_error",
        code="already_exists",
        message=f"there is a combo '{name}' already",
        param="id",
    )
