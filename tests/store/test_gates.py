"""Asking what would be refused: the answer of an admission, and not a trace of it."""

from typing import Any

import msgspec
import pytest

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.cooldown import Cause, Cooldown, Scope, Source
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.admission import Admissions, Lease, Outcome, Refusal, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.gates import READS, Gates, without_writes
from cluster_gw.store.keys import Keys
from cluster_gw.store.rights import CALL
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import ManualClock

SMALL = Demand(input_tokens=10, output_tokens=10)
LARGE = Demand(input_tokens=500, output_tokens=600)
TARGET = TargetLimits(
    provider="p",
    account="acc",
    key=KeyId("k"),
    model="m",
    day_reset="rolling",
    model_limits=Limits(),
    key_limits=Limits(),
)


@pytest.fixture
def gates(client: RedisClient, scripts: Scripts, keys: Keys, clock: ManualClock) -> Gates:
    return Gates(client, scripts, keys, clock_ms=clock.wall_ms)


def limited(**limits: int) -> TargetLimits:
    return msgspec.structs.replace(TARGET, model_limits=Limits(**limits))


def contents(server: RedisServer) -> dict[str, Any]:
    """Every key with its content and until when it lives."""
    listed = server.command("KEYS", "*").split(b"\r\n")[2::2]
    found = {}
    for name in sorted(listed):
        found[name.decode()] = (
            server.command("DUMP", name.decode()),
            server.command("PEXPIRETIME", name.decode()),
        )
    return found


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a target of which a small demand was taken, and what refuses it."""

    target: TargetLimits
    gate: Gate
    scope: str = "model"
    demand: Demand = SMALL


CASES = [
    Case(target=limited(rpm=1), gate=Gate.RPM),
    Case(target=limited(rpd=1), gate=Gate.RPD),
    Case(target=limited(tpm=30), gate=Gate.TPM),
    Case(target=limited(tpd=30), gate=Gate.TPD),
    Case(target=limited(tpm=1000), gate=Gate.TOO_LARGE, demand=LARGE),
    Case(target=limited(concurrency=1), gate=Gate.CONCURRENCY),
    Case(
        target=msgspec.structs.replace(TARGET, key_limits=Limits(rpm=1)),
        gate=Gate.RPM,
        scope="key",
    ),
    Case(
        target=msgspec.structs.replace(TARGET, account_limits=Limits(rpm=1)),
        gate=Gate.RPM,
        scope="account",
    ),
    Case(
        target=msgspec.structs.replace(TARGET, caps=Caps(rpd=1)),
        gate=Gate.PROVIDER_DAILY_CAP,
        scope="key",
    ),
    Case(
        target=msgspec.structs.replace(limited(rpd=1), day_reset="America/Los_Angeles"),
        gate=Gate.RPD,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.gate} of the {case.scope}")
async def test_what_admission_would_refuse_is_told_as_it_would(
    admissions: Admissions, gates: Gates, redis_server: RedisServer, case: Case
) -> None:
    (free,) = await gates.look([(case.target, SMALL)])
    await admissions.reserve(case.target, LeaseId("r.1"), SMALL, ttl_ms=10_000)
    before = contents(redis_server)

    told = await gates.look([(case.target, case.demand)] * 3)

    assert free is None
    assert contents(redis_server) == before
    refused = await admissions.reserve(case.target, LeaseId("r.2"), case.demand, ttl_ms=10_000)
    assert isinstance(refused, Refusal)
    assert (refused.gate, refused.scope) == (case.gate, case.scope)
    for one in told:
        assert one is not None
        assert (one.gate, one.scope) == (case.gate, case.scope)
        assert abs(refused.retry_after_ms - one.retry_after_ms) < 1000


async def test_target_that_rests_is_told_and_stays_as_it_is(
    admissions: Admissions, gates: Gates, redis_server: RedisServer
) -> None:
    lease = await admissions.reserve(TARGET, LeaseId("r.1"), SMALL, ttl_ms=10_000)
    assert isinstance(lease, Lease)
    rest = Cooldown(
        scope=Scope.TARGET, source=Source.HEURISTIC, reason=Cause.RATE_LIMIT, wait_ms=20_000
    )
    admissions.settle(
        lease,
        Settlement(
            counts_request=True, tokens=0, outcome="rate_limit", health=Outcome(cooldown=rest)
        ),
    )
    await admissions.drain(5.0)
    before = contents(redis_server)

    (told,) = await gates.look([(TARGET, SMALL)])

    assert told is not None
    assert (told.gate, told.scope) == (Gate.COOLDOWN, "model")
    assert 15_000 < told.retry_after_ms <= 20_000
    assert contents(redis_server) == before


async def test_nothing_comes_to_be_where_nothing_was(
    gates: Gates, redis_server: RedisServer
) -> None:
    assert await gates.look([(limited(rpm=5), SMALL)] * 60) == [None] * 60

    assert contents(redis_server) == {}


async def test_record_that_cannot_be_read_refuses(
    gates: Gates, keys: Keys, redis_server: RedisServer
) -> None:
    window = keys.model_window(keys.slot("p", "acc"), "k", "m")
    redis_server.command("HSET", window, "now", "nonsense")

    (told,) = await gates.look([(TARGET, SMALL)])

    assert told is not None
    assert told.gate is Gate.RECORD_UNREADABLE


async def test_lost_redis_is_no_answer(
    own_server: RedisServer, scripts: Scripts, keys: Keys, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    own_server.stop()
    gates = Gates(client, scripts, keys, clock_ms=clock.wall_ms)

    with pytest.raises(StoreLostError):
        await gates.look([(TARGET, SMALL)])
    await client.close()


def test_only_commands_that_redis_calls_reading_are_made(
    scripts: Scripts, redis_server: RedisServer
) -> None:
    for name in READS:
        flags = redis_server.command("COMMAND", "INFO", name)
        assert b"+write" not in flags, name
    wanted = set(CALL.findall(scripts["admission/reserve"].text))
    left_out = {name for name in wanted if name not in READS}
    assert all(b"+write" in redis_server.command("COMMAND", "INFO", name) for name in left_out)


def test_a_script_that_calls_redis_otherwise_is_not_taken(scripts: Scripts) -> None:
    script = msgspec.structs.replace(scripts["admission/reserve"], text="return redis.call('PING')")

    with pytest.raises(ScriptContractError, match="admission/reserve"):
        without_writes(script)
