"""What is measured and what helps to measure: how each program is built, started and ended."""

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.machine import TARGET_CORE, TOOL_CORE, pinned

HERE = Path(__file__).parent
ROOT = HERE.parent
CLIENT_KEY = "bench-client-key"
LIMITED_KEY = "bench-limited-client-key"
REDIS_PORT = 19230
MOCK_PORTS = {"19100": "0:0", "19150": "50:0", "19199": "1000:0", "19101": "0:5000"}
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0

NGINX_CONF = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log crit; {user}
events {{ worker_connections 8192; }}
http {{
  access_log off; client_max_body_size 50m; client_body_buffer_size 512k;
  keepalive_requests 100000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {upstreams}
  server {{
    listen 127.0.0.1:19200 backlog=4096; {locations}
  }}
}}
"""
NGINX_UPSTREAM = (
    "upstream u{port} {{ server 127.0.0.1:{port}; keepalive 2048; keepalive_requests 100000000; }}"
)
NGINX_LOCATION = (
    "location /{port}/ {{ proxy_pass http://u{port}/; proxy_http_version 1.1;"
    ' proxy_set_header Connection ""; proxy_buffering off; }}'
)


class Target(NamedTuple):
    """A program under test.

    Attributes:
        name: row label.
        port: where it listens.
        command: None when the target is the mock itself and nothing is started.
        path: request path with `{upstream}` for the mock's port.
        headers: sent with every request.
    """

    name: str
    port: int
    command: tuple[str, ...] | None
    path: str
    headers: tuple[str, ...] = ()


class Running(NamedTuple):
    pid: int
    start_s: float


def nginx(folder: Path) -> Target:
    conf = folder / "nginx.conf"
    conf.write_text(
        NGINX_CONF.format(
            folder=folder,
            user="user root;" if os.geteuid() == 0 else "",
            upstreams="\n".join(NGINX_UPSTREAM.format(port=port) for port in MOCK_PORTS),
            locations="\n".join(NGINX_LOCATION.format(port=port) for port in MOCK_PORTS),
        )
    )
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    command = (binary, "-p", str(folder), "-c", str(conf), "-e", str(folder / "error.log"))
    return Target("nginx", 19200, command, "/{upstream}/v1/chat/completions")


def bare() -> Target:
    command = (sys.executable, "-m", "bench.bare", "19210")
    return Target("bare", 19210, command, "/{upstream}/v1/chat/completions")


def gateway() -> Target:
    config = str(HERE / "gateway.yaml")
    command = (sys.executable, "-m", "cluster_gw", "serve", "--config", config, "--workers", "1")
    headers = (f"authorization: Bearer {CLIENT_KEY}",)
    return Target("gateway", 19220, command, "/v1/chat/completions", headers)


def direct() -> Target:
    """The mock itself: what "added" latency is measured against."""
    return Target("direct", 0, None, "/v1/chat/completions")


@contextlib.contextmanager
def running(
    command: Sequence[str], core: int, log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program bound to a core in its own process group, and ends all of it."""
    with log.open("ab") as sink:
        process = subprocess.Popen(
            pinned(list(command), core),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the program, SIGKILL to its group when that does not end it."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_TIMEOUT_S)


def first_answer_s(
    target: Target,
    process: subprocess.Popen[bytes],
    body: bytes,
    timeout_s: float = START_TIMEOUT_S,
) -> float | None:
    """Seconds until the target answered a request with 200; None when it never did."""
    began = time.monotonic()
    headers = {"content-type": "application/json"}
    headers |= dict(line.split(": ", 1) for line in target.headers)
    while time.monotonic() - began < timeout_s and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=3)
        try:
            connection.request("POST", target.path.format(upstream="19100"), body, headers)
            if connection.getresponse().status == http.HTTPStatus.OK:
                return time.monotonic() - began
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.01)
    return None


def mock_command() -> list[str]:
    """The C mock, or its slow Python twin when it cannot be built."""
    specs = [f"{port}:{timing}" for port, timing in MOCK_PORTS.items()]
    binary = built("mock", ())
    if binary is not None:
        return [str(binary), *specs]
    print("no C compiler: the slow Python mock is used and absolute figures mean little")
    return [sys.executable, "-m", "bench.mock.mock", *specs]


def built(name: str, libraries: tuple[str, ...]) -> Path | None:
    """Compiles bench/<name>/<name>.c when it is newer than its program; None without a compiler."""
    source = HERE / name / f"{name}.c"
    binary = source.with_suffix("")
    if binary.exists() and binary.stat().st_mtime >= source.stat().st_mtime:
        return binary
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    command = [compiler, "-O2", "-o", str(binary), str(source), *libraries]
    subprocess.run(command, check=True, timeout=60)
    return binary


@contextlib.contextmanager
def mock_and_redis(folder: Path) -> Iterator[int | None]:
    """Mock and Redis on the tools' core; gives the pid of Redis, None when it is not installed."""
    with contextlib.ExitStack() as stack:
        log = folder / "tools.log"
        stack.enter_context(running(mock_command(), TOOL_CORE, log))
        server = shutil.which("redis-server") or shutil.which("valkey-server")
        pid = None
        if server is not None:
            options = ["--port", str(REDIS_PORT), "--bind", "127.0.0.1", "--save", ""]
            command = [server, *options, "--appendonly", "no", "--dir", str(folder)]
            pid = stack.enter_context(running(command, TOOL_CORE, log)).pid
        time.sleep(0.3)
        yield pid


def start(
    target: Target, folder: Path, more: Mapping[str, str] | None = None
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """Starts a target on its core, with `more` in its environment."""
    environ = {
        "GW_REDIS__URL": f"redis://127.0.0.1:{REDIS_PORT}/0",
        "BENCH_UPSTREAM_KEY": "bench-upstream-key",
        **(more or {}),
    }
    return running(target.command or (), TARGET_CORE, folder / f"{target.name}.log", environ)
