"""`/api/keys/{id}/secret`: another secret for a key while everything runs, or the file's again.

It is stored encrypted, in the overlay beside all other changes (decision 0075), so workers have it
within milliseconds. The answer waits until those that live have said so, and then forgets what the
provider held against the one before: a worker that did not know yet could have met it again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.editor import Change, Changes
from cluster_gw.server.admin.items import Items
from cluster_gw.server.admin.writing import read_fields, seen_version
from cluster_gw.settings.key_secrets import fault_of_secret
from cluster_gw.settings.patches import KEY_SECRETS
from cluster_gw.store.fleet import ListedWorker

SECRET, ANYWAY = "secret", "anyway"
TAKEN_S: Final = 3.0  # they report each second
LOOK_S: Final = 0.1
NAMED: Final = 5


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """Which workers work by a version of the configuration, and by none that is older."""

    by: tuple[str, ...]
    waiting: tuple[str, ...]
    unread: tuple[str, ...]


class KeySecrets:
    """Changes secrets of keys.

    Args:
        keys: what answers show of them.
    """

    def __init__(self, keys: Items) -> None:
        self._keys, self._desk = keys, keys.desk

    async def replace(self, request: Request) -> Response:
        """Give a key another secret, on all workers; requests under way end with the old one."""
        name: str = self._keys.find(request.path_params["id"])["id"]
        secret, is_forced = read_secret(await read_fields(request))

        def changes() -> list[Change]:
            self._keys.find(name)
            fields = self._desk.editor.sealed(name, secret, self._desk.now_ms())
            return [Change(noun=KEY_SECRETS, id=name, fields=fields)]

        changes()  # whoever has no master key hears of that first
        if not is_forced:
            await self._expect_readers()
        return await self._write(request, name, changes)

    async def revert(self, request: Request) -> Response:
        """Go back to the secret of the file; of a key that it has no more, forget the one here."""
        name: str = request.path_params["id"]

        def changes() -> list[Change]:
            return [Change(noun=KEY_SECRETS, id=name, fields={}, remove=True)]

        is_known = any(key["id"] == name for key in self._desk.editor.shown()["keys"])
        if not is_known and name in self._stored():
            await self._desk.editor.write(changes, seen_version(request))
            return told({"id": name, "deleted": True}, self._desk.config_version)
        self._keys.find(name)
        return await self._write(request, name, changes)

    async def reseal(self, request: Request) -> Response:
        """Encrypt all of them under the present master key; the one before can be taken away."""
        editor, done = self._desk.editor, list[str]()

        def changes() -> list[Change]:
            found = editor.resealed()
            done[:] = found
            return [Change(noun=KEY_SECRETS, id=name, fields=one) for name, one in found.items()]

        if changes():
            await self._expect_readers()
        await editor.write(changes, seen_version(request))
        present = editor.master_keys[0]
        left = [name for name, one in self._stored().items() if one.get("master") != present]
        document = {"resealed": done, "left": left}
        return told(document, self._desk.config_version)

    async def _write(self, request: Request, name: str, changes: Changes) -> Response:
        desk = self._desk
        warnings = await desk.editor.write(changes, seen_version(request))
        provider = self._keys.find(name)["provider"]
        # At once for what is known already, and again for what late workers have met.
        forgotten = await desk.penalties.forget_refusals(provider, name)
        taken = await self._wait(desk.config_version, name)
        if len(taken.by) + len(taken.waiting) + len(taken.unread) > 1:
            forgotten += await desk.penalties.forget_refusals(provider, name)
        places = [one for one in desk.health.list_places() if one.key == name and one.is_checkable]
        if places:
            await desk.health.order(provider, name, places)
        document = {
            **self._keys.shown(name),
            "taken_by": taken.by,
            "waiting_for": taken.waiting,
            "unread_by": taken.unread,
            "forgotten": forgotten,
            "check_ordered": bool(places),
        }
        return told(document, desk.config_version, warnings=warnings)

    def _stored(self) -> Mapping[str, Mapping[str, Any]]:
        return self._desk.editor.patches().get(KEY_SECRETS, {})

    async def _expect_readers(self) -> None:
        """Look whether every worker that lives could read what is sealed here.

        Raises:
            ClientFault: one could not, and would go on with the secret of its file.
        """
        present = self._desk.editor.master_keys[0]
        workers = await self._list_alive()
        blind = [
            worker.id
            for worker in workers
            if worker.state is not None and present not in worker.state.master_keys
        ]
        if blind:
            raise ClientFault(master_key_differs(blind))

    async def _wait(self, version: int, key: str) -> Taken:
        """Wait until all workers that live work by a version, for three seconds at most."""
        monotonic_s = self._desk.deps.clock.monotonic_s
        until_s = monotonic_s() + TAKEN_S
        while True:
            found = taken_by(await self._list_alive(), version, key)
            if not found.waiting or monotonic_s() > until_s:
                return found
            await asyncio.sleep(LOOK_S)

    async def _list_alive(self) -> list[ListedWorker]:
        workers = await self._desk.fleet.list_workers(self._desk.now_ms())
        return [worker for worker in workers if worker.alive]


def taken_by(workers: Sequence[ListedWorker], version: int, key: str) -> Taken:
    """Tell workers apart by what they have of a key's secret.

    Args:
        workers: that live.
        version: `config_version` with which it came.
        key: its id.
    """
    by, waiting, unread = list[str](), list[str](), list[str]()
    for worker in workers:
        state = worker.state
        if state is None or state.config_version < version:
            waiting.append(worker.id)
        elif key in state.unread_secrets:
            unread.append(worker.id)
        else:
            by.append(worker.id)
    return Taken(by=tuple(by), waiting=tuple(waiting), unread=tuple(unread))


def read_secret(body: Mapping[str, Any]) -> tuple[str, bool]:
    """Read a secret, and whether it is set although some worker cannot read it.

    Raises:
        ClientFault: it is none; nothing of what was given is in the message.
    """
    for name in body:
        if name not in {SECRET, ANYWAY}:
            raise ClientFault(invalid(f"unknown field; there are {SECRET} and {ANYWAY}"))
    secret, is_forced = body.get(SECRET), body.get(ANYWAY, False)
    if not isinstance(is_forced, bool):
        raise ClientFault(invalid(f"{ANYWAY} has to be true or false", ANYWAY))
    if not isinstance(secret, str):
        raise ClientFault(invalid("the secret has to be a text", SECRET))
    fault = fault_of_secret(secret)
    if fault is not None:
        raise ClientFault(invalid(f"secret: {fault}", SECRET))
    return secret, is_forced


def master_key_differs(workers: Sequence[str]) -> ErrorBody:
    """The error of a secret that some workers could not read."""
    named = ", ".join(workers[:NAMED]) + (" and more" if len(workers) > NAMED else "")
    return ErrorBody(
        status=409,
        type="invalid_request_error",
        code="master_key_differs",
        message=f"these workers could not read it and would go on with the file's secret: {named};"
        " give all of them the GW_MASTER_KEY of whoever asks (GW_MASTER_KEY_PREVIOUS where it is"
        f" being replaced), or send {ANYWAY}: true",
        param="GW_MASTER_KEY",
    )
