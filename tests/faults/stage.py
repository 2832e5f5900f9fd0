"""Two simulated providers, one worker and the books of all three, with every budget near 100 ms."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any, Final, Self
from unittest import mock

import msgspec
import redis

from cluster_gw.server.runner import Runner
from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.faults.client import CLIENT_KEY, Visitor
from tests.faults.reference import MAX_BLANK
from tests.lua.calls import texts
from tests.lua.window_fields import leases, present

SLOTS: Final = 24  # cases side by side in a sweep
PROVIDERS: Final = ("a", "b")
SECRETS: Final = {"a": "secret-of-a", "b": "secret-of-b"}
TIMEOUTS: Final = {"connect_s": 0.15, "first_byte_s": 0.1, "stall_s": 0.1, "total_s": 5.0}
ROOMY: Final = {"rpm": 10**6, "concurrency": 10**3, "monthly_tokens": 10**12}
PEEK: Final = {"idle_ms": 100, "last_idle_ms": 150, "max_total_ms": 300}
ANSWERED_WITHIN_S: Final = 3.0
CANCELLED_WITHIN_S: Final = 0.25
NEVER_OPENS: Final = 10**6
TICK_S: Final = 0.005


class Account(msgspec.Struct, frozen=True):
    """What Redis holds for one model of one key over the last day."""

    requests: int = 0
    tokens: int = 0
    in_flight: int = 0

    def since(self, before: "Account") -> "Account":
        """What was added after `before`."""
        return Account(self.requests - before.requests, self.tokens - before.tokens, self.in_flight)


class LoopWatch:
    """Notes how late this loop was: a machine that stands still uses up budgets by itself.

    Attributes:
        worst_s: the longest delay of one step since the last `reset`.
    """

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._task = asyncio.create_task(self._watch())

    def reset(self) -> None:
        """Begin anew."""
        self.worst_s = 0.0

    async def stop(self) -> None:
        """End the watch."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            due_s = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            self.worst_s = max(self.worst_s, time.monotonic() - due_s)


def configuration(urls: Mapping[str, str], scale: int, slots: int) -> dict[str, Any]:
    """A catalogue with a model, a key and two combos for each slot: cases share no window or rest.

    `only`: provider a alone; `both`: a, then b. The client has limits of its own, which no case
    reaches, so that every case holds and settles for it, too.
    """
    models = [f"m{slot:02}" for slot in range(slots)]
    response = {"reject_empty": True, "require_terminal": True, "apply_to": "both"}
    combo = {"family": "classic", "strategy": "priority", "response": response}
    timeouts = {name: bound * scale for name, bound in TIMEOUTS.items()}
    return {
        "providers": {
            name: {"dialect": "openai", "base_url": url, "timeouts": timeouts}
            for name, url in urls.items()
        },
        "keys": [
            {"id": f"{name}-{m}", "provider": name, "secret": SECRETS[name], "models": [m]}
            for name in PROVIDERS
            for m in models
        ],
        "models": [{"provider": name, "model": model} for name in PROVIDERS for model in models],
        "combos": [
            *({"id": f"only-{m}", "members": [f"a/{m}"], **combo} for m in models),
            *({"id": f"both-{m}", "members": [f"a/{m}", f"b/{m}"], **combo} for m in models),
        ],
        "default_combo": "only-m00",
        "clients": [
            {
                "id": "app",
                "key_sha256": sha256(CLIENT_KEY.encode()).hexdigest(),
                "limits": ROOMY,
            }
        ],
        "routing": {
            "peek": {
                **{name: bound * scale for name, bound in PEEK.items()},
                "max_blank": MAX_BLANK,
            },
            "attempts": {"time_budget_ms": 1500 * scale},
            "breaker": {"threshold": NEVER_OPENS},  # each case is to meet its fault
        },
    }


class Stage:
    """Everything one sweep needs; `async with` starts and ends it.

    Args:
        redis_url: of a running server, as the worker is to reach it.
        prefix: keeps this stage's keys apart.
        books_url: the same server, reached directly.
        urls: of providers that are not to be the simulated ones.
        scale: multiplies every budget, for tests whose subject is another one.
        slots: how many cases may run side by side.
        is_shipped: health rules are those that are shipped; then cases are not to run side by side.
    """

    def __init__(
        self,
        redis_url: str,
        *,
        prefix: str,
        books_url: str | None = None,
        urls: Mapping[str, str] | None = None,
        scale: int = 1,
        slots: int = 1,
        is_shipped: bool = False,
    ) -> None:
        self._is_shipped = is_shipped
        self._redis_url = redis_url
        self._books = redis.Redis.from_url(books_url or redis_url, decode_responses=True)
        self.prefix = prefix
        self._urls = urls or {}
        self._scale = scale
        self._slots = slots
        self.providers: dict[str, RunningSimulator] = {}
        self._read_bytes = 0

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            opened.callback(self._books.close)
            for seed, name in enumerate(PROVIDERS, 1):
                keys = {SECRETS[name]: KeyLimits(label=f"{name}1")}
                config = SimulatorConfig(name=name, keys=keys, any_model=True, seed=seed)
                self.providers[name] = await serve_simulator(config)
                opened.push_async_callback(self.providers[name].close)
            urls = {name: provider.base_url for name, provider in self.providers.items()}
            catalogue = configuration({**urls, **self._urls}, self._scale, self._slots)
            if self._is_shipped:
                del catalogue["routing"]["breaker"]
            self.gateway = Gateway(catalogue, self._redis_url, prefix=self.prefix)
            await opened.enter_async_context(self.gateway)
            if not self._is_shipped:
                # Cases run side by side: what one says of a whole provider or model is not to reach
                # the others. What it says of a target is forgotten between them (`heal`).
                conditions = self.gateway.engine.health.conditions
                opened.enter_context(mock.patch.object(conditions, "barring", return_value=None))
                opened.enter_context(mock.patch.object(conditions, "is_shut", return_value=False))
            self.watch = LoopWatch()
            opened.push_async_callback(self.watch.stop)
            await asyncio.sleep(0)
            self._tasks = self._working()
            self._opened = opened.pop_all()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._opened.aclose()

    async def visitor(self, *, receive_bytes: int = 0) -> Visitor:
        """A client of the worker that is connected; gone at the latest when the stage ends."""
        visitor = await Visitor.come(self.port, receive_bytes=receive_bytes)
        self._opened.callback(visitor.leave, reset=True)
        return visitor

    async def end_serving(self) -> None:
        """End the worker's server as its supervisor does, with one second for what is open."""
        server = self.gateway._server
        server.config.timeout_graceful_shutdown = 1
        server.should_exit = True
        await self.gateway._task

    @property
    def budget_s(self) -> float:
        """The shortest time that a provider is given for anything."""
        return min(TIMEOUTS.values()) * self._scale

    @property
    def port(self) -> int:
        """Of the worker's data plane."""
        return self.gateway.port

    def account(self, provider: str, model: str) -> Account:
        """The window of a model of the provider's key for it."""
        key = f"{provider}-{model}"
        slot = f"{{{provider}.{key}}}"
        requests, tokens, flights = self._books_of(f"w:{slot}:{key}:{model}")
        return Account(requests, tokens, flights)

    def accounts(self, model: str) -> list[Account]:
        """The windows of a model at both providers."""
        return [self.account(provider, model) for provider in PROVIDERS]

    def client_books(self) -> tuple[int, int]:
        """Tokens of the client's month less those of all windows, and its holds in flight.

        Both are 0 once everything is settled.
        """
        tokens, _, flights = self._books_of("c:{app}")
        for window in self._books.scan_iter(f"{self.prefix}:w:*"):
            tokens -= self._books_of(window.removeprefix(f"{self.prefix}:"))[1]
        return tokens, flights

    def _books_of(self, name: str) -> tuple[int, int, int]:
        """Two sums of the period, and the leases that are held: all but those that expired."""
        fields = texts(self._books, f"{self.prefix}:{name}")
        if not fields:
            return 0, 0, 0
        now = present(fields)
        return now["pr"], now["pt"], sum(one.state != "X" for one in leases(fields).values())

    async def heal(self) -> None:
        """Forget what earlier cases said about the health of targets, in Redis and the worker."""
        for record in self._books.scan_iter(f"{self.prefix}:h:*"):
            self._books.delete(record)
        await self.everything_heard()
        self.gateway.engine._admissions.bars.clear()

    async def everything_heard(self) -> None:
        """Wait until the worker has heard what was told so far: that of something told now."""
        heard = self._heard_unknown()
        while self._heard_unknown() == heard:
            self._books.publish(f"{self.prefix}:events", "healed")
            await asyncio.sleep(TICK_S)

    def _heard_unknown(self) -> float:
        return self.gateway.registry.value(catalog.EVENTS, "unknown")

    def new_lines(self) -> list[dict[str, Any]]:
        """What the worker logged since the last call."""
        self.gateway.log.flush()
        written = self.gateway.stream.getvalue()
        lines = written[self._read_bytes :].splitlines()
        self._read_bytes = len(written)
        return [msgspec.json.decode(line) for line in lines]

    def story(self, provider: str, case_id: str) -> dict[str, Any]:
        """What a provider saw of one case."""
        known = self.providers[provider].provider.ledger.story(case_id)
        return known or {"calls": 0, "outcomes": [], "tokens": 0}

    async def settled(self, within_s: float = ANSWERED_WITHIN_S) -> list[str]:
        """Wait until nothing is going on any more; tell what still is."""
        until_s = time.monotonic() + within_s
        while (left := self._unsettled()) and time.monotonic() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)
        return left

    async def idle(self, within_s: float = 1.0) -> list[str]:
        """Wait until no task is left that was not there at the start; name those that are."""
        until_s = time.monotonic() + within_s
        while self._working() > self._tasks and time.monotonic() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)
        extra = self._working() - self._tasks
        return [f"{extra} tasks were left"] if extra > 0 else []

    def _working(self) -> int:
        """Tasks, but for those of open connections that wait for a request."""
        busy = self.gateway._server.server_state.tasks
        return sum(
            task in busy or getattr(task.get_coro(), "cr_code", None) is not Runner._run.__code__
            for task in asyncio.all_tasks()
        )

    def lost_settlements(self) -> int:
        """Settlements the worker gave up, and those whose lease Redis did not know."""
        settlements = self.gateway.engine._admissions.settlements
        return settlements.abandoned + settlements.faults + settlements.late

    def _unsettled(self) -> list[str]:
        left = []
        for name, provider in self.providers.items():
            in_flight = provider.stats()["totals"]["in_flight"]
            if in_flight:
                left.append(f"provider {name} has {in_flight} calls in flight")
        if self.gateway.current.in_flight:
            left.append(f"the worker has {self.gateway.current.in_flight} requests in flight")
        pending = self.gateway.engine._admissions.pending
        if pending:
            left.append(f"{pending} settlements are pending")
        if self.gateway.engine.is_alone:
            left.append("the worker does not trust Redis yet")
        return left
