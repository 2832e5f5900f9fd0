"""The admin API without a worker: the same routes, answered from Redis for the command line."""

import contextlib
import io
import secrets as entropy
from collections.abc import AsyncIterator, Mapping
from typing import Final

from starlette.applications import Starlette

from cluster_gw.app.administration import build_desk
from cluster_gw.app.base import Servers
from cluster_gw.app.configuration import Configuration
from cluster_gw.app.engine import Engine
from cluster_gw.server.admin.table import build_admin
from cluster_gw.settings import Loaded
from cluster_gw.settings.loading import read_base
from cluster_gw.store.sealing import seal_of
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry

ID_BYTES: Final = 4


@contextlib.asynccontextmanager
async def visit_admin(
    loaded: Loaded, environ: Mapping[str, str], redis_url: str
) -> AsyncIterator[Starlette]:
    """Connect, and give the admin API; it sees the file of whoever asks, with all changes over it.

    Args:
        loaded: the configuration of the file.
        environ: by which it was read.
        redis_url: where Redis is, with `embedded:` resolved.

    Raises:
        StoreLostError: nobody answers there.
        ScriptContractError: a newer version writes what this one would misread.
    """
    settings = loaded.settings
    cache_url = settings.redis.cache_url
    log, registry = Log(io.BytesIO()), Registry()
    base = read_base(loaded.source.text, environ, loaded.source.files)
    configuration = Configuration(base, log=log, registry=registry)
    engine = Engine(
        configuration.current,
        servers=Servers(
            url=redis_url,
            prefix=settings.redis.prefix,
            cache_url=None if cache_url is None else cache_url.reveal(),
            seal=seal_of(*[key.reveal() for key in loaded.master_keys]),
        ),
        worker_id=f"visitor-{entropy.token_hex(ID_BYTES)}",
        log=log,
        registry=registry,
    )
    engine.config_watch.when_read(configuration.take_over)
    configuration.when_changed(engine.refit)
    try:
        await engine.visit()
        yield build_admin(build_desk(engine, configuration))
    finally:
        await engine.stop()
        log.close()
