"""What operators are given is accepted by the programs it is for."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.architecture.source_tree import ROOT
from tests.deploy.tools import WANTED, replaced, run
from tests.fakes.redis_server import RedisServer, needed_redis

COMPOSE = YAML(typ="safe", pure=True).load((ROOT / "docker-compose.yml").read_text("utf-8"))


def test_compose_accepts_its_file() -> None:
    assert run("docker-compose", "config", "--quiet") == ""


def test_files_that_compose_hands_out_exist() -> None:
    files = [one["file"] for one in COMPOSE["configs"].values() if "file" in one]

    assert len(files) == 6
    assert [name for name in files if not (ROOT / name).is_file()] == []


REDIS = {
    "redis": {
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "min-replicas-to-write": "1",
        "min-replicas-max-lag": "2",
    },
    "redis-replica": {
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "replicaof": "redis 6379",
    },
}


@pytest.mark.parametrize("name", REDIS)
def test_redis_of_the_compose_file_starts_as_it_is_told(name: str) -> None:
    words = COMPOSE["services"][name]["command"][1:]

    with RedisServer(needed_redis(), *words) as server:
        told = {
            setting: server.command("CONFIG", "GET", setting).split(b"\r\n")[4].decode()
            for setting in REDIS[name]
        }

    assert told == REDIS[name]


def test_nginx_of_the_compose_file_is_that_of_the_documents_with_one_name_for_all() -> None:
    shown = (ROOT / "docs/balancers/nginx.conf").read_text("utf-8").splitlines()
    servers = [line for line in shown if "192.0.2." in line]
    wanted = [
        servers[0].replace("192.0.2.11", "gateway") if line == servers[0] else line
        for line in shown
        if line not in servers[1:]
    ]

    assert (ROOT / "deploy/nginx.conf").read_text("utf-8").splitlines() == wanted
    assert len(servers) == COMPOSE["services"]["gateway"]["deploy"]["replicas"]


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    assert run("hadolint", "Dockerfile") == ""


def test_yamllint_finds_nothing() -> None:
    files = ["docker-compose.yml", "deploy", "helm/cluster-gw/files"]

    assert run("yamllint", "--strict", *files) == ""


def test_prometheus_accepts_its_file(tmp_path: Path) -> None:
    found = shutil.which("promtool")
    if found is None:
        assert not os.environ.get(WANTED)
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    rules = str(ROOT / "helm/cluster-gw/files/alerts.yaml")
    written = replaced("prometheus.yml", tmp_path, **{"/etc/prometheus/alerts.yaml": rules})

    done = subprocess.run(
        [found, "check", "config", str(written)], capture_output=True, timeout=20, check=False
    )

    assert done.returncode == 0, done.stdout


def test_the_bill_of_materials_names_every_package_with_its_version(tmp_path: Path) -> None:
    (line,) = re.findall(r"cyclonedx-py (.*)", (ROOT / "Dockerfile").read_text("utf-8"))
    written = tmp_path / "sbom.json"
    places = {
        "/opt/cluster-gw/bin/python": sys.executable,
        "/opt/cluster-gw/sbom.cdx.json": str(written),
    }

    run("cyclonedx-py", *(places.get(word, word) for word in line.split()))

    bill: dict[str, Any] = json.loads(written.read_text("utf-8"))
    named = {plain(one["name"]): one["version"] for one in bill["components"]}
    lock = (ROOT / "requirements/image.lock").read_text("utf-8")
    locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", lock))
    there = {plain(one.name): one.version for one in metadata.distributions()}
    wanted = {name: there[name] for name in locked & there.keys()}
    assert bill["bomFormat"] == "CycloneDX"
    assert len(wanted) > 10
    assert wanted.items() <= named.items()


def plain(name: str) -> str:
    """A package's name as lock files write it."""
    return re.sub(r"[._-]+", "-", name.lower())
