"""A whole worker inside the test's own loop: real Redis, real sockets, the real loop and codecs.

For tests of one worker. Claims about several workers start processes (`tests/cluster`).
"""

import asyncio
import contextlib
import io
from collections.abc import Generator, Mapping
from typing import Any, Self

import httpx
import msgspec
import uvicorn
from starlette.applications import Starlette

from cluster_gw.app import Engine, Servers
from cluster_gw.app.administration import build_desk
from cluster_gw.app.configuration import Configuration
from cluster_gw.app.tracing import tracing_of
from cluster_gw.server.admin.table import build_admin
from cluster_gw.server.protocol import with_head_limit
from cluster_gw.server.routes import build_app
from cluster_gw.settings.loading import load_plain, read_base
from cluster_gw.store.alone import LostPolicy, Mode
from cluster_gw.store.sealing import seal_of
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import BYTES_PER_KB


def provider(base_url: str, **more: Any) -> dict[str, Any]:
    """An OpenAI-dialect provider of the configuration."""
    return {"dialect": "openai", "base_url": base_url, **more}


class Gateway:
    """One worker; `async with` starts and ends it.

    Args:
        config: the configuration without `redis`; `auth.mode: none` unless it says otherwise.
        redis_url: a running server.
        environ: where secrets are looked up.
        prefix: of every key.
        when_lost: see `redis.when_lost`.
        cache_url: see `redis.cache_url`.
        worker_id: names it among the others.
        read_s: how long a request waits for what is kept of its conversation; here longer than
            anywhere else, since other tests want the machine too.

    Attributes:
        engine: its inner parts.
        registry: its numbers.
        log: what it wrote.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        redis_url: str,
        *,
        environ: Mapping[str, str] | None = None,
        prefix: str = "gw1",
        when_lost: str = "share",
        cache_url: str | None = None,
        worker_id: str = "w1",
        read_s: float = 5.0,
    ) -> None:
        document = {"auth": {"mode": "none"}, **config}
        document["redis"] = {"url": redis_url, "prefix": prefix, "when_lost": when_lost}
        base = read_base(msgspec.json.encode(document), environ or {})
        self.registry, self._worker_id = Registry(), worker_id
        self.stream = io.BytesIO()
        self.log = Log(self.stream)
        self.configuration = Configuration(base, log=self.log, registry=self.registry)
        self.settings, self.current = self.configuration.settings, self.configuration.current
        self._environ = environ or {}
        keys = load_plain(base.plain, base).master_keys
        self._servers = Servers(
            url=redis_url,
            prefix=prefix,
            cache_url=cache_url,
            seal=seal_of(*[key.reveal() for key in keys]),
            read_s=read_s,
        )

    async def __aenter__(self) -> Self:
        self.engine = Engine(
            self.current,
            servers=self._servers,
            worker_id=self._worker_id,
            log=self.log,
            registry=self.registry,
            lost=LostPolicy(mode=Mode(self.settings.redis.when_lost)),
        )
        self.engine.config_watch.when_read(self.configuration.take_over)
        self.configuration.when_changed(self.engine.refit)
        self.configuration.when_changed(self.engine.coordination.report_soon)
        await self.engine.start()
        self.tracing = tracing_of(
            self.settings.telemetry, "w1", self._environ, self.log, self.registry
        )
        tracer = None if self.tracing is None else self.tracing.tracer
        self._server = _Server(
            uvicorn.Config(
                build_app(msgspec.structs.replace(self.engine.deps, tracer=tracer)),
                port=0,
                interface="asgi3",
                http=with_head_limit(self.settings.server.max_head_kb * BYTES_PER_KB),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        self._task = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.001)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.current.is_started = True
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.should_exit = True
        await self._task
        await self.engine.settle()
        await self.engine.stop()
        if self.tracing is not None:
            await self.tracing.stop()

    def admin_app(self) -> Starlette:
        """This worker's admin API."""
        return build_admin(build_desk(self.engine, self.configuration))

    def admin(self) -> httpx.AsyncClient:
        """A client of this worker's admin API, as the supervisor reaches it."""
        transport = httpx.ASGITransport(self.admin_app(), raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://worker")

    def events(self) -> list[dict[str, Any]]:
        """Every log line so far."""
        self.log.flush()
        return [msgspec.json.decode(line) for line in self.stream.getvalue().splitlines()]


class _Server(uvicorn.Server):
    """A server that leaves the signals to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield
