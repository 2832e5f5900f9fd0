"""What workers say of themselves, and which operators want drained (`lua/meta/{report,drain}`).

Each worker reports once a second, and hears in the same call whether it is to be drained. A life of
a worker has its own id, so whoever starts anew is not drained.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from cluster_gw.store.caller import OwnedCaller
from cluster_gw.store.lane import Reply
from cluster_gw.store.membership import DEAD_AFTER_MS

REPORT_S: Final = 1.0


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself.

    Attributes:
        status: `ready`, `degraded`, `starting` or `draining`.
        in_flight: requests that it serves now.
        config_version: of what was changed at run time, as it has it.
        file_version: of the file of its group.
        snapshot_version: by which it ranks; 0 for none.
        snapshot_age_ms: how old that is; None without one.
        started_at_ms: when it began, ms since the epoch by its own clock.
        version: of the program.
        host: the machine it runs on.
        pid: of its process there.
        master_keys: names of those that it has; they say nothing of the keys.
        unread_secrets: keys whose secret was set at run time and cannot be read there.
    """

    status: str
    in_flight: int
    config_version: int
    file_version: int
    snapshot_version: int
    snapshot_age_ms: int | None
    started_at_ms: int
    version: str
    host: str
    pid: int
    master_keys: tuple[str, ...] = ()
    unread_secrets: tuple[str, ...] = ()


class ListedWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as Redis knows it.

    Attributes:
        id: as in its leases.
        alive: it was heard within the last four seconds.
        silent_ms: since it was heard last.
        drained_since_ms: since when operators want it drained, ms since the epoch; None if not.
        state: what it said last; None where it said nothing that can be read.
    """

    id: str
    alive: bool
    silent_ms: int
    drained_since_ms: int | None
    state: WorkerState | None


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an order to drain workers, or to end that.

    Attributes:
        workers: those that it changed, or those that nobody knows.
        is_done: every worker that was named is known.
    """

    workers: tuple[str, ...]
    is_done: bool


ENCODER: Final = msgspec.json.Encoder()
DECODER: Final = msgspec.json.Decoder(WorkerState)


class Fleet(OwnedCaller):
    """Tells of this worker, and of all. Every method raises `StoreLostError` without Redis."""

    async def report(self, state: WorkerState) -> bool:
        """Say what this worker is; whether it is to be drained."""
        keys, text = self._keys, ENCODER.encode(state).decode()
        reply = await self._client.run(
            self._scripts["meta/report"],
            [keys.worker_states(), keys.drains(), keys.workers()],
            [self._owner, text],
        )
        return bool(reply[2])

    async def drain(self, workers: Sequence[str], *, drained: bool) -> Drained:
        """Have workers drained, or take part again.

        Args:
            workers: their ids; none stands for all that are listed.
            drained: what they are to be.
        """
        places = [self._keys.drains(), self._keys.workers()]
        status, _, _, *named = await self._call("meta/drain", places, int(drained), *workers)
        return Drained(workers=tuple(name.decode() for name in named), is_done=bool(status))

    async def list_workers(self, now_ms: int) -> list[ListedWorker]:
        """List the workers that were heard within the last hour, in order of their ids.

        Args:
            now_ms: the server's clock, ms since the epoch.
        """
        call, keys = self._client.call, self._keys
        beats = await call("ZRANGE", keys.workers(), 0, -1, "WITHSCORES")
        states = _pairs(await call("HGETALL", keys.worker_states()))
        drains = _pairs(await call("HGETALL", keys.drains()))
        return [
            ListedWorker(
                id=name.decode(),
                alive=now_ms - beat_ms < DEAD_AFTER_MS,
                silent_ms=max(0, now_ms - beat_ms),
                drained_since_ms=_number(drains.get(name)),
                state=read_state(states.get(name)),
            )
            for name, beat_ms in sorted((n, int(float(b))) for n, b in _pairs(beats).items())
        ]


def read_state(text: bytes | None) -> WorkerState | None:
    """Read what a worker said; None where it said nothing, or a newer one says it differently."""
    try:
        return None if text is None else DECODER.decode(text)
    except msgspec.MsgspecError:
        return None


def _pairs(flat: Reply) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _number(text: bytes | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
