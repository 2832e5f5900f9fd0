"""A running fleet, somebody who plants incidents in it, and an operator who has the runbook."""

import contextlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until
from tests.monitoring.runbook import entries

WORKERS: Final = 3
MODEL: Final = "llama-3.3-70b-versatile"
ROUTE: Final = f"groq/{MODEL}"
CLIENT_KEY: Final = "sk-app"
SOON_S: Final = 8.0  # the runbook says six seconds; the machine has other work
PROVIDER: Final = {"any_key": True, "any_model": True}


def config(base_url: str) -> dict[str, Any]:
    """The names of the runbook; nothing mends itself while somebody looks at it."""
    return {
        "auth": {"mode": "keys"},
        "providers": {"groq": {"dialect": "openai", "base_url": base_url}},
        "keys": [
            {"id": "groq-a", "provider": "groq", "secret": "of-groq-a"},
            {"id": "groq-b", "provider": "groq", "secret": "of-groq-b", "models": ["small"]},
        ],
        "models": [
            {"provider": "groq", "model": MODEL, "limits": {"rpm": 1000}},
            {"provider": "groq", "model": "small", "limits": {"rpm": 1000}},
        ],
        "combos": [{"id": "auto", "members": [ROUTE]}],
        "routing": {"breaker": {"cooldown_ms": 600_000}, "probe": {"enabled": False}},
        "clients": [
            {
                "id": "app-a",
                "key_sha256": sha256(CLIENT_KEY.encode()).hexdigest(),
                "limits": {"concurrency": 20},
            }
        ],
    }


class Site:
    """Some workers, their Redis, one provider; what an operator has at hand beside them.

    Attributes:
        group: the fleet.
        redis: its Redis, where that is one server.
        provider: where its calls go.
        bin: a folder before all others on the operator's PATH.
    """

    redis: RedisServer

    def __init__(self, group: GatewayGroup, provider: SimulatedProvider, folder: Path) -> None:
        self.group, self.provider, self.bin = group, provider, folder
        self.request_id = ""

    def command(self, name: str, text: str) -> None:
        """Put a command on the operator's PATH."""
        script = self.bin / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)

    def reach(self, where: str) -> None:
        """Have redis-cli mean the server that these options name."""
        found = shutil.which("redis-cli")
        self.command("redis-cli", f'exec {found} -e {where} "$@"')

    def run(self, lines: list[str]) -> str:
        """Type lines; what they printed, all together."""
        printed = []
        for line in lines:
            done = subprocess.run(
                ["/bin/sh", "-ec", line],
                env={"PATH": f"{self.bin}:{os.environ['PATH']}", "ID": self.request_id},
                capture_output=True,
                text=True,
                errors="replace",  # counters of seconds are bytes
                timeout=20,
                check=False,
            )
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            printed.append(done.stdout)
        return "".join(printed)

    def look(self, name: str) -> str:
        """Type what an entry says under Look."""
        return self.run(entries()[name].look_lines)

    def do(self, name: str) -> None:
        """Type what an entry says under Do."""
        lines = entries()[name].do_lines
        assert lines, f"{name} has no lines to do anything with"
        self.run(lines)

    def ask(self, text: str = "hello", model: str = ROUTE, timeout_s: float = 20) -> int:
        """Send a chat; its status. What was asked last is in `request_id`."""
        body = {"model": model, "messages": [{"role": "user", "content": text}]}
        request = urllib.request.Request(  # noqa: S310
            f"{self.group.base_url}/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={
                "content-type": "application/json",
                "authorization": f"Bearer {CLIENT_KEY}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
                status, headers = answer.status, answer.headers
        except urllib.error.HTTPError as error:
            status, headers = error.code, error.headers
        self.request_id = headers["x-gw-request-id"]
        return int(status)

    def told(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels, as the fleet tells it now."""
        with urllib.request.urlopen(f"{self.group.admin_url}/metrics", timeout=10) as page:  # noqa: S310
            text = page.read().decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def wait(self, name: str, above: float, **labels: str) -> None:
        """Wait until a metric is above a number, as the alert on it would."""
        until(lambda: self.told(name, **labels) > above, SOON_S)

    def is_served(self) -> bool:
        """Whether each of as many requests as may meet every worker is answered."""
        return all(self.ask() == 200 for _ in range(2 * WORKERS))

    def wait_until_served(self) -> None:
        """Wait as long as the runbook says at most."""
        until(self.is_served, SOON_S)

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Call the admin API; the body of the answer."""
        answer = call(self.group.admin_url, method, path, body)
        assert answer.status < 300, answer.body
        return answer.body

    @contextlib.contextmanager
    def faults(self, *rules: Mapping[str, Any]) -> Iterator[None]:
        """Have the provider fail."""
        url = f"http://127.0.0.1:{self.provider.port}/sim/faults"
        headers = {"content-type": "application/json"}
        data = json.dumps(rules).encode()
        urllib.request.urlopen(
            urllib.request.Request(url, data=data, headers=headers),
            timeout=5,
        ).close()
        try:
            yield
        finally:
            urllib.request.urlopen(
                urllib.request.Request(url, method="DELETE"),
                timeout=5,
            ).close()


@contextlib.contextmanager
def site(folder: Path, workers: int = WORKERS, **environ: str) -> Iterator[Site]:
    """Start all of it, with one Redis."""
    with (
        RedisServer(needed_redis()) as redis,
        before(redis.url, workers, environ) as (group, provider),
    ):
        running = Site(group, provider, folder)
        running.reach(f"-s {redis.path}")
        running.redis = redis
        yield running


@contextlib.contextmanager
def before(
    redis_url: str, workers: int, environ: Mapping[str, str]
) -> Iterator[tuple[GatewayGroup, SimulatedProvider]]:
    """Start gateways before a Redis that is there."""
    with (
        SimulatedProvider(PROVIDER) as provider,
        GatewayGroup(
            config(provider.base_url.replace("127.0.0.1", "127.1")),
            workers=workers,
            redis_url=redis_url,
            environ={**ENVIRON, **environ},
        ) as group,
    ):
        yield group, provider
