"""What this worker hears from the others, and what it does at once."""

from cluster_gw.app.coordination import Coordination
from cluster_gw.pipeline.clock import Clock
from cluster_gw.store.bars import Bars
from cluster_gw.store.client import RedisClient
from cluster_gw.store.events import Event, HealthEvent, ModelEvent, SnapshotEvent, read_event
from cluster_gw.store.keys import Keys
from cluster_gw.store.model_health import ModelHealth
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import MS_PER_S

UNKNOWN = "unknown"


class Sharing:
    """Joins the parts by which workers know the same.

    Args:
        redis: the worker's client.
        keys: builds key names.
        bars: what is known to be barred.
        models: what is known of models over all their keys.
        coordination: knows the server's clock.
        clock: of this worker.
        registry: where numbers go.
    """

    def __init__(
        self,
        redis: RedisClient,
        keys: Keys,
        *,
        bars: Bars,
        models: ModelHealth,
        coordination: Coordination,
        clock: Clock,
        registry: Registry,
    ) -> None:
        self._bars, self._models, self._coordination = bars, models, coordination
        self._clock, self._registry = clock, registry
        self._bus = redis.listen(keys.events(), on_message=self._hear, on_gap=self._catch_up)
        registry.on_read(self._read)

    def start(self) -> None:
        """Begin to listen."""
        self._bus.start()

    async def stop(self) -> None:
        """Hear nothing any more."""
        await self._bus.close()

    def _hear(self, text: bytes) -> None:
        event = read_event(text)
        match event:
            case HealthEvent():
                self._bars.hear(event, self._clock.monotonic_s())
                self._count("health", event)
            case ModelEvent():
                self._models.hear(event)
                self._count("model", event)
            case SnapshotEvent():
                self._count("snapshot", event)
            case None:
                self._registry.add(catalog.EVENTS, UNKNOWN)

    def _count(self, kind: str, event: Event) -> None:
        self._registry.add(catalog.EVENTS, kind)
        now_ms = self._coordination.server_clock_ms()
        if now_ms is not None:
            delay_s = max(0.0, now_ms - event.at_ms) / MS_PER_S
            self._registry.observe(catalog.EVENT_SECONDS, value=delay_s)

    def _catch_up(self) -> None:
        """An end that was missed must not bar anything: Redis is asked about all of it."""
        self._bars.clear()

    def _read(self) -> None:
        self._registry.put(catalog.EVENTS_UP, value=int(self._bus.is_up))
        self._registry.put(catalog.EVENTS_RECONNECTS, value=self._bus.reconnects)
