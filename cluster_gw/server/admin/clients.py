"""`/api/clients`: apps with keys of their own, those of the file and those that are made here.

A key is made here, shown once, and stored as its SHA-256. It stands in the overlay beside all other
changes (decision 0068), so every worker knows of it within milliseconds.
"""

import secrets as entropy
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.server.admin.answers import invalid, read_object, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly, changed_only, split_read_only
from cluster_gw.server.admin.writing import read_fields, seen_version
from cluster_gw.settings.client import MAX_PREVIOUS
from cluster_gw.settings.patches import CLIENT_FIELDS, CLIENT_KEYS, MADE_CLIENTS
from cluster_gw.units import DAY_S, MS_PER_S

CLIENTS: Final = "clients"
KEY_HEAD: Final = "gw-"
KEY_BYTES: Final = 32
GRACE_S: Final = DAY_S
MOST_GRACE_S: Final = 30 * DAY_S
ENABLED: Final = "enabled"
READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"id", "made"}),
    moving=frozenset({"fingerprint", "previous_keys"}),
)


def client_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/clients`."""
    clients = Clients(desk)
    return [
        Route("/api/clients", clients.show_all, methods=["GET"]),
        Route("/api/clients", clients.create, methods=["POST"]),
        Route("/api/clients/{id}/rotate", clients.rotate, methods=["POST"]),
        Route("/api/clients/{id}/revoke", clients.revoke, methods=["POST"]),
        *clients.routes("/api/clients/{id}"),
    ]


class Clients(Items):
    """A client of the file can be changed and revoked, not removed; one that was made here can."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, CLIENTS, show_client, READ_ONLY)

    async def create(self, request: Request) -> Response:
        """Make a client; the answer shows its key, which nobody can read later."""
        read = await read_fields(request)
        name = read.pop("id", None)
        if not isinstance(name, str) or not name:
            raise ClientFault(invalid("a client needs an id", "id"))
        for field in read:
            if field not in {*CLIENT_FIELDS, ENABLED}:
                raise ClientFault(invalid(f"a new client has no field '{field[:80]}'", field[:80]))
        key = new_key()
        made = Change(noun=MADE_CLIENTS, id=name, fields={**read, "key_sha256": digest_of(key)})
        # What was said of a client of the file that had this name must not be said of this one.
        past = [
            Change(noun=noun, id=name, fields={}, remove=True) for noun in (CLIENTS, CLIENT_KEYS)
        ]

        def changes() -> list[Change]:
            taken = [client["id"] for client in self.desk.editor.shown()[CLIENTS]]
            if name in taken or self._is_made(name):
                raise ClientFault(already_there(name))
            return [*past, made]

        warnings = await self.desk.editor.write(changes, seen_version(request))
        return self._told_key(name, key, 201, warnings)

    async def change(self, request: Request) -> Response:
        """Change fields of a client; null goes back to what the file says, or to the default."""
        name: str = request.path_params["id"]
        read = await read_fields(request)
        passed_over: list[str] = []

        def changes() -> list[Change]:
            nonlocal passed_over
            shown = self.shown(name)
            sent = changed_only(read, shown, self.read_only)
            fields, passed_over = split_read_only(sent, shown, self.read_only)
            of_keys = {field: fields.pop(field) for field in (ENABLED,) if field in fields}
            if self._is_made(name):
                return [Change(noun=MADE_CLIENTS, id=name, fields={**fields, **of_keys})]
            return [
                Change(noun=noun, id=name, fields=some)
                for noun, some in ((CLIENTS, fields), (CLIENT_KEYS, of_keys))
                if some
            ]

        warnings = await self.desk.editor.write(changes, seen_version(request))
        return self.told(name, warnings=[*passed_over, *warnings])

    async def reset(self, request: Request) -> Response:
        """Remove a client that was made here; one of the file goes back to what that says."""
        name: str = request.path_params["id"]
        is_made = False

        def changes() -> list[Change]:
            nonlocal is_made
            self.find(name)
            is_made = self._is_made(name)
            nouns = (MADE_CLIENTS,) if is_made else (CLIENTS, CLIENT_KEYS)
            return [Change(noun=noun, id=name, fields={}, remove=True) for noun in nouns]

        await self.desk.editor.write(changes, seen_version(request))
        if is_made:
            return told({"id": name, "deleted": True}, self.desk.config_version)
        return self.told(name)

    async def rotate(self, request: Request) -> Response:
        """Give a client another key; the one before is taken for `grace_s` more, a day unless told.

        A call that was answered by nobody may be repeated: keys before the last are kept as well.
        """
        name: str = request.path_params["id"]
        grace_s = read_grace(await read_object(request))
        key, until_ms = new_key(), 0

        def changes() -> list[Change]:
            nonlocal until_ms
            self.find(name)
            now_ms = self.desk.now_ms()
            until_ms = now_ms + round(grace_s * MS_PER_S)
            previous = self._previous(name, now_ms, until_ms)
            fields = {"key_sha256": digest_of(key), "previous_keys": previous}
            return [self._key_change(name, fields)]

        warnings = await self.desk.editor.write(changes, seen_version(request))
        return self._told_key(name, key, 200, warnings, previous_until_ms=until_ms)

    async def revoke(self, request: Request) -> Response:
        """Refuse all keys of a client from now on, for ever; what it has under way ends by itself.

        With a new key and `enabled` it may come back.
        """
        name: str = request.path_params["id"]
        fields = {ENABLED: False, "key_sha256": digest_of(new_key()), "previous_keys": []}

        def changes() -> list[Change]:
            self.find(name)
            return [self._key_change(name, fields)]

        await self.desk.editor.write(changes, seen_version(request))
        return self.told(name)

    def _is_made(self, name: str) -> bool:
        return name in self.desk.editor.patches().get(MADE_CLIENTS, {})

    def _key_change(self, name: str, fields: Mapping[str, Any]) -> Change:
        noun = MADE_CLIENTS if self._is_made(name) else CLIENT_KEYS
        return Change(noun=noun, id=name, fields=fields)

    def _previous(self, name: str, now_ms: int, until_ms: int) -> list[dict[str, Any]]:
        """The keys that are taken beside a new one: that of now, and those whose time is left."""
        held = self.desk.editor.client_keys(name)
        kept = [
            {"key_sha256": digest, "until_ms": min(end_ms, until_ms)}
            for digest, end_ms in held.previous
            if end_ms > now_ms
        ]
        if until_ms <= now_ms:
            return []
        return [{"key_sha256": held.present, "until_ms": until_ms}, *kept][:MAX_PREVIOUS]

    def _told_key(
        self, name: str, key: str, status: int, warnings: Sequence[str], **more: Any
    ) -> Response:
        shown = {**self.shown(name), "key": key, **more}
        response = told(shown, self.desk.config_version, status, warnings)
        response.headers["cache-control"] = "no-store"
        return response


def show_client(desk: Desk, client: Item) -> dict[str, Any]:
    """Give a client, and whether it was made here; of its keys only fingerprints."""
    return {**client, "made": client["id"] in desk.editor.patches().get(MADE_CLIENTS, {})}


def new_key() -> str:
    """Make a key of 256 bits."""
    return KEY_HEAD + entropy.token_urlsafe(KEY_BYTES)


def digest_of(key: str) -> str:
    """What is stored of a key. It holds 256 bits: no slower hash would protect it better."""
    return sha256(key.encode()).hexdigest()


def read_grace(body: Mapping[str, Any]) -> float:
    """Read for how long the key before is still taken, in s.

    Raises:
        ClientFault: it is no number within bounds, or something else is asked.
    """
    for name in body:
        if name not in {"grace_s", "graceS"}:
            raise ClientFault(invalid(f"unknown field '{name[:80]}'", name[:80]))
    grace_s = next(iter(body.values()), GRACE_S)
    is_number = isinstance(grace_s, int | float) and not isinstance(grace_s, bool)
    if not is_number or not 0 <= grace_s <= MOST_GRACE_S:
        message = f"grace_s has to be a number from 0 to {MOST_GRACE_S}"
        raise ClientFault(invalid(message, "grace_s"))
    return float(grace_s)


def already_there(name: str) -> ErrorBody:
    """The error of a name that a client has already."""
    return ErrorBody(
        status=409,
        type="invalid_request_error",
        code="already_exists",
        message=f"there is a client '{name}' already",
        param="id",
    )
