"""`cache key` prints what the key of a request is made of; `stats` and `flush` what is stored."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cluster_gw.cli.main import run
from cluster_gw.store.cache_index import Admitted, Bounds, CacheIndex, Counted
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from tests.fakes.redis_server import RedisServer, needed_redis

CONFIG: dict[str, Any] = {
    "providers": {"p": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
    "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
    "models": [{"provider": "p", "model": "m"}],
    "auth": {"mode": "none"},
    "cache": {"enabled": True},
}
BODY = b'{"stream":true,"messages":[{"role":"user","content":"h\\u00e9"}],"temperature":0.50}'
FORM = (
    '{"messages":[{"content":"hé","role":"user"}],"model":"auto","surface":"chat",'
    '"temperature":0.5,"v":4}'
)


def key(*arguments: str, body: bytes = BODY) -> Result:
    runner = CliRunner()
    with runner.isolation(input=body) as streams:
        code = run(["cache", "key", "-", *arguments])
        out, err = streams[0].getvalue(), streams[1].getvalue()
    return Result(runner, out, err, out, None, code, None)


def test_the_key_of_a_request_is_shown_with_what_it_is_made_of() -> None:
    plain, as_json = key(), key("--json")
    form, digest = plain.stdout.splitlines()
    assert form == FORM
    assert len(digest) == 64
    assert msgspec.json.decode(as_json.stdout) == {
        "form": msgspec.json.decode(FORM),
        "digest": digest,
    }


def test_the_key_of_a_client_is_another() -> None:
    assert '"client":"app-a"' in key("--client", "app-a").stdout
    assert key("--client", "app-a").stdout != key("--client", "app-b").stdout


def test_what_is_no_request_is_told_in_one_line() -> None:
    for result, words in (
        (key(body=b"{"), "invalid_json"),
        (key("--surface", "caht"), "no surface 'caht'"),
        (key(body=b'{"messages":[{"role":"user","content":"a"}],"x":{"a":1,"a":2}}'), "ambiguous"),
    ):
        assert result.exit_code == 2
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


@pytest.fixture
def config(server: RedisServer, tmp_path: Path) -> str:
    """Where two answers are stored, in a Redis of their own."""
    server.command("FLUSHALL")
    asyncio.run(fill(server.url))
    path = tmp_path / "gw.json"
    where = {"url": server.url, "cache_url": server.url}
    path.write_text(json.dumps({**CONFIG, "redis": where}))
    return str(path)


async def fill(url: str) -> None:
    client = RedisClient(url, prefix="gw1")
    await client.start(5.0)
    index = CacheIndex(client, load_scripts(), Keys("gw1"))
    bounds = Bounds(max_entries=9, max_bytes=99_999, max_entry_bytes=9_999)
    for name in ("app-a", "app-b"):
        entry = Counted(
            member=f"c4:{{{name}}}", size_bytes=1000, ttl_ms=60_000, client=name, model="p/m"
        )
        assert await index.admit(entry, bounds) is Admitted.OK
    await client.close()


def call(*arguments: str) -> tuple[int, str, str]:
    with CliRunner().isolation(env={"GW_CONFIG": None}) as streams:
        code = run(["cache", *arguments])
        return code, streams[0].getvalue().decode(), streams[1].getvalue().decode()


def test_what_is_stored_is_told_and_removed(config: str) -> None:
    before = call("stats", "--config", config, "--json")
    one = call("flush", "--config", config, "--client", "app-a", "--json")
    after = call("stats", "--config", config)
    rest = call("flush", "--config", config)

    told = json.loads(before[1])
    assert (told["enabled"], told["entries"], told["config_version"]) == (True, 2, 1)
    assert json.loads(one[1]) == {"removed": 1, "client": "app-a", "config_version": 1}
    assert "entries                  1\n" in after[1]
    assert "removed         1\n" in rest[1]
    assert [done[0] for done in (before, one, after, rest)] == [0, 0, 0, 0]


def test_an_empty_name_is_not_all(config: str) -> None:
    code, _, error = call("flush", "--config", config, "--client", "")

    assert code == 2
    assert "is empty" in error
    assert json.loads(call("stats", "--config", config, "--json")[1])["entries"] == 2


def test_a_redis_that_is_away_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "gw.json"
    path.write_text(json.dumps({**CONFIG, "redis": {"url": "redis://127.0.0.1:9"}}))

    code, _, error = call("stats", "--config", str(path))

    assert code == 3
    assert error.startswith("error: redis: ")
    assert len(error.splitlines()) == 1
