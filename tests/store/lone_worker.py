"""A worker's way to Redis and what it does without it, on a server that tests kill and freeze."""

from typing import Self

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Refusal, Settlement, TargetLimits
from cluster_gw.store.alone import Alone, LostPolicy, Mode
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Claim, ClientRefusal, Holds, Standing, Used
from cluster_gw.store.cursor import Cursors
from cluster_gw.store.keys import Keys
from cluster_gw.store.looks import Looks
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ClientId, KeyId, LeaseId
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.lua.window_fields import fields_of, numbers, present
from tests.store.clocks import SharedClock

DEMAND = Demand(input_tokens=40, output_tokens=60)
DONE = Settlement(counts_request=True, tokens=70, outcome="success")
FREE = Limits()
KEYS = Keys("gw1")
BACK_S = 30.0  # on a machine that does much else
WINDOW = KEYS.model_window(KEYS.slot("p", "acc"), "k", "m")


def target(limits: Limits = FREE, account: str = "acc", **more: Limits) -> TargetLimits:
    return TargetLimits(
        provider="p",
        account=account,
        key=KeyId("k"),
        model="m",
        day_reset="rolling",
        model_limits=limits,
        key_limits=more.get("key", FREE),
    )


class LoneWorker:
    """One worker; `async with` connects it.

    Args:
        server: its Redis; None when it is at `url`, where tests break it themselves.
        mode: without it.
        workers: how many it was told of.
        spare: how many there are, in mode `open`.
        url: see `server`.
        hand_over_s: how long Redis is not trusted yet when it is back.
    """

    def __init__(
        self,
        server: RedisServer | None,
        mode: Mode = Mode.SHARE,
        workers: int = 1,
        *,
        spare: int = 1,
        url: str = "",
        hand_over_s: float = 0.0,
    ) -> None:
        scripts = load_scripts()
        self._server, self.clock, self.workers = server, SharedClock(), workers
        self.client = RedisClient(server.url if server else url, prefix="gw1", deadline_s=0.5)
        self.alone = Alone(
            self.client,
            scripts,
            whole=KEYS.workers(),
            policy=LostPolicy(mode=mode, spare_workers=spare, hand_over_s=hand_over_s),
            workers=lambda: self.workers,
            monotonic_s=self.clock.monotonic_s,
        )
        self.admissions = Admissions(
            self.client,
            scripts,
            KEYS,
            worker_id="w1",
            clock_ms=self.clock.server_now_ms,
            monotonic_s=self.clock.monotonic_s,
            server_now_ms=self.clock.server_now_ms,
        )
        self.holds = Holds(
            self.client,
            scripts,
            KEYS,
            self.admissions.settlements,
            worker_id="w1",
            monotonic_s=self.clock.monotonic_s,
            server_now_ms=self.clock.server_now_ms,
        )
        self.cursors = Cursors(self.client, scripts, KEYS, self.alone)
        self.looks = Looks(
            self.client,
            self.alone,
            windows=lambda: [WINDOW],
            caps=list,
            clients=lambda: [KEYS.client("app")[1]],
            server_ms=lambda: float(self.clock.server_now_ms()),
        )
        self.admissions.go_on_with(self.alone)
        self.holds.go_on_with(self.alone)

    async def __aenter__(self) -> Self:
        await self.client.start(5.0)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.alone.close()
        await self.admissions.close()
        await self.client.close()

    @property
    def server(self) -> RedisServer:
        """The one server."""
        assert self._server is not None
        return self._server

    async def lose(self) -> None:
        """Kill the server and let the grace pass."""
        self.server.kill()
        await until_soon(lambda: bool(self.alone.doubts))
        self.clock.pass_s(0.3)

    async def regain(self) -> None:
        """Start it again and wait until it is trusted and everything is settled."""
        if self.server.is_running:
            self.server.thaw()
        else:
            self.server.start()
        await until_soon(lambda: not self.alone.doubts, BACK_S)
        assert await self.admissions.drain(5.0) == 0

    async def reserve(
        self, name: str, chosen: TargetLimits, demand: Demand = DEMAND
    ) -> Lease | Refusal:
        return await self.admissions.reserve(chosen, LeaseId(name), demand, ttl_ms=60_000)

    async def granted(self, name: str, chosen: TargetLimits) -> Lease:
        lease = await self.reserve(name, chosen)
        assert isinstance(lease, Lease), lease
        return lease

    async def use(self, name: str, chosen: TargetLimits) -> Lease:
        """Take a lease and settle it."""
        lease = await self.granted(name, chosen)
        self.admissions.settle(lease, DONE)
        return lease

    async def take_all(self, chosen: TargetLimits, prefix: str = "l") -> int:
        """How many leases there are until the first refusal."""
        for count in range(1000):
            if isinstance(await self.reserve(f"{prefix}{count}", chosen), Refusal):
                return count
        raise AssertionError("no end of it")

    async def hold(self, claim: Claim) -> Standing | ClientRefusal:
        return await self.holds.ask(claim, ttl_ms=60_000).answer()

    async def counters(self) -> dict[str, int]:
        flat = await self.client.call("HGETALL", WINDOW)
        return numbers(fields_of(flat))

    async def client_counters(self) -> dict[str, int]:
        text = await self.client.call("HGET", KEYS.client("app")[1], "now")
        return present({"now": text.decode()})


def claim(name: str, allowance: Allowance) -> Claim:
    return Claim(
        id=LeaseId(name),
        client=ClientId("app"),
        allowance=allowance,
        tokens=100,
        prompt_tokens=40,
        micro_usd=50,
        prompt_micro_usd=10,
    )


USED = Used(requests=1, tokens=70, micro_usd=30)
