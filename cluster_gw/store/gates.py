"""What Redis would say to an admission now, asked without taking anything: for explaining only.

It is asked by the very text of `admission/reserve`, whose calls that would write are left out. So
whatever admission learns to judge is told here, too. Where something has expired that nobody has
taken back yet, the wait of a refusal may be told a little short.
"""

import asyncio
from collections.abc import Callable, Iterable
from hashlib import sha1
from typing import Final

import msgspec

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate
from cluster_gw.errors import RecordUnreadableError, ScriptContractError
from cluster_gw.store.admission import server_clock
from cluster_gw.store.asking import own_of
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import Refusal, TargetLimits
from cluster_gw.store.packing import ZERO, bulk, template_of
from cluster_gw.store.plan import RESERVE_ARGS, SCOPE_MODEL, Days, Plans
from cluster_gw.store.scripts import Script, Scripts
from cluster_gw.units import MS_PER_S, LeaseId

CALLS: Final = "local call, KEYS, ARGV = redis.call, KEYS, ARGV\n"
READS: Final = ("EXISTS", "HEXISTS", "HGET", "HGETALL", "HMGET", "TIME", "ZRANGE", "ZSCORE")
LEFT_OUT: Final = (
    "local KEYS, ARGV = KEYS, ARGV\n"
    f"local reads = {{ {', '.join(f'{name} = true' for name in READS)} }}\n"
    "local function call(name, ...)\n"
    "  if reads[name] then\n"
    "    return redis.call(name, ...)\n"
    "  end\n"
    "  return 1\n"
    "end\n"
)
NOBODY: Final = LeaseId("explain")
ASKED_TTL_MS: Final = 1000
AT_ONCE: Final = 25  # questions on their way; a worker serves requests meanwhile
UNREADABLE: Final = Refusal(gate=Gate.RECORD_UNREADABLE, scope=SCOPE_MODEL, retry_after_ms=MS_PER_S)

Asked = tuple[TargetLimits, Demand]


class Gates:
    """Asks what would be refused.

    Args:
        client: of this process.
        scripts: the loaded scripts.
        keys: builds key names.
        clock_ms: wall clock, ms since the epoch; only tells which calendar day it is.
        server_now_ms: the time the script works with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        clock_ms: Callable[[], int],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._script = without_writes(scripts["admission/reserve"])
        self._plans, self._days = Plans(keys, scripts), Days()
        self._clock_ms, self._server_now_ms = clock_ms, server_now_ms

    async def look(self, asked: Iterable[Asked]) -> list[Refusal | None]:
        """Tell for each target and demand what refuses it now; None where nothing does.

        Raises:
            StoreLostError: Redis is away.
        """
        wanted, found = list(asked), list[Refusal | None]()
        for first in range(0, len(wanted), AT_ONCE):
            some = wanted[first : first + AT_ONCE]
            found += await asyncio.gather(*(self._look(*one) for one in some))
        return found

    async def _look(self, target: TargetLimits, demand: Demand) -> Refusal | None:
        plan = self._plans.of(target)
        try:
            reply = await self._ask(target, demand, self._clock_ms())
            if not reply[0] and reply[1] == b"day_stale":
                reply = await self._ask(target, demand, int(reply[4]))
        except RecordUnreadableError:
            return UNREADABLE
        if reply[0]:
            return None
        position = int(reply[2])
        gate = plan.gate(Gate(reply[1].decode()), position)
        return Refusal(gate=gate, scope=plan.scope(position), retry_after_ms=int(reply[3]))

    async def _ask(self, target: TargetLimits, demand: Demand, clock_ms: int) -> list[Reply]:
        plan, now_ms = self._plans.of(target), self._server_now_ms()
        tail = plan.reserve.tail
        words = tail.count(b"$")  # each limit is one, and a number has no other
        template = template_of(self._script, plan.keys, RESERVE_ARGS + words)
        packed = b"".join(
            (
                template.head,
                own_of(NOBODY, demand, ASKED_TTL_MS),
                bulk(NOBODY),
                self._days.packed(clock_ms, target.day_reset),
                tail,
                bulk(now_ms) if now_ms else ZERO,
            )
        )
        return await self._client.run_packed(template, packed)


def without_writes(script: Script) -> Script:
    """Give a script as it would answer, without what it would write.

    Raises:
        ScriptContractError: it does not call Redis in the way all scripts do.
    """
    if script.text.count(CALLS) != 1:
        raise ScriptContractError(f"{script.name} calls redis in a way of its own")
    text = script.text.replace(CALLS, LEFT_OUT)
    # Redis names scripts by SHA-1; it is an address here, not a protection.
    name = sha1(text.encode(), usedforsecurity=False).hexdigest()
    return msgspec.structs.replace(script, text=text, sha=name)
