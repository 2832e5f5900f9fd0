"""What the routes of the admin API work with."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final, Protocol

import msgspec

from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.server.admin.editor import Editor
from cluster_gw.server.inference import Deps
from cluster_gw.store.audit import Audit
from cluster_gw.store.cache_index import CacheIndex
from cluster_gw.store.fleet import Fleet
from cluster_gw.store.pins import Pins
from cluster_gw.store.request_records import RequestRecords
from cluster_gw.store.usage_records import Tell

ERRORS_LOOKBACK_MIN: Final = 30
"""How long ago an error of a route may be to be held against it."""


class Penalties(Protocol):
    """What is held against routes; raises `StoreLostError` while Redis is away."""

    async def list_rows(self, now_ms: int) -> Sequence[Mapping[str, Any]]:
        """Give one row for each route against which anything is held, `route` its id."""

    async def list_providers(self) -> Sequence[Mapping[str, Any]]:
        """Give one entry for each provider that is not well as a whole."""

    async def clear(self) -> int:
        """Forget all of it; how many records said something."""

    async def clear_key(self, key: str) -> int:
        """Forget what is held against one key; how many records said something."""

    async def forget_refusals(self, provider: str, key: str) -> int:
        """Forget what a provider held against a secret that was replaced; how many records did."""

    async def bench_key(self, key: str, wait_ms: int) -> int:
        """Have one key rest; until when it does, ms since the epoch, 0 for one without models."""


class Windows(Protocol):
    """What the windows of keys count; raises `StoreLostError` while Redis is away."""

    async def list_rows(self) -> Sequence[Mapping[str, Any]]:
        """Give one row for each key."""


class KeyPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the configuration.

    Attributes:
        is_checkable: its provider has a free call that needs the key.
    """

    provider: str
    key: str
    is_checkable: bool


class KeyHealth(Protocol):
    """What is known of keys; raises `StoreLostError` while Redis is away."""

    def list_places(self) -> Sequence[KeyPlace]:
        """Give every key."""

    async def show(self) -> Mapping[str, Any]:
        """Tell what is known of each, and what is ordered."""

    async def order(
        self, provider: str | None, key: str | None, places: Sequence[KeyPlace]
    ) -> Mapping[str, Any]:
        """Order a check of `places`: all keys, those of a provider, or one."""


class Usage(Protocol):
    """What was used; raises `StoreLostError` while Redis is away."""

    async def read(self, days: Sequence[date], tell: Tell) -> Sequence[str]:
        """Tell all that was used on some days; gives the names of records that cannot be read."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as its administrator sees it.

    Attributes:
        deps: what its inference endpoints work with.
        foresight: asks how a request would be routed.
        records: of requests that have ended.
        editor: shows and changes the configuration.
        penalties: what is held against routes.
        windows: what those of keys count.
        health: what is known of keys.
        cache: which answers are stored.
        fleet: all workers.
        pins: where runs and sessions stay.
        audit: what was changed by whom.
        server_ms: the clock of Redis, ms since the epoch; None while it was not heard.
        usage: what was used.
    """

    deps: Deps
    foresight: Foresight
    records: RequestRecords
    editor: Editor
    penalties: Penalties
    windows: Windows
    health: KeyHealth
    cache: CacheIndex
    fleet: Fleet
    pins: Pins
    audit: Audit
    server_ms: Callable[[], float | None]
    usage: Usage

    @property
    def config_version(self) -> int:
        """The version of the configuration in force here."""
        return self.editor.version

    def now_ms(self) -> int:
        """The clock of Redis, as far as it was heard; else this worker's. Ms since the epoch."""
        found = self.server_ms()
        return self.deps.clock.wall_ms() if found is None else round(found)
