"""CPU of one buffered request inside one process: our own work, without server and client sockets.

The ASGI application is called directly; Redis and the upstream are real and on loopback, the
upstream being a few lines of asyncio in the same process (about 60 us of each figure). Prints the
best of several rounds, which is what is left when the machine is quiet, or a profile:

    python -m bench.stages.one_request [--profile]
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from cluster_gw.app import Engine, Servers, build_serving
from cluster_gw.app.worker import tune_gc
from cluster_gw.server.routes import FrontDoor, build_app
from cluster_gw.server.serving import Current
from cluster_gw.settings import load_bytes
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from tests.fakes.redis_server import RedisServer, redis_binary

REQUESTS = 2000
AT_ONCE = 32
ROUNDS = 8
ANSWER = msgspec.json.encode(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "x" * 600},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250},
    }
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
BODY = msgspec.json.encode(
    {
        "model": "auto",
        "messages": [
            {"role": "system", "content": "x" * 300},
            {"role": "user", "content": "y" * 600},
        ],
        "temperature": 0.7,
    }
)
LIMITS = {"rpm": 10**8, "rpd": 10**8, "tpm": 10**9, "tpd": 10**9}


async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play an upstream that answers every POST of a connection."""
    page = HEAD % len(ANSWER) + ANSWER
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            writer.write(page)
    except asyncio.IncompleteReadError:
        writer.close()


async def one(app: FrontDoor) -> None:
    """Make one request of the application."""
    left = asyncio.get_running_loop().create_future()
    messages = iter([{"type": "http.request", "body": BODY, "more_body": False}])
    statuses: list[int] = []

    async def receive() -> MutableMapping[str, Any]:
        return next(messages, None) or await left

    async def send(message: MutableMapping[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])

    path = "/v1/chat/completions"
    headers = [(b"authorization", b"Bearer bench"), (b"content-length", b"%d" % len(BODY))]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    await app(scope, receive, send)
    if statuses != [200]:
        raise RuntimeError(f"the gateway answered {statuses}")


async def many(app: FrontDoor, count: int) -> None:
    """Make requests, some at a time."""
    numbers = iter(range(count))

    async def work() -> None:
        for _ in numbers:
            await one(app)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def measure(*, profile: bool) -> None:
    """Start the parts, warm them up and measure."""
    upstream = await asyncio.start_server(answer_all, "127.0.0.1", 0)
    port = upstream.sockets[0].getsockname()[1]
    config = {
        "auth": {"mode": "none"},
        "redis": {"url": "unix:///unused"},
        "providers": {
            "a": {"dialect": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "keyless": True}
        },
        "models": [{"provider": "a", "model": "bench", "limits": LIMITS}],
        "combos": [{"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}],
        "default_combo": "auto",
    }
    current = Current(build_serving(load_bytes(msgspec.json.encode(config), {}).settings, 1))
    binary = redis_binary()
    if binary is None:
        raise RuntimeError("redis-server is missing")
    with RedisServer(binary) as server, Path(os.devnull).open("wb") as nowhere:  # noqa: ASYNC230
        engine = Engine(
            current,
            servers=Servers(url=server.url, prefix="bench"),
            worker_id="bench",
            log=Log(nowhere),
            registry=Registry(),
        )
        await engine.start()
        app = build_app(engine.deps)
        await many(app, AT_ONCE * 10)
        tune_gc()
        if profile:
            await show_profile(app)
        else:
            await show_best(app)
        await engine.settle()
        await engine.stop()
    upstream.close()


async def show_best(app: FrontDoor) -> None:
    """Print the CPU of the best round."""
    rounds = []
    for _ in range(ROUNDS):
        began_s = time.process_time()
        await many(app, REQUESTS)
        rounds.append((time.process_time() - began_s) / REQUESTS * 1e6)
    print(f"CPU per request: best {min(rounds):.0f} us, worst {max(rounds):.0f} us")


async def show_profile(app: FrontDoor) -> None:
    """Print where the time goes."""
    profiler = cProfile.Profile()
    profiler.enable()
    await many(app, REQUESTS)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(50)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(profile=options.profile))
