"""Changes an operator makes while everything runs: checked as a whole, then stored for all."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.app.configuration import FILE, RUN_TIME, Configuration
from cluster_gw.background.config_watch import ConfigWatch
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.errors import ClientFault, ConfigInvalidError, ErrorBody
from cluster_gw.server.admin.editor import (
    Change,
    Changes,
    ClientKeys,
    DroppedPatch,
    KeySecret,
)
from cluster_gw.settings import build_catalog
from cluster_gw.settings.key_secrets import place_of
from cluster_gw.settings.loading import Base
from cluster_gw.settings.overlay import (
    Table,
    changed,
    check_change,
    names_of,
    patches_of,
    with_epochs,
    write_table,
)
from cluster_gw.settings.patches import CLIENT_KEYS, EPOCHS, KEY_SECRETS, MADE_CLIENTS, Patch
from cluster_gw.store.key_vault import UnreadError
from cluster_gw.store.overlays import Overlay, Overlays, config_version
from cluster_gw.units import ComboId

CREDENTIALS: Final = frozenset({MADE_CLIENTS, CLIENT_KEYS, KEY_SECRETS})
TRIES: Final = 30  # others change something at the same time, each of them once
SHOWN_FAULTS: Final = 5
VALID_MS: Final = 1000  # the caller is answered before


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a change builds on, as it was when its check began.

    Attributes:
        base: the file.
        known: the overlay over it.
        table: the same, read.
        dropped: names of its patches that the file does not take.
        catalog: what both make.
    """

    base: Base
    known: Overlay
    table: Table
    dropped: frozenset[str]
    catalog: Catalog


class Editing:
    """Writes the overlay.

    Args:
        configuration: what is in force here.
        overlays: where it is stored.
        watch: knows the present one.
        mint_id: gives a name that nothing else has.
        server_ms: the server's clock; None while it was not heard.
    """

    def __init__(
        self,
        configuration: Configuration,
        overlays: Overlays,
        watch: ConfigWatch,
        *,
        mint_id: Callable[[], str],
        server_ms: Callable[[], float | None],
    ) -> None:
        self._configuration, self._overlays, self._watch = configuration, overlays, watch
        self._mint_id, self._server_ms = mint_id, server_ms
        self._one_at_a_time = asyncio.Lock()

    @property
    def version(self) -> int:
        """`config_version` of this worker."""
        return self._configuration.version

    def shown(self) -> Mapping[str, Any]:
        """What holds, without secrets."""
        return self._configuration.shown()

    def client_keys(self, client: str) -> ClientKeys:
        """What is stored of the keys of a client that is there."""
        found = next(one for one in self._configuration.settings.clients if one.id == client)
        previous = [(one.key_sha256, one.until_ms) for one in found.previous_keys]
        return ClientKeys(present=found.key_sha256, previous=tuple(previous))

    def key_secret(self, key: str) -> KeySecret:
        """Which secret of a key holds."""
        secrets = self._configuration.secrets
        set_at_ms, unread = secrets.set_at_ms.get(key), secrets.unread.get(key)
        return KeySecret(
            source=FILE if set_at_ms is None else RUN_TIME,
            set_at_ms=set_at_ms,
            problem=None if unread is None else unread.value,
        )

    @property
    def master_keys(self) -> tuple[str, ...]:
        """Names of the master keys of this worker, the present one first."""
        return self._configuration.secrets.vault.names

    def sealed(self, key: str, secret: str, set_at_ms: int) -> Mapping[str, Any]:
        """Seal a secret for a key that is there; see `Editor.sealed`."""
        unsealed = self._configuration.secrets
        found = next(one for one in unsealed.settings.keys if one.id == key)
        try:
            stored = unsealed.vault.seal(secret, place_of(unsealed.settings, found), set_at_ms)
        except UnreadError:
            raise ClientFault(no_master_key()) from None
        return msgspec.structs.asdict(stored)

    def resealed(self) -> Mapping[str, Mapping[str, Any]]:
        """Seal anew what lies under another master key; see `Editor.resealed`."""
        unsealed = self._configuration.secrets
        if not self.master_keys:
            raise ClientFault(no_master_key())
        stored, present = self._configuration.table.get(KEY_SECRETS, {}), self.master_keys[0]
        return {
            key.id: self.sealed(key.id, key.secret.reveal(), unsealed.set_at_ms[key.id])
            for key in unsealed.settings.keys
            if key.id in unsealed.set_at_ms and stored[key.id].get("master") != present
        }

    def patches(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """What was changed, by noun and id."""
        table = self._configuration.table
        return {noun: ids for noun, ids in table.items() if noun != EPOCHS}

    def dropped(self) -> list[DroppedPatch]:
        """What of it does not fit the file of this worker."""
        return [
            DroppedPatch(patch=one.patch.name, faults=one.faults)
            for one in self._configuration.dropped
        ]

    async def expect(self, seen: int) -> None:
        """Look whether the configuration still has a version; see `Editor.expect`."""
        await self._watch.read()
        if seen != config_version(self._watch.known):
            raise self._conflict()

    async def write(self, changes: Changes, seen: int | None) -> tuple[str, ...]:
        """Store changes for all workers; see `Editor.write`."""
        async with self._one_at_a_time:
            for _ in range(TRIES):
                await self._watch.read()
                # By what is stored, also where this worker cannot read it.
                if seen is not None and seen != config_version(self._watch.known):
                    raise self._conflict()
                held, wanted = self._held(), changes()
                before = frozenset(self._configuration.warnings)
                # In a thread: the check of a large change would hold up this worker's requests.
                table = await asyncio.to_thread(changed_table, held, wanted)
                if held.base is not self._configuration.base:
                    continue  # it has to fit the file as it is now
                if table == held.table or await self._store(held.known, table):
                    now = self._configuration.warnings
                    return tuple(line for line in now if line not in before)
            raise self._conflict()

    async def clear(self, seen: int | None) -> None:
        """Go back to the files; see `Editor.clear`."""

        def gone() -> list[Change]:
            return [
                Change(noun=noun, id=name, fields={}, remove=True)
                for noun, ids in self.patches().items()
                if noun not in CREDENTIALS  # no key comes back by the way, and no client is lost
                for name in ids
            ]

        await self.write(gone, seen)

    def _held(self) -> Held:
        configuration = self._configuration
        return Held(
            base=configuration.base,
            known=self._watch.known,
            table=configuration.table,
            dropped=frozenset(one.patch.name for one in configuration.dropped),
            catalog=configuration.current.serving.runtime.catalog,
        )

    async def _store(self, known: Overlay, table: Table) -> bool:
        try:
            text = write_table(table)
        except ConfigInvalidError as fault:
            raise ClientFault(does_not_fit(fault.faults)) from None
        now_ms = self._server_ms()
        stored = await self._overlays.replace(
            known,
            Overlay(id=self._mint_id(), patches=text),
            valid_until_ms=0 if now_ms is None else round(now_ms) + VALID_MS,
        )
        if stored is not None:
            self._watch.take(stored)
        return stored is not None

    def _conflict(self) -> ClientFault:
        version = config_version(self._watch.known)
        return ClientFault(
            ErrorBody(
                status=412,
                type="invalid_request_error",
                code="config_conflict",
                message=f"the configuration has version {version} by now; nothing was stored",
                param="If-Match",
            )
        )


def changed_table(held: Held, changes: Sequence[Change]) -> Table:
    """Give the overlay after some changes, which the file of this worker takes.

    Raises:
        ClientFault: they do not fit.
    """
    table, names = held.table, set[str]()
    for one in changes:
        patch = Patch(noun=one.noun, id=one.id, fields=dict(one.fields))
        table = changed(table, patch, remove=one.remove)
        names |= names_of(patch)
    whole = [one for one in patches_of(table) if one.name not in held.dropped - names]
    try:
        settings = check_change(held.base, whole, names)
    except ConfigInvalidError as fault:
        raise ClientFault(does_not_fit(fault.faults)) from None
    return forgetting(held, table, build_catalog(settings, config_version(held.known)))


def forgetting(held: Held, table: Table, after: Catalog) -> Table:
    """Have nothing count that is remembered of combos which a change orders differently."""
    before = held.catalog
    moved = [name for name in before.combos if epoch_in(before, name) != epoch_in(after, name)]
    return with_epochs(table, held.known.version + 1, moved, after.combos)


def epoch_in(catalog: Catalog, combo: ComboId) -> str | None:
    """The epoch of a combo; None where it is not there, or has no members."""
    found = catalog.resolve(combo) if combo in catalog.combos else None
    return None if found is None else found.epoch


def no_master_key() -> ErrorBody:
    """The error of a secret that cannot be stored: it would lie in Redis as it is."""
    return ErrorBody(
        status=409,
        type="invalid_request_error",
        code="no_master_key",
        message="no secret is stored in Redis without a key to encrypt it: set GW_MASTER_KEY to"
        " 32 bytes (openssl rand -hex 32), the same for all workers, and start them again; or"
        " change the secret in the file that `keys[].secret` names",
    )


def does_not_fit(faults: Sequence[str]) -> ErrorBody:
    """The error of a change that the configuration as a whole does not take."""
    place, _, _ = faults[0].partition(": ")
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_request",
        message="; ".join(faults[:SHOWN_FAULTS]),
        param=place,
    )
