"""CPU of one upstream call: the client alone against the mock, without gateway and Redis.

    python -m bench.stages.upstream_client [--baseline CHECKOUT] [--rounds N] [--seconds S]

Prints microseconds of this process's CPU (user and system) for each call, median of the rounds.
With a baseline, which is another checkout of the repository, both take turns in each round, and
what counts is the ratio. Each measurement is a process of its own on one core, the mock runs on
the other.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.machine import TARGET_CORE, TOOL_CORE, pinned
from bench.targets import ROOT, built, running
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse

BUFFERED_PORT, STREAM_PORT = 19120, 19121
MOCK_SPECS = (f"{BUFFERED_PORT}:0:0", f"{STREAM_PORT}:0:2000:ok:50")
CASES = (
    ("buffered", 1),
    ("buffered", 16),
    ("buffered", 64),
    ("buffered", 256),
    ("stream", 1),
    ("stream", 64),
    ("stream", 256),
)
HEADERS = (
    ("content-type", "application/json"),
    ("accept", "application/json"),
    ("authorization", "Bearer bench-upstream-key"),
)
TEXT = b"y" * 950
BUFFERED = b'{"model":"bench","messages":[{"role":"user","content":"' + TEXT + b'"}]}'
STREAM = BUFFERED[:-1] + b',"stream":true}'
MAX_ANSWER_BYTES = 1_048_576
STREAM_BYTES = 5_000  # fewer would mean that the mock did not stream


def call_of(kind: str) -> UpstreamCall:
    port, body = (BUFFERED_PORT, BUFFERED) if kind == "buffered" else (STREAM_PORT, STREAM)
    return UpstreamCall(
        url=f"http://127.0.0.1:{port}/v1/chat/completions",
        headers=HEADERS,
        body=body,
        connect_timeout_s=5.0,
        dispatch_before_s=time.monotonic() + 3600.0,
    )


async def one(client: UpstreamClient, kind: str, call: UpstreamCall) -> None:
    """Makes one call and reads its answer."""
    answer = await client.post(call)
    if not isinstance(answer, UpstreamResponse) or answer.status != 200:
        raise RuntimeError(f"the mock answered {answer}")
    if kind == "buffered":
        body = await answer.read_body(MAX_ANSWER_BYTES)
        size = len(body) if isinstance(body, bytes) else 0
    else:
        size = 0
        while chunk := await answer.read_chunk():
            size += len(chunk) if isinstance(chunk, bytes) else -MAX_ANSWER_BYTES
        size -= STREAM_BYTES
    if size <= 0:
        raise RuntimeError("the answer is not whole")


async def measure(kind: str, at_once: int, seconds: float) -> float:
    """Microseconds of CPU for each call, after a warm-up of a fifth of the time."""
    client = UpstreamClient()
    await client.start()
    call = call_of(kind)
    done = 0
    until = time.monotonic() + seconds * 1.2

    async def work() -> None:
        nonlocal done
        while time.monotonic() < until:
            await one(client, kind, call)
            done += 1

    workers = asyncio.gather(*(work() for _ in range(at_once)))
    await asyncio.sleep(seconds * 0.2)
    began_s, before = time.process_time(), done
    await asyncio.sleep(seconds)
    spent_s, calls = time.process_time() - began_s, done - before
    await workers
    await client.close()
    return spent_s / calls * 1e6


def measured(checkout: Path, kind: str, at_once: int, seconds: float) -> float:
    """What a fresh process finds for the client of a checkout."""
    command = [sys.executable, __file__, "--child", kind, str(at_once), "--seconds", str(seconds)]
    result = subprocess.run(
        pinned(command, TARGET_CORE),
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return float(result.stdout)


def compare(baseline: Path | None, rounds: int, seconds: float) -> None:
    """Prints one row for each case."""
    sides = [ROOT] if baseline is None else [baseline, ROOT]
    print("case, concurrency: us of CPU for each call" + (" (baseline, this)" * (len(sides) > 1)))
    for kind, at_once in CASES:
        found: dict[Path, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                found[side].append(measured(side, kind, at_once, seconds))
        medians = [statistics.median(found[side]) for side in sides]
        row = "  ".join(f"{median:8.1f}" for median in medians)
        print(f"{kind:8} {at_once:4}: {row}  ratio {medians[-1] / medians[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--child", nargs=2, metavar=("CASE", "CONCURRENCY"))
    options = parser.parse_args()
    if options.child:
        kind, at_once = options.child
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 50, 100)  # as a worker does
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(runner.run(measure(kind, int(at_once), options.seconds)))
        return
    binary = built("mock", ())
    if binary is None:
        raise SystemExit("a C compiler is needed for the mock")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = [str(binary), *MOCK_SPECS]
        stack.enter_context(running(command, TOOL_CORE, folder / "mock.log"))
        time.sleep(0.3)
        compare(options.baseline, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
