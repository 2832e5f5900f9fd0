"""A worker never works on a Redis in which a newer one has written what it would misread."""

import json
import time
from pathlib import Path

import pytest

from tests.cluster.pools import one_model
from tests.fakes.group import Running, free_port
from tests.fakes.redis_server import RedisServer, needed_redis

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


def test_a_worker_refuses_a_newer_schema_and_serves_nothing(tmp_path: Path) -> None:
    binary = needed_redis()
    port, admin_port = free_port(), free_port()
    config = tmp_path / "gw.json"
    with RedisServer(binary) as server:
        server.command("HSET", "gw1:{meta}", "schema", "99", "min_reader", "99")
        document = {
            **one_model("http://127.0.0.1:1/v1"),
            "auth": {"mode": "none"},
            "server": {"port": port, "admin_port": admin_port, "workers": 1},
            "redis": {"url": server.url},
        }
        config.write_text(json.dumps(document))
        serving = Running("serve", "--config", str(config))
        try:
            until = time.monotonic() + 20
            while "child.exited" not in serving.log():
                assert time.monotonic() < until, serving.log()
                time.sleep(0.05)
            told = [line for line in serving.log().splitlines() if "schema.refused" in line]
            assert "redis holds schema 99" in told[0]
            assert "Traceback" not in serving.log()
            assert serving.stop() == 0
        finally:
            serving.close()
