"""Which record an error means, and that no other has to wait until it is mended."""

import pytest

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.errors import RecordUnreadableError
from cluster_gw.store.admission import Refusal
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.unreadable import fault_of, readable
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.store.lone_worker import DONE, KEYS, WINDOW, LoneWorker, claim, target

RPM = target(Limits(rpm=20))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("GW_UNREADABLE key 2", ["k2"]),
        ("GW_UNREADABLE key 3 script: ab, on @user_script:9.", ["k3"]),
        ("WRONGTYPE Operation against a key", ["k1", "k2", "k3"]),
    ],
)
def test_key_is_named_as_it_was_sent(text: str, keys: list[str]) -> None:
    template = template_of(load_scripts()["admission/observe"], ["k1", "k2", "k3"], 1)

    assert list(fault_of(text, template.head + bulk("k4")).keys) == keys


def test_key_of_a_command_is_its_first_word() -> None:
    assert fault_of("WRONGTYPE x", b"*3\r\n$4\r\nHGET\r\n$1\r\nk\r\n$3\r\nnow\r\n").keys == ("k",)


async def test_others_are_read_when_some_records_cannot_be() -> None:
    asked: list[list[str]] = []

    async def ask(keys: object) -> str:
        assert isinstance(keys, list)
        asked.append(list(keys))
        for bad in ("b", "d"):
            if bad in keys:
                raise RecordUnreadableError([bad])
        return "told"

    assert await readable(["a", "b", "c", "d"], ask) == (["a", "c"], "told")
    assert asked == [["a", "b", "c", "d"], ["a", "c", "d"], ["a", "c"]]
    assert await readable(["b"], ask) == ([], None)


@pytest.fixture
async def worker(durable_server: RedisServer) -> object:
    async with LoneWorker(durable_server) as worker:
        yield worker


async def test_what_cannot_be_told_to_one_record_does_not_keep_redis_from_being_trusted(
    worker: LoneWorker,
) -> None:
    await worker.use("before", RPM)
    await worker.admissions.drain(5.0)
    kept = await worker.client.call("HGET", WINDOW, "now")
    await worker.client.call("HSET", WINDOW, "now", "12 x")
    await worker.lose()
    lease = await worker.granted("alone", RPM)
    assert lease.is_local

    worker.server.start()
    await until_soon(lambda: not worker.alone.doubts, 30.0)
    refused = await worker.reserve("after", RPM)
    await worker.client.call("HSET", WINDOW, "now", kept)
    worker.admissions.settle(lease, DONE)

    assert await worker.admissions.drain(5.0) == 0
    assert isinstance(refused, Refusal)
    assert refused.gate is Gate.RECORD_UNREADABLE
    counts = await worker.counters()
    assert (counts["hrs"], counts["hts"]) == (2, 140)


async def test_share_of_a_hold_that_cannot_be_taken_comes_back(worker: LoneWorker) -> None:
    allowance = Allowance(rpm=4)
    key = KEYS.client("app")[1]
    await worker.client.call("SET", key, "x")

    with pytest.raises(RecordUnreadableError) as caught:
        await worker.hold(claim("a", allowance))

    assert caught.value.keys == (key,)
    assert not worker.alone.doubts
