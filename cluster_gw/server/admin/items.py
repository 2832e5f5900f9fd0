"""Things of the configuration that are listed, shown and changed one by one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, listed, nothing_called, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.read_only import ReadOnly, changed_only, split_read_only
from cluster_gw.server.admin.writing import read_fields, seen_version

Item = Mapping[str, Any]
Show = Callable[[Desk, Item], dict[str, Any]]


class Items:
    """One noun of the configuration.

    Args:
        desk: this worker.
        noun: `models`, `keys` or `combos`.
        show: gives an item as answers have it.
        read_only: fields of answers that are no part of a change.
    """

    def __init__(self, desk: Desk, noun: str, show: Show, read_only: ReadOnly) -> None:
        self.desk = desk
        self._noun, self._show, self.read_only = noun, show, read_only

    def routes(self, path: str) -> list[Route]:
        """The routes of single items, at a path with `id` in it."""
        return [
            Route(path, self.show_one, methods=["GET"]),
            Route(path, self.change, methods=["PUT"]),
            Route(path, self.reset, methods=["DELETE"]),
        ]

    async def show_all(self, _request: Request) -> Response:
        """List all, in declared order."""
        found = self.desk.editor.shown()[self._noun]
        items = [self._show(self.desk, item) for item in found]
        return listed(items, self.desk.config_version)

    async def show_one(self, request: Request) -> Response:
        """Show one."""
        return self.told(request.path_params["id"])

    async def change(self, request: Request) -> Response:
        """Change fields of one; null goes back to what the file says."""
        name: str = request.path_params["id"]
        read = await read_fields(request)
        passed_over: list[str] = []

        def changes() -> list[Change]:
            nonlocal passed_over
            shown = self.shown(name)
            if read.get("id", name) != name:
                raise ClientFault(invalid("an id cannot be changed", "id"))
            sent = changed_only(read, shown, self.read_only)
            fields, passed_over = self.fields_of(sent, shown)
            return [self.change_of(name, fields)]

        warnings = await self.desk.editor.write(changes, seen_version(request))
        return self.told(name, warnings=[*passed_over, *warnings])

    async def reset(self, request: Request) -> Response:
        """Go back to what the file says of one."""
        name: str = request.path_params["id"]

        def changes() -> list[Change]:
            self.find(name)
            return [Change(noun=self._noun, id=name, fields={}, remove=True)]

        await self.desk.editor.write(changes, seen_version(request))
        return self.told(name)

    def fields_of(
        self, sent: dict[str, Any], shown: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Give what somebody wants to change of an item, and warnings of what cannot be.

        Args:
            sent: the body; without what is as it was, if it is a whole thing sent back.
            shown: the item as answers have it now.

        Raises:
            ClientFault: a field that cannot be changed has another value.
        """
        return split_read_only(sent, shown, self.read_only)

    def change_of(self, name: str, fields: dict[str, Any]) -> Change:
        """Give the change of fields of an item."""
        return Change(noun=self._noun, id=name, fields=fields)

    def find(self, name: str) -> Item:
        """Give an item as it holds now.

        Raises:
            ClientFault: there is none of this name.
        """
        for item in self.desk.editor.shown()[self._noun]:
            if item["id"] == name:
                found: Item = item
                return found
        raise nothing_called(self._noun.removesuffix("s"), name)

    def shown(self, name: str) -> dict[str, Any]:
        """Give an item as answers have it now; raises as `find`."""
        return self._show(self.desk, self.find(name))

    def told(self, name: str, status: int = 200, warnings: Sequence[str] = ()) -> Response:
        """Answer with an item as it holds now."""
        return told(self.shown(name), self.desk.config_version, status, warnings)
