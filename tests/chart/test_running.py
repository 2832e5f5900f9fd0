"""What is rendered runs: the gateway, its probes, the chart's own Redis, and its smoke test."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster_gw.supervisor.admin_door import SHORTEST_TOKEN
from tests.chart.rendering import FEWEST, Chart, Objects, case, with_value
from tests.fakes.group import Running, free_port
from tests.fakes.redis_server import RedisServer, needed_redis

SECRETS = {
    "redis-password": "pass.Word-1~",
    "admin-token": "t" * SHORTEST_TOKEN,
    "GROQ_KEY_A": "made-up",
}


class Deployed:
    """The container of the gateway as a process, in a folder that stands for its mounts."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self.objects, self.folder = objects, folder
        self.container = objects.gateway
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        for mount in self.container["volumeMounts"]:
            self.seen(mount["mountPath"]).mkdir(parents=True)
        text = objects.one("ConfigMap")["data"]["cluster-gw.yaml"]
        config = self.seen("/etc/cluster-gw/config/cluster-gw.yaml")
        config.write_text(text.replace("/etc/", f"{folder}/etc/"))
        self.seen("/etc/cluster-gw/secrets/GROQ_KEY_A").write_text("made-up\n")
        found = objects.environment(SECRETS)
        self.environment = {
            name: value.replace("/etc/", f"{folder}/etc/").replace("/var/", f"{folder}/var/")
            for name, value in found.items()
        }

    def seen(self, path: str) -> Path:
        """A path of the container."""
        return self.folder / path.lstrip("/")

    def url(self, port: str, path: str) -> str:
        """An address of the pod."""
        return f"http://127.0.0.1:{self.ports[port]}{path}"


def status(url: str, token: str = "") -> int:
    """What a URL answers."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def deployed(chart: Chart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The gateway with the fewest values, and a Redis with a password."""
    port, password = free_port(), SECRETS["redis-password"]
    values = {
        **case(FEWEST),
        "bindAddress": "127.0.0.1",
        "containerPorts": {"http": free_port(), "operations": free_port()},
        "redis": {"host": "127.0.0.1", "port": port, "existingSecret": "redis-login"},
    }
    folder = tmp_path_factory.mktemp("pod")
    with RedisServer(needed_redis(), port=port) as server:
        server.command("CONFIG", "SET", "requirepass", password)
        pod = Deployed(chart.render(values), folder)
        running = Running(*pod.container["args"], environ=pod.environment)
        try:
            running.wait_for(pod.url("operations", "/readyz"))
            yield pod
            assert running.stop() == 0
        finally:
            running.close()


def test_the_rendered_probes_are_answered_on_the_rendered_port(deployed: Deployed) -> None:
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    looks = [deployed.container[probe]["httpGet"] for probe in probes]

    assert [status(deployed.url(look["port"], look["path"])) for look in looks] == [200] * 3


def test_apis_and_operations_are_where_the_services_lead(deployed: Deployed) -> None:
    assert status(deployed.url("http", "/v1/models")) == 401
    assert status(deployed.url("operations", "/metrics")) == 200
    assert status(deployed.url("operations", "/api/keys")) == 401
    assert status(deployed.url("operations", "/api/keys"), SECRETS["admin-token"]) == 200


def test_the_pod_of_the_smoke_test_finds_all_well(deployed: Deployed) -> None:
    container = deployed.objects.one("Pod")["spec"]["containers"][0]
    environment = {
        item["name"]: deployed.url("http" if item["name"] == "APIS" else "operations", "")
        for item in container["env"]
    }

    done = subprocess.run(
        [sys.executable, *container["command"][1:]],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 3


def start_of(objects: Objects, folder: Path, port: int) -> list[str]:
    """The start of the chart's own Redis, its paths and its port replaced by others."""
    data = objects.one("ConfigMap", "-redis")["data"]
    places = {
        "> /tmp/redis.conf": f"> {folder}/made.conf",
        "server /tmp/redis.conf": f"server {folder}/made.conf",
        "/etc/redis/": f"{folder}/",
        "dir /data": f"dir {folder}",
        "port 6379": f"port {port}",
    }
    for name, text in data.items():
        moved = functools.reduce(lambda told, place: told.replace(*place), places.items(), text)
        (folder / name).write_text(moved)
    container = objects.one("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    return [word.replace("/etc/redis/", f"{folder}/") for word in container["command"]]


def redis_cli(port: int, password: str, *words: str) -> str:
    """What the chart's own Redis answers."""
    done = subprocess.run(
        ["redis-cli", "-p", str(port), *words],
        env={**os.environ, "REDISCLI_AUTH": password},
        capture_output=True,
        text=True,
        timeout=5,
        check=False,
    )
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is missing")
def test_the_charts_own_redis_keeps_what_it_has_and_evicts_nothing(
    chart: Chart, tmp_path: Path
) -> None:
    values = with_value(case(FEWEST), "redis", {"bundled": {"enabled": True}})
    port, password = free_port(), SECRETS["redis-password"]
    words = start_of(chart.render(values), tmp_path, port)
    running = subprocess.Popen(
        words, env={**os.environ, "REDIS_PASSWORD": password}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until_it_answers(port, password)
        settings = {
            name: redis_cli(port, password, "CONFIG", "GET", name).splitlines()[1]
            for name in ("appendonly", "maxmemory-policy", "maxmemory", "hash-max-listpack-value")
        }
        assert settings == {
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            "maxmemory": str(256 * 1024 * 1024),
            "hash-max-listpack-value": "128",
        }
        assert "NOAUTH" in redis_cli(port, "", "PING")
        assert password not in Path(f"/proc/{running.pid}/cmdline").read_text()
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 0
    assert list((tmp_path / "appendonlydir").iterdir()) != []


def wait_until_it_answers(port: int, password: str) -> None:
    """Wait for the first answer."""
    for _ in range(200):
        if redis_cli(port, password, "PING") == "PONG":
            return
    raise AssertionError("the Redis of the chart does not answer")


@pytest.mark.parametrize("password", ["", "with space", 'quote"', "line\nbreak"])
def test_a_password_that_would_change_its_configuration_ends_its_start(
    chart: Chart, tmp_path: Path, password: str
) -> None:
    values = with_value(case(FEWEST), "redis", {"bundled": {"enabled": True}})
    words = start_of(chart.render(values), tmp_path, free_port())

    done = subprocess.run(
        words,
        env={**os.environ, "REDIS_PASSWORD": password},
        capture_output=True,
        text=True,
        timeout=5,
        check=False,
    )

    assert done.returncode == 1
    assert "letters, digits" in done.stderr
    assert not password or password not in done.stderr


def test_names_of_a_release_are_short_enough(chart: Chart) -> None:
    values: Mapping[str, Any] = {
        **case(FEWEST),
        "fullnameOverride": "a" * 63,
        "redis": {"bundled": {"enabled": True}},
    }

    names = [item["metadata"]["name"] for item in chart.render(values).all]

    assert max(map(len, names)) <= 63
