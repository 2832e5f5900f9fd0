"""How the routes of the admin API show and change the configuration, whoever keeps it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed of one thing of the configuration.

    Attributes:
        noun: `models`, `keys`, `key_secrets`, `profiles`, `combos`, `settings`, `clients`,
            `client_keys` or `made_clients`.
        id: which of them.
        fields: new values; null goes back to what the file says.
        remove: all of it goes back to what the file says.
    """

    noun: str
    id: str
    fields: Mapping[str, Any]
    remove: bool = False


Changes = Callable[[], Sequence[Change]]
"""Gives changes by what holds when it is called; asked again when that has changed meanwhile."""


class DroppedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A change that does not fit the file of this worker, and why."""

    patch: str
    faults: tuple[str, ...]


class ClientKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of the keys of a client: SHA-256, in hexadecimal.

    Attributes:
        present: of the one it has.
        previous: of those before, and until when (ms since the epoch) they are taken.
    """

    present: str
    previous: tuple[tuple[str, int], ...] = ()


class KeySecret(msgspec.Struct, frozen=True, kw_only=True):
    """Which secret of a key holds in this worker; nothing of the secret itself.

    Attributes:
        source: `file`, or `run_time`.
        set_at_ms: when it was set at run time, ms since the epoch; None for the file's.
        problem: why one that was set at run time does not hold; None where nothing is wrong.
    """

    source: str
    set_at_ms: int | None
    problem: str | None


class Editor(Protocol):
    """Shows and changes the configuration."""

    @property
    def version(self) -> int:
        """`config_version` of this worker."""

    def shown(self) -> Mapping[str, Any]:
        """`models`, `keys`, `combos`, `clients`, `routing`, `cache`, `default_combo`; no secret."""

    def client_keys(self, client: str) -> ClientKeys:
        """What is stored of the keys of a client that is there; for what replaces them."""

    def key_secret(self, key: str) -> KeySecret:
        """Which secret of a key holds."""

    @property
    def master_keys(self) -> tuple[str, ...]:
        """Names of the master keys of this worker, the present one first; none without any."""

    def sealed(self, key: str, secret: str, set_at_ms: int) -> Mapping[str, Any]:
        """Seal a secret for a key that is there: the fields of its patch.

        Raises:
            ClientFault: no master key is set.
        """

    def resealed(self) -> Mapping[str, Mapping[str, Any]]:
        """Seal every secret that lies under another master key than the present one: patches.

        Raises:
            ClientFault: no master key is set.
        """

    def patches(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """What was changed, by noun and id."""

    def dropped(self) -> list[DroppedPatch]:
        """What of it does not fit the file of this worker."""

    async def expect(self, seen: int) -> None:
        """Look whether the configuration still has a version; raises as `write`."""

    async def write(self, changes: Changes, seen: int | None) -> tuple[str, ...]:
        """Store changes for all workers; they are in force here when this returns.

        What they are is asked once this worker knows what all others have stored, and they are
        stored only if nothing was stored since. So whatever they look for holds: of two who make a
        thing of one name at once, one is refused.

        Args:
            changes: they hold together or not at all; what it raises is raised, nothing is stored.
            seen: the `config_version` its writer saw; None for whatever it is.

        Returns:
            What the writer should see although they hold: warnings that are new.

        Raises:
            ClientFault: they do not fit, or the version is another one; nothing was stored.
            StoreLostError: Redis is away; nothing is known to be stored.
        """

    async def clear(self, seen: int | None) -> None:
        """Go back to the files; as `write`."""
