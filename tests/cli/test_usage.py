"""`usage` prints what the admin API tells: a table, JSON, or CSV."""

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_gw.app.engine import wall_ms
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.price import Price
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import Consumed
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId, LeaseId
from tests.cli.running import Told, run_command
from tests.fakes.redis_server import RedisServer, needed_redis

CONFIG: dict[str, Any] = {
    "providers": {"p": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
    "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
    "models": [{"provider": "p", "model": "m"}],
    "auth": {"mode": "none"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        asyncio.run(fill(running.url))
        yield running


@pytest.fixture
def config(server: RedisServer, tmp_path: Path) -> str:
    path = tmp_path / "gw.json"
    path.write_text(json.dumps({**CONFIG, "redis": {"url": server.url}}))
    return str(path)


async def fill(url: str) -> None:
    """One request without a price, one with."""
    client = RedisClient(url, prefix="gw1")
    await client.start(5.0)
    admissions = Admissions(
        client,
        load_scripts(),
        Keys("gw1"),
        worker_id="w1",
        clock_ms=wall_ms,
        monotonic_s=lambda: 0.0,
    )
    for model, price in (("m", None), ("[red]n", Price(input=1.0, output=2.0))):
        target = TargetLimits(
            provider="p",
            account="p1",
            key=KeyId("p1"),
            model=model,
            day_reset="rolling",
            model_limits=Limits(),
            key_limits=Limits(),
            price=price,
        )
        demand = Demand(input_tokens=1, output_tokens=1)
        lease = await admissions.reserve(target, LeaseId(f"{model}.1"), demand, ttl_ms=1000)
        assert isinstance(lease, Lease)
        admissions.settle(
            lease,
            Settlement(
                counts_request=True, tokens=100, outcome="success", consumed=Consumed("app", 40)
            ),
        )
    assert await admissions.drain(5.0) == 0
    await admissions.close()
    await client.close()


def usage(config: str, *arguments: str) -> Told:
    return run_command("usage", "--config", config, *arguments)


def test_a_table_has_a_row_for_each_group_and_the_sum(config: str) -> None:
    told = usage(config, "--by", "model")

    assert told.exit_code == 0, told.stderr
    lines = [line.split() for line in told.stdout.splitlines()]
    (known,), (unknown,) = (
        [line for line in lines if name in line] for name in ("p/[red]n", "p/m")
    )
    (whole,) = [line for line in lines if "all" in line]
    assert "0.00014" in known
    assert "?" in unknown
    assert "200" not in whole
    assert "120" in whole
    assert "1 requests have no price" in told.stdout


def test_json_has_the_fields_of_the_api(config: str) -> None:
    told = json.loads(usage(config, "--by", "client,key", "--json").stdout)

    assert (told["group_by"], told["total_items"]) == (["client", "key"], 1)
    (item,) = told["items"]
    assert (item["client"], item["key"], item["requests"]) == ("app", "p1", 2)
    assert (item["cost_usd"], item["unpriced_requests"]) == (0.00014, 1)
    assert (told["config_version"], told["next_offset"]) == (1, None)


def test_csv_is_read_by_who_reads_csv(config: str) -> None:
    told = usage(config, "--by", "model", "--csv", "--model", "p/m")

    (row,) = csv.DictReader(io.StringIO(told.stdout, newline=""))
    assert (row["model"], row["requests"], row["cost_usd"]) == ("p/m", "1", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--by", "week"), "'week' is none of client, model, key, day"),
        (("--from", "yesterday"), "such as 2026-11-30"),
        (("--csv", "--json"), "exclude each other"),
    ],
)
def test_a_wrong_question_is_told_in_one_line(
    config: str, arguments: tuple[str, ...], words: str
) -> None:
    told = usage(config, *arguments)

    assert told.exit_code == 2
    assert words in told.stderr
