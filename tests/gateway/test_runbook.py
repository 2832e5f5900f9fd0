"""Every line of the runbook runs beside a live gateway, and does what its entry says."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import far, status
from tests.monitoring.runbook import entries

MODEL: Final = "llama-3.3-70b-versatile"
AUTH: Final = {"Authorization": "Bearer sk-app"}
TARGET: Final = "{groq.groq-a}:groq-a"
NONE: Final = b"*0\r\n"
ONCE: Final = {"id": "plant", "times": 1}
QUIET: Final = {
    "SLOWLOG", "LATENCY", "'gw1:{status}:keys'", "'gw1:{status}:models'", "'gw1:{status}:tools'",
    "'gw1:{status}:pool'", "'gw1:m:{groq}", "'gw1:pb:{groq}'", ":_all'",
    "'gw1:lead:{reaper}'", "'gw1:{mem}:drains'", "'gw1:rsp:*'", "'_other _other'",
}  # fmt: skip
"""What says nothing where nothing of it has happened."""


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


def config(simulator: RunningSimulator, bench_failures: int) -> dict[str, Any]:
    """The names of the page."""
    digest = sha256(b"sk-app").hexdigest()
    return {
        "auth": {"mode": "keys", "strangers_rpm": 100},
        "providers": {"groq": far(simulator)["a"]},
        "keys": [{"id": "groq-a", "provider": "groq", "secret": "of-groq-a"}],
        "models": [
            {"provider": "groq", "model": MODEL, "limits": {"rpm": 1000}},
            *({"provider": "groq", "model": f"m{number}"} for number in range(3)),
        ],
        "combos": [{"id": "auto", "members": "all", "sticky": {"enabled": True}}],
        "routing": {"bench": {"failures": bench_failures}},
        "clients": [{"id": "app-a", "key_sha256": digest, "limits": {"rpm": 1000}}],
    }


class Site:
    """A gateway, its Redis, and somebody with redis-cli."""

    def __init__(self, gateway: Gateway, server: RedisServer, folder: Path) -> None:
        self.gateway, self.server = gateway, server
        self.id = ""
        command = folder / "redis-cli"  # what the alias of the page stands for
        command.write_text(f'#!/bin/sh\nexec {redis_cli()} -e -s {server.path} "$@"\n')
        command.chmod(0o755)
        self._path = f"{folder}:{os.environ['PATH']}"

    def run(self, line: str) -> str:
        """Run a line as it stands on the page; what it printed."""
        done = subprocess.run(
            ["/bin/sh", "-ec", line],
            env={"PATH": self._path, "ID": self.id, "IK": "once"},
            capture_output=True,
            text=True,
            errors="replace",  # counters of seconds are bytes
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    async def ask(self, http: aiohttp.ClientSession, text: str = "hello", **more: Any) -> int:
        """Ask the model of the page; the status."""
        body = chat(text, **{"model": f"groq/{MODEL}", **more})
        response, _ = await post(http, self.gateway.base_url, body, **AUTH)
        await self.gateway.engine.settle()
        return response.status

    async def six_seconds(self) -> None:
        """Do what the jobs of a worker do within six seconds, at once."""
        engine = self.gateway.engine
        await engine.coordination.membership.beat()
        await engine.health._watch.look()
        await engine.health.status_watch.look()
        builder = engine._sharing._builder
        builder._due_s = 0.0
        await builder.campaign()
        await builder.look()
        await engine._sharing._follow()
        engine._admissions.refusals.entries.clear()  # believed for a second


@cache
def redis_cli() -> str:
    return subprocess.run(
        ["/bin/sh", "-c", "command -v redis-cli"], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
async def site(
    simulator: RunningSimulator,
    server: RedisServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Site]:
    server.command("FLUSHALL")
    failures = 1 if "gw1:m:" in request.node.name else 3  # more would need a second key
    async with Gateway(config(simulator, failures), server.url) as gateway:
        yield Site(gateway, server, tmp_path)


async def test_every_line_to_look_with_shows_something(
    site: Site, http: aiohttp.ClientSession
) -> None:
    talk = {"Idempotency-Key": "once", "X-Gw-Session-Id": "one", **AUTH}
    turns = [{"role": r, "content": "on"} for r in ("user", "assistant", "user")]
    await post(http, site.gateway.base_url, chat(messages=turns), **talk)
    for _ in range(2):
        await post(http, site.gateway.base_url, chat("again"), **AUTH, X_Gw_Cache="on")
        await site.gateway.engine.caches.settle()
    async with site.gateway.admin() as admin:
        await admin.put("/api/models/groq/m0", json={"weight": 2})
    for number in range(200):  # until one ends with 0 and is in the place that the page shows
        text = steer(fault=status(400), id=f"bad{number}", times=1)
        body = chat(text, model=f"groq/{MODEL}")
        response, _ = await post(http, site.gateway.base_url, body, **AUTH)
        site.id = response.headers["x-gw-request-id"]
        if site.id.endswith("0"):
            break
    await site.ask(http, steer(fault=status(503), **ONCE))
    await post(http, site.gateway.base_url, chat(), Authorization="Bearer sk-nobody")
    await site.six_seconds()

    lines = dict.fromkeys(line for entry in entries().values() for line in entry.look_lines)
    silent = [line for line in lines if not site.run(line)]

    lacking = [
        line
        for line in lines
        if " HMGET '" in line and "evicted" not in line  # there is none
        if "" in site.run(line).splitlines() or len(site.run(line).splitlines()) < fields_in(line)
    ]

    assert lacking == []
    assert len(lines) > 40
    assert [line for line in silent if not any(word in line for word in QUIET)] == []


def fields_in(line: str) -> int:
    """How many fields a line asks for."""
    return len(line.rpartition("'")[2].split())


async def fails_three_times(site: Site, http: aiohttp.ClientSession) -> None:
    for number in range(3):
        await site.ask(http, steer(fault=status(503), id=f"f{number}", times=1))


async def is_refused_as_a_key(site: Site, http: aiohttp.ClientSession) -> None:
    await site.ask(http, steer(fault=status(402), **ONCE))


async def is_rejected(site: Site, _http: aiohttp.ClientSession) -> None:
    board = site.gateway.engine.health.board
    await board.book_check("groq", "groq-a", "rejected", "auth", disable_after=1, took_ms=0)


async def has_no_such_model(site: Site, http: aiohttp.ClientSession) -> None:
    body = {"error": {"message": "Gone.", "type": "invalid_request_error"}}
    await site.ask(http, steer(fault=status(410, body=body), **ONCE))
    health = f"gw1:h:{TARGET}:{MODEL}"
    site.server.command("DEL", health)  # only what is known of the model is meant
    site.server.command("DEL", f"gw1:m:{{groq}}:{MODEL}")


async def is_benched(site: Site, http: aiohttp.ClientSession) -> None:
    await site.ask(http, steer(fault=status(503), **ONCE))


async def is_left_alone(site: Site, http: aiohttp.ClientSession) -> None:
    for number in range(3):
        text = steer(fault=status(503), id=f"p{number}", times=1)
        await site.ask(http, text, model=f"groq/m{number}")


async def is_garbled(site: Site, _http: aiohttp.ClientSession) -> None:
    site.server.command("HSET", f"gw1:w:{TARGET}:{MODEL}", "now", "12 x")


async def is_unreadable(site: Site, _http: aiohttp.ClientSession) -> None:
    site.server.command("SET", "gw1:c:{app-a}", "leaked")


class Trouble(NamedTuple):
    """What a line ends, and which record tells of it: its key, or its key and field."""

    plant: Callable[[Site, aiohttp.ClientSession], Awaitable[None]]
    record: tuple[str, ...]


FIELD: Final = f"groq.{MODEL}".replace("3.3", "3%2E3")
HEALTH: Final = f"gw1:h:{TARGET}:{MODEL}"
TROUBLES: Final = {
    f"redis-cli DEL '{HEALTH}'": Trouble(fails_three_times, (HEALTH,)),
    f"redis-cli DEL 'gw1:h:{TARGET}:_all'": Trouble(is_refused_as_a_key, (f"gw1:h:{TARGET}:_all",)),
    "redis-cli HDEL 'gw1:{status}:keys' groq.groq-a": Trouble(
        is_rejected, ("gw1:{status}:keys", "groq.groq-a")
    ),
    f"redis-cli HDEL 'gw1:{{status}}:models' {FIELD}": Trouble(
        has_no_such_model, ("gw1:{status}:models", FIELD)
    ),
    f"redis-cli DEL 'gw1:m:{{groq}}:{MODEL}'": Trouble(is_benched, (f"gw1:m:{{groq}}:{MODEL}",)),
    "redis-cli DEL 'gw1:pb:{groq}'": Trouble(is_left_alone, ("gw1:pb:{groq}",)),
    f"redis-cli DEL 'gw1:w:{TARGET}:{MODEL}'": Trouble(is_garbled, (f"gw1:w:{TARGET}:{MODEL}",)),
    "redis-cli DEL 'gw1:c:{app-a}'": Trouble(is_unreadable, ("gw1:c:{app-a}",)),
}


@pytest.mark.parametrize("line", TROUBLES)
async def test_a_line_ends_what_keeps_requests_from_being_served(
    line: str, site: Site, http: aiohttp.ClientSession
) -> None:
    trouble = TROUBLES[line]
    has = ("HEXISTS" if len(trouble.record) > 1 else "EXISTS", *trouble.record)
    await trouble.plant(site, http)
    await site.six_seconds()
    refused = await site.ask(http)
    before = site.server.command(*has)

    site.run(line)
    after = site.server.command(*has)
    await site.six_seconds()

    assert (before, after) == (b":1\r\n", b":0\r\n")
    assert refused in {429, 502, 503}
    assert await site.ask(http) == 200


async def test_who_fills_the_usage_of_a_day_is_seen(
    site: Site, http: aiohttp.ClientSession
) -> None:
    lines = entries()["GwUsageFull"].look_lines
    await site.ask(http)
    (day,) = (name for name in site.run("redis-cli --scan --pattern 'gw1:u:*'").splitlines())
    row = "1 1 1 0 0 0 0"
    site.server.command("HSET", day, *(w for n in range(1999) for w in (f"many m{n}", row)))

    await site.ask(http, model="groq/m0")  # which has no field yet
    full, most, together, saved = [site.run(line) for line in lines]

    assert int(full) >= 2000
    assert most.split()[:2] == ["1999", "many"]
    assert together.split()[0] == "1"
    assert saved == "0"


async def test_the_snapshot_that_was_deleted_is_made_anew(site: Site) -> None:
    line = "redis-cli DEL 'gw1:{snap}:cur'"
    await site.six_seconds()
    version = site.run("redis-cli HGET 'gw1:{snap}:cur' version")

    site.run(line)
    gone = site.run("redis-cli HGET 'gw1:{snap}:cur' version")
    await site.six_seconds()

    assert (version != "", gone) == (True, "")
    assert site.run("redis-cli HGET 'gw1:{snap}:cur' version") != ""
    assert line in done_by("GwSnapshotStale")


async def test_a_pin_that_was_forgotten_is_gone(site: Site, http: aiohttp.ClientSession) -> None:
    (line,) = done_by("GwKeyHot")
    talk = [{"role": r, "content": "on"} for r in ("user", "assistant", "user")]
    headers = {**AUTH, "X-Gw-Session-Id": "one"}
    await post(http, site.gateway.base_url, chat(messages=talk), **headers)
    await site.gateway.engine.settle()
    await site.gateway.engine.redis.call("PING")  # what was sent before is there
    pinned = site.server.command("KEYS", "gw1:pin:*")

    site.run(line)

    assert pinned != NONE

    assert site.server.command("KEYS", "gw1:pin:*") == NONE


async def test_an_idempotency_key_that_was_forgotten_is_free(
    site: Site, http: aiohttp.ClientSession
) -> None:
    (line,) = done_by("idempotency_key_conflict")
    headers = {**AUTH, "Idempotency-Key": "once"}
    first, _ = await post(http, site.gateway.base_url, chat("one"), **headers)
    await site.gateway.engine.settle()
    other, body = await post(http, site.gateway.base_url, chat("two"), **headers)

    site.run(line)
    again, _ = await post(http, site.gateway.base_url, chat("two"), **headers)

    assert (first.status, other.status, again.status) == (200, 409, 200)
    assert json.loads(body)["error"]["code"] == "idempotency_key_conflict"


@pytest.mark.parametrize(
    ("line", "look", "told"),
    [
        ("redis-cli REPLICAOF NO ONE", "redis-cli INFO replication", "role:master"),
        (
            "redis-cli CONFIG SET min-replicas-to-write 0",
            "redis-cli CONFIG GET min-replicas-to-write",
            "min-replicas-to-write\n0",
        ),
        (
            "redis-cli CONFIG SET maxmemory 0",
            "redis-cli CONFIG GET maxmemory",
            "maxmemory\n0",
        ),
    ],
)
async def test_a_server_that_takes_no_writes_takes_them_after_its_line(
    line: str, look: str, told: str, site: Site
) -> None:
    with RedisServer(needed_redis()) as other:
        here = Site(site.gateway, other, Path(other.folder))
        other.command("CONFIG", "SET", "min-replicas-to-write", "1")
        other.command("CONFIG", "SET", "maxmemory", "1")
        if "REPLICAOF" in line:
            other.command("CONFIG", "SET", "min-replicas-to-write", "0")
            other.command("CONFIG", "SET", "maxmemory", "0")
            other.command("REPLICAOF", "127.0.0.1", "1")
        elif "maxmemory" in line:
            other.command("CONFIG", "SET", "min-replicas-to-write", "0")
        else:
            other.command("CONFIG", "SET", "maxmemory", "0")
        with pytest.raises(AssertionError, match=r"READONLY|NOREPLICAS|OOM"):
            here.run("redis-cli SET probe 1")

        here.run(line)

        assert told in here.run(look).replace("\r", "")
        assert here.run("redis-cli SET probe 1") == "OK"


def done_by(name: str) -> list[str]:
    """What an entry has one type."""
    return entries()[name].do_lines


def test_every_line_that_changes_something_is_tried() -> None:
    lines = {line for entry in entries().values() for line in entry.do_lines}
    others = {
        "redis-cli DEL 'gw1:{snap}:cur'",
        *done_by("GwKeyHot"),
        *done_by("idempotency_key_conflict"),
        "redis-cli REPLICAOF NO ONE",
        "redis-cli CONFIG SET min-replicas-to-write 0",
        "redis-cli CONFIG SET maxmemory 0",
    }

    assert lines == {*TROUBLES, *others}
