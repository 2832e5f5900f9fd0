"""What scripts tell all workers at once, on one channel: texts become values (`lua/lib/tell.lua`).

An event may get lost. It is a hint that saves time, never the truth: whoever missed it asks Redis
in vain, or learns of it from the next snapshot.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.windows import Gate

WELL: Final = b"well"


class HealthEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What bars a target, a key or more has changed.

    Attributes:
        record: the key of the health record.
        gate: what bars it now; None when nothing does.
        wait_ms: for how long.
        at_ms: the server's clock then, ms since the epoch.
    """

    record: str
    gate: Gate | None
    wait_ms: int
    at_ms: int


class SnapshotEvent(msgspec.Struct, frozen=True, kw_only=True):
    """There is a new snapshot.

    Attributes:
        version: of it.
        at_ms: the server's clock when it was published.
    """

    version: int
    at_ms: int


class ModelEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model over all its keys has changed.

    Attributes:
        record: the key of its record.
        standing: what is known now.
    """

    record: str
    standing: ModelStanding

    @property
    def at_ms(self) -> int:
        """The server's clock then, ms since the epoch."""
        return self.standing.seen_ms


class ProviderEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a provider as a whole has changed.

    Attributes:
        record: the key of its record.
        standing: what is known now.
    """

    record: str
    standing: ProviderStanding

    @property
    def at_ms(self) -> int:
        """The server's clock then, ms since the epoch."""
        return self.standing.seen_ms


class StatusEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a key or of the pool has changed.

    Attributes:
        at_ms: the server's clock then.
    """

    at_ms: int


class DrainEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Workers are to be drained, or not any more.

    Attributes:
        at_ms: the server's clock then.
    """

    at_ms: int


class ConfigEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration was changed.

    Attributes:
        version: of the overlay.
        at_ms: the server's clock when it was stored.
    """

    version: int
    at_ms: int


Hint = SnapshotEvent | StatusEvent | ConfigEvent | DrainEvent
Event = HealthEvent | ModelEvent | ProviderEvent | Hint


def read_event(text: bytes) -> Event | None:
    """Read an event; None for what this version does not know, as a newer worker may tell more."""
    try:
        match text.split(b" "):
            case [b"health", record, code, wait_ms, at_ms]:
                return HealthEvent(
                    record=record.decode(),
                    gate=None if code == WELL else Gate(code.decode()),
                    wait_ms=int(wait_ms),
                    at_ms=int(at_ms),
                )
            case [b"model", record, points, since_ms, failures, until_ms, at_ms]:
                standing = ModelStanding(
                    seen_ms=int(at_ms),
                    points=float(points),
                    since_ms=int(since_ms),
                    failures=int(failures),
                    benched_until_ms=int(until_ms),
                )
                return ModelEvent(record=record.decode(), standing=standing)
            case [b"provider", record, state, wait_ms, failed, at_ms]:
                return ProviderEvent(
                    record=record.decode(),
                    standing=ProviderStanding(
                        seen_ms=int(at_ms),
                        state=BreakerState(state.decode()),
                        wait_ms=int(wait_ms),
                        failed=int(failed),
                    ),
                )
            case words:
                return _read_hint(words)
    except ValueError:
        return None


def _read_hint(words: list[bytes]) -> Hint | None:
    """Read an event that only says that there is something to read."""
    match words:
        case [b"snapshot", version, at_ms]:
            return SnapshotEvent(version=int(version), at_ms=int(at_ms))
        case [b"config", version, at_ms]:
            return ConfigEvent(version=int(version), at_ms=int(at_ms))
        case [b"status", at_ms]:
            return StatusEvent(at_ms=int(at_ms))
        case [b"drain", at_ms]:
            return DrainEvent(at_ms=int(at_ms))
        case _:
            return None
