"""`/api/workers`, `/api/drain`, `/api/snapshot`: the workers, and taking them out of use."""

import aiohttp
import httpx
import msgspec

from cluster_gw.server.control import ControlPlane
from cluster_gw.server.introduction import GROUP_HEADER
from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post


def status(gateway: Gateway) -> str:
    return gateway.current.status


async def beaten(gateway: Gateway) -> None:
    coordination = gateway.engine.coordination
    await coordination.membership.beat()
    await coordination.report()


async def only(admin: httpx.AsyncClient) -> dict[str, object]:
    items: list[dict[str, object]] = (await admin.get("/api/workers")).json()["items"]
    assert len(items) == 1
    return items[0]


async def test_workers_are_listed_with_what_they_say_of_themselves(start: Start) -> None:
    gateway = await start()
    await beaten(gateway)

    async with gateway.admin() as admin:
        listed = await only(admin)

    assert (listed["id"], listed["alive"], listed["drained_since_ms"]) == ("w1", True, None)
    state = gateway.engine.coordination.state()
    assert listed["state"] == {
        **msgspec.json.decode(msgspec.json.encode(state)),
        "status": "ready",
        "in_flight": 0,
    }


async def test_drained_worker_says_so_within_a_moment_and_takes_part_again(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    await beaten(gateway)
    async with gateway.admin() as admin:
        answer = await admin.post("/api/drain", json={"worker": "w1"})
        await until_soon(lambda: status(gateway) == "draining")
        listed = await only(admin)
        served = await post(http, gateway.base_url, chat())
        undone = await admin.delete("/api/drain?worker=w1")
        await until_soon(lambda: status(gateway) == "ready")

    assert (answer.status_code, answer.json()["changed"]) == (202, ["w1"])
    assert isinstance(listed["drained_since_ms"], int)
    assert served[0].status == 200  # what comes all the same
    assert (undone.status_code, undone.json()["changed"]) == (200, ["w1"])
    told = [line["event"] for line in gateway.events()]
    assert [event for event in told if event.startswith("worker.")] == [
        "worker.drained",
        "worker.rejoined",
    ]


async def test_group_that_passes_a_call_on_is_meant_where_nobody_is_named(start: Start) -> None:
    gateway = await start()
    await beaten(gateway)
    async with gateway.admin() as admin:
        alone = await admin.post("/api/drain")
        headers = {GROUP_HEADER: "w1 one-that-has-not-begun"}
        group = await admin.post("/api/drain", headers=headers)
        again = await admin.post("/api/drain", json={"all": True})

    assert (alone.status_code, alone.json()["error"]["param"]) == (400, "worker")
    assert (group.status_code, group.json()["changed"]) == (202, ["w1"])
    assert (again.status_code, again.json()["changed"]) == (202, [])


async def test_drain_of_what_does_not_exist_or_is_misspelt_changes_nothing(start: Start) -> None:
    gateway = await start()
    await beaten(gateway)
    async with gateway.admin() as admin:
        answers = [
            await admin.post("/api/drain", json=body)
            for body in (
                *({"worker": "w9"}, {"wroker": "w1"}, {"worker": 7}, {"all": "yes"}),
                *({"all": True, "worker": "w1"}, {"worker": "w\n1"}, {"worker": "w\u00e9"}),
            )
        ]
        query = await admin.delete("/api/drain?al=true")

    assert [one.status_code for one in (*answers, query)] == [404, *([400] * 7)]
    assert (
        await gateway.engine.coordination.fleet.report(gateway.engine.coordination.state())
    ) is (False)


async def test_probe_of_a_drained_worker_is_503(start: Start) -> None:
    gateway = await start()
    gateway.current.is_drained = True
    plane = ControlPlane(
        gateway.current,
        gateway.registry,
        lambda: True,
        lambda: None,
        gateway.engine.deps.clock.monotonic_s,
        gateway.admin_app(),
    )
    transport = httpx.ASGITransport(plane.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://worker") as client:
        answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (503, "draining")


async def test_snapshot_is_told_with_its_size_and_on_demand_its_records(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        whole = (await admin.get("/api/snapshot")).json()
        part = (await admin.get("/api/snapshot?section=windows")).json()
        bad = await admin.get("/api/snapshot?section=moons")

    assert (whole["version"], whole["builder"], whole["age_ms"]) == (0, None, None)
    assert set(whole["records"]) == {
        *("windows", "health", "statistics", "months", "models", "providers", "speed_ranks"),
    }
    assert "items" not in whole
    assert part["items"] == {}
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "section")
