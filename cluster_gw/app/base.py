"""What the joined parts of a worker are all built from."""

import msgspec

from cluster_gw.pipeline.clock import Clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.sealing import Seal, Unsealed
from cluster_gw.store.session_memory import READ_S
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """Where this worker keeps what it shares.

    Attributes:
        url: of the Redis that decides.
        prefix: of every key name.
        cache_url: of the one for what may be lost; None where that is the same.
        seal: encrypts what is kept there of conversations.
        read_s: how long a request waits for that, at most.
    """

    url: str
    prefix: str = "gw1"
    cache_url: str | None = None
    seal: Seal = Unsealed()
    read_s: float = READ_S

    def __repr__(self) -> str:
        return f"Servers({self.prefix})"


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's tools.

    Attributes:
        redis: the worker's client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker, as in its leases.
        clock: of this worker.
        log: where events go.
        registry: where numbers go.
    """

    redis: RedisClient
    scripts: Scripts
    keys: Keys
    worker_id: str
    clock: Clock
    log: Log
    registry: Registry
