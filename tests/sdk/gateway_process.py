"""The gateway as an operator starts it: `python -m cluster_gw serve`, with two workers."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, Self

import httpx
import msgspec

ROOT: Final = Path(__file__).parents[2]
WORKERS: Final = 2
READY_WITHIN_S: Final = 15.0
STOP_WITHIN_S: Final = 10.0
POLL_S: Final = 0.05


class GatewayProcess:
    """A running gateway; `with` starts and ends it.

    Args:
        config: the configuration, without addresses and Redis.
        redis_url: a running Redis.
        folder: where configuration and log go.
    """

    def __init__(self, config: dict[str, Any], redis_url: str, folder: Path) -> None:
        port, admin_port = free_ports(2)
        config = {
            **config,
            "redis": {"url": redis_url},
            "server": {
                **config.get("server", {}),
                "port": port,
                "admin_port": admin_port,
                "workers": WORKERS,
                "drain_s": 1,
            },
        }
        self.base_url = f"http://127.0.0.1:{port}"
        self.operations_url = f"http://127.0.0.1:{admin_port}"
        self._config_path = folder / "gateway.json"
        self._config_path.write_bytes(msgspec.json.encode(config))
        self._log_path = folder / "gateway.log"

    def __enter__(self) -> Self:
        words = ("-m", "cluster_gw", "serve", "--config", str(self._config_path))
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, stdout=log, stderr=log
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop()

    def _wait_until_ready(self) -> None:
        until_s = time.monotonic() + READY_WITHIN_S
        while not self._is_ready():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > until_s:
                raise RuntimeError(f"the gateway is not ready:\n{self._log_path.read_text()}")
            time.sleep(POLL_S)

    def _is_ready(self) -> bool:
        try:
            answer = httpx.get(f"{self.operations_url}/readyz", timeout=1.0, trust_env=False)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def _stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now; held together so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports
