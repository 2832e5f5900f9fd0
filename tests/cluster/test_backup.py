"""What the page on Redis says of backups, done to one whose folder is lost beneath a group."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.cluster.pages import lines_of
from tests.cluster.pools import chat, one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider, free_port, get_json
from tests.fakes.redis_server import DURABLE, RedisServer, needed_redis
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

BACKUP, *RESTORE = (line for line in lines_of("docs/redis.md") if "backup.rdb" in line)
FIRST: Final = 5  # requests before the backup
LATER: Final = 3  # requests that the backup does not know


class Site(msgspec.Struct, frozen=True):
    """A group of two workers, its Redis, and where lines are typed."""

    group: GatewayGroup
    redis: RedisServer
    environ: dict[str, str]
    folder: Path

    def run(self, line: str) -> None:
        """Run a line of the page."""
        subprocess.run(
            ["/bin/sh", "-ec", line],
            env={**os.environ, **self.environ},
            cwd=self.folder,
            check=True,
            capture_output=True,
            timeout=20,
        )

    def api(self, method: str, path: str, body: Any = None) -> Any:
        answer = call(self.group.admin_url, method, path, body)
        assert answer.status < 300, answer.body
        return answer.body

    def counted(self) -> int:
        """Requests of the usage report."""
        total: int = self.api("GET", "/api/usage?group_by=client")["total"]["requests"]
        return total


@pytest.fixture
def site(provider: SimulatedProvider, tmp_path: Path) -> Iterator[Site]:
    port = free_port()
    with RedisServer(needed_redis(), *DURABLE, port=port) as redis:
        url = f"redis://127.0.0.1:{port}/0"
        config = {**one_model(provider.base_url, rpd=100), "auth": {"mode": "keys"}}
        with GatewayGroup(config, workers=2, redis_url=url, environ=ENVIRON) as group:
            environ = {"GW_REDIS": url, "REDIS_DIR": str(redis.folder)}
            yield Site(group=group, redis=redis, environ=environ, folder=tmp_path)


async def ask(site: Site, key: str, count: int) -> list[int]:
    """Ask that often; the statuses."""
    statuses = []
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session:
        for _ in range(count):
            async with session.post(
                f"{site.group.base_url}/v1/chat/completions", json=chat()
            ) as response:
                statuses.append(response.status)
    return statuses


async def test_a_backup_brings_back_clients_changes_and_usage_while_all_is_served(
    site: Site,
) -> None:
    key = site.api("POST", "/api/clients", {"id": "app-b"})["key"]
    site.api("PUT", "/api/models/a/sim-small", {"weight": 0.5})
    assert set(await ask(site, key, FIRST)) == {200}
    until(lambda: site.counted() == FIRST)
    site.run(BACKUP)
    assert set(await ask(site, key, LATER)) == {200}

    site.redis.kill()
    shutil.rmtree(site.redis.folder / "appendonlydir")
    while_away = await ask(site, key, 10)
    for line in RESTORE:
        site.run(line)
    site.redis.start_as("--appendonly", "no")
    site.run(next(line for line in lines_of("docs/redis.md") if "appendonly yes" in line))

    assert set(while_away) == {200}
    until(lambda: get_json(f"{site.group.admin_url}/readyz")["redis"] == "ok")
    until(lambda: site.counted() >= FIRST + len(while_away))
    assert set(await ask(site, key, 1)) == {200}
    until(lambda: site.counted() >= FIRST + len(while_away) + 1)
    assert site.api("GET", "/api/models/a/sim-small")["weight"] == 0.5
    assert site.counted() <= FIRST + LATER + len(while_away) + 1
    assert (site.redis.folder / "appendonlydir").exists()
