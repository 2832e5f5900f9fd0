from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import msgspec
import pytest

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import serve_simulator
from tests.simulator.bench_client import Bench, SteppedClock


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Bench]]]:
    """Starts simulators; the secret `k` is the key labelled `a` unless keys are given."""
    async with AsyncExitStack() as stack:

        async def start_one(**fields: Any) -> Bench:
            fields.setdefault("keys", {"k": {"label": "a"}})
            config = msgspec.convert(fields, SimulatorConfig)
            clock = SteppedClock()
            sim = await serve_simulator(config, clock=clock, unix_clock=lambda: 1_700_000_000.0)
            stack.push_async_callback(sim.close)
            http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{sim.port}", timeout=5)
            await stack.enter_async_context(http)
            bench = Bench(sim, http, clock)
            stack.push_async_callback(bench.close)
            return bench

        yield start_one
