"""What all workers know of keys, models and the pool as a whole: who may not be used, and why.

Everything stands in four hashes of one slot. A worker reads them when it starts, every few
seconds, and at once when it hears that something changed. Admission asks what was read, which is
mostly that nobody is barred. The scripts are `lua/health/{judge,retire,mark_tools,weigh}`.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote

import msgspec

from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.key_status import KeyRecord, KeyStatus
from cluster_gw.core.limits.model_status import ModelRecord, ModelStatus
from cluster_gw.core.limits.tool_marks import is_recent
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import Refusal
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.units import MS_PER_S

KEY_WORDS: Final = 6
PER_MILLE: Final = 1000
MODEL_WORDS: Final = 4
RETIRE_ARGS: Final = 5
STATUS_OF: Final = (None, ModelStatus.SUSPECTED, ModelStatus.RETIRED)
ANSWERED: Final = "answered"
REFUSED: Final = "refused"
MARK_ARGS: Final = 4
MODEL_REFUSAL: Final = Refusal(gate=Gate.MODEL_RETIRED, scope="model", retry_after_ms=0)
KEY_REFUSAL: Final = Refusal(gate=Gate.KEY_INVALID, scope="key", retry_after_ms=0)


class Booked(msgspec.Struct, frozen=True, kw_only=True):
    """What a booking has changed.

    Attributes:
        is_changed: the status is another one now.
        rejections: of the key, in a row.
    """

    is_changed: bool
    rejections: int


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The pool as a whole, as it was last weighed."""

    is_degraded: bool = False
    usable: int = 0
    total: int = 0


OnProven = Callable[[str, str, str, ModelStatus | None], None]
OnMarked = Callable[[str, str, bool], None]


class StatusBoard:
    """Reads and writes statuses.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        settlements: the queue that repeats what requests prove until it is booked.
        wall_ms: ms since the epoch, for the day after which a retired model is tried again.
        on_proven: told provider, model, reason and the new status, None for none, by the one worker
            of the fleet whose request changed it.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Attributes:
        keys: what is known of each key that was ever checked.
        models: what is known of models of which anything was proven.
        toolless: provider and model of those that have recently refused tools; mostly empty.
        on_marked: told provider, model and whether it refuses tools now, by the one worker of the
            fleet whose request changed it.
        pool: as it was last weighed.
        bars_any: whether any key or model may not be used; asked for each request, mostly no.

    Every method that asks Redis raises `StoreLostError` while it is away; what was read then stays.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        settlements: SettlementQueue,
        *,
        wall_ms: Callable[[], int],
        on_proven: OnProven | None = None,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self.keys: Mapping[str, KeyRecord] = {}
        self.models: Mapping[str, ModelRecord] = {}
        self.toolless: frozenset[tuple[str, str]] = frozenset()
        self.pool = Pool()
        self.bars_any = False
        self._barred: frozenset[str] = frozenset()
        self._retired: frozenset[str] = frozenset()
        self._settlements = settlements
        self._wall_ms = wall_ms
        self.on_marked: OnMarked | None = None
        self._on_proven = on_proven
        self._retire, self._mark_tools = scripts["health/retire"], scripts["health/mark_tools"]
        client.know(self._retire, self._mark_tools)
        self._client = client
        self._judge, self._weigh = scripts["health/judge"], scripts["health/weigh"]
        self._names = keys
        self._server_now_ms = server_now_ms

    def __bool__(self) -> bool:
        return self.bars_any

    @property
    def retired_count(self) -> int:
        """Models that are not called."""
        return len(self._retired)

    @property
    def barred_count(self) -> int:
        """Keys that may not be used."""
        return len(self._barred)

    def name_of(self, provider: str, thing: str) -> str:
        """What a key or a model is called here."""
        return self._names.slot(provider, thing).strip("{}")

    def barring(self, provider: str, key: str, model: str) -> Refusal | None:
        """Tell that a model or a key may not be used. Ask only if any may not."""
        if self.name_of(provider, model) in self._retired:
            return MODEL_REFUSAL
        return KEY_REFUSAL if self.name_of(provider, key) in self._barred else None

    def is_routed(self, name: str) -> bool:
        """Whether a key may be used, by its name here."""
        return name not in self._barred

    def record(self, provider: str, key: str) -> KeyRecord:
        """What is known of a key."""
        return self.keys.get(self.name_of(provider, key)) or KeyRecord()

    async def refresh(self) -> None:
        """Read everything."""
        names = self._names
        keys, models, tools, pool = await asyncio.gather(
            self._client.call("HGETALL", names.key_statuses()),
            self._client.call("HGETALL", names.model_statuses()),
            self._client.call("HGETALL", names.tool_marks()),
            self._client.call("HGETALL", names.pool_status()),
        )
        self.keys, self.models, self.pool = read_keys(keys), read_models(models), read_pool(pool)
        now_ms = self._wall_ms()
        self.toolless = read_marks(tools, now_ms)
        self._retired = frozenset(n for n, one in self.models.items() if one.bars(now_ms))
        self._barred = frozenset(n for n, one in self.keys.items() if not one.status.is_routed)
        self.bars_any = bool(self._barred or self._retired)

    async def book_check(
        self, provider: str, key: str, said: str, reason: str, *, disable_after: int, took_ms: int
    ) -> Booked | None:
        """Book what a check said of a key; None when a later one has said something."""
        reply = await self._client.run(
            self._judge,
            [self._names.key_statuses()],
            [
                self.name_of(provider, key),
                *(said, reason, disable_after, took_ms, self._server_now_ms()),
            ],
        )
        if not reply[0]:
            return None
        booked = Booked(is_changed=bool(reply[2]), rejections=int(reply[3]))
        if booked.is_changed:
            await self.refresh()  # whoever booked it must not be the last to know
        return booked

    async def forget_key(self, name: str) -> None:
        """Forget a key that no configuration has any more, or that has another secret."""
        await self._client.run(
            self._judge,
            [self._names.key_statuses()],
            [name, "forget", "-", 1, 0, self._server_now_ms()],
        )

    def prove(self, provider: str, model: str, *, proof: str, request: str, reason: str) -> None:
        """Queue what a failure proves of its model.

        Args:
            provider: whose model it is.
            model: upstream's name.
            proof: `definitive` or `probable`.
            request: the id of the request that met it.
            reason: a word.
        """

        def heard(reply: list[Reply]) -> None:
            if reply[0] == 1 and self._on_proven is not None:
                self._on_proven(provider, model, reason, STATUS_OF[int(reply[2])])

        template = template_of(self._retire, [self._names.model_statuses()], RETIRE_ARGS)
        own = bulk(self.name_of(provider, model), proof, request, reason)
        self._settlements.add_call(template, own, None, lazy=True, heard=heard)

    def answered(self, provider: str, model: str, reserved_ms: int) -> None:
        """Queue that a model has answered a request; only if anything is proven of it."""
        if self.name_of(provider, model) in self.models:
            self.prove(provider, model, proof=ANSWERED, request=str(reserved_ms), reason=ANSWERED)

    def mark_tools(self, provider: str, model: str, *, reserved_ms: int | None = None) -> None:
        """Queue that a model has refused a request for its tools, or answered one that had some.

        Only what is not known yet is told.

        Args:
            provider: whose model it is.
            model: upstream's name.
            reserved_ms: when the answered request was admitted; None for a refusal.
        """
        is_refusal = reserved_ms is None
        if ((provider, model) in self.toolless) is is_refusal:
            return

        def heard(reply: list[Reply]) -> None:
            if reply[2] and self.on_marked is not None:
                self.on_marked(provider, model, is_refusal)

        template = template_of(self._mark_tools, [self._names.tool_marks()], MARK_ARGS)
        said = REFUSED if is_refusal else ANSWERED
        own = bulk(self.name_of(provider, model), said, reserved_ms or 0)
        self._settlements.add_call(template, own, None, lazy=True, heard=heard)

    async def weigh(
        self, fence: int, usable: int, total: int, policy: DegradedPolicy
    ) -> tuple[bool, bool] | None:
        """Weigh the pool.

        Args:
            fence: of the role's term.
            usable: providers with a usable key.
            total: providers with any key.
            policy: of the operator.

        Returns:
            Whether it has changed, and whether it is degraded; None when another has the role.
        """
        reply = await self._client.run(
            self._weigh,
            [self._names.pool_status()],
            [
                *(fence, usable, total, round(policy.healthy_ratio * PER_MILLE)),
                policy.min_providers,
                round(policy.entry_s * MS_PER_S),
                round(policy.exit_s * MS_PER_S),
                self._server_now_ms(),
            ],
        )
        return (bool(reply[2]), bool(reply[3])) if reply[0] else None


def read_keys(flat: Reply) -> dict[str, KeyRecord]:
    """Read the hash of keys; what cannot be read is left out, as a newer worker may write more."""
    records = {}
    for name, text in _pairs(flat):
        words = text.split(" ")
        try:
            status, rejections, checked_ms, since_ms, said, reason = words[:KEY_WORDS]
            records[name] = KeyRecord(
                status=KeyStatus(status),
                rejections=int(rejections),
                checked_ms=int(checked_ms),
                since_ms=int(since_ms),
                said=said,
                reason=reason,
            )
        except ValueError:
            continue
    return records


def read_models(flat: Reply) -> dict[str, ModelRecord]:
    """Read the hash of models; what cannot be read is left out."""
    records = {}
    for name, text in _pairs(flat):
        words = text.split(" ")
        try:
            status, at_ms, request, reason = words[:MODEL_WORDS]
            records[name] = ModelRecord(
                status=ModelStatus(status), at_ms=int(at_ms), request=request, reason=reason
            )
        except ValueError:
            continue
    return records


def read_marks(flat: Reply, now_ms: int) -> frozenset[tuple[str, str]]:
    """Read the hash of models that refused tools: provider and model of those that count now."""
    found = []
    for name, text in _pairs(flat):
        provider, dot, model = name.partition(".")
        if dot and text.isdecimal() and is_recent(int(text), now_ms):
            found.append((unquote(provider), unquote(model)))
    return frozenset(found)


def read_pool(flat: Reply) -> Pool:
    """Read the hash of the pool."""
    fields = dict(_pairs(flat))
    return Pool(
        is_degraded=fields.get("degraded") == "1",
        usable=int(fields.get("usable", 0)),
        total=int(fields.get("total", 0)),
    )


def _pairs(flat: Reply) -> list[tuple[str, str]]:
    words = [word.decode() for word in flat]
    return list(zip(words[::2], words[1::2], strict=True))
