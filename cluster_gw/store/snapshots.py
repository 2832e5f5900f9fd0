"""The snapshot in Redis: put there by the one worker that builds it, read by all.

A version is immutable. A builder whose term is over is refused, however late its call comes.
"""

from typing import Final

import msgspec

from cluster_gw.core.routing.snapshot import NO_SNAPSHOT, Snapshot
from cluster_gw.errors import ScriptContractError
from cluster_gw.store.caller import OwnedCaller
from cluster_gw.store.leadership import Term

ROLE: Final = "snap"  # its key shares a slot with the snapshot
ENCODER: Final = msgspec.json.Encoder()
DECODER: Final = msgspec.json.Decoder(Snapshot)
UNCHANGED: Final = 2


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot and the instant at which it was the present one.

    Attributes:
        snapshot: `NO_SNAPSHOT` when there is none.
        server_ms: the server's clock when it answered, ms since the epoch.
    """

    snapshot: Snapshot
    server_ms: int


class Snapshots(OwnedCaller):
    """Publishes and reads snapshots.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker, as in its terms.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    async def publish(self, snapshot: Snapshot, term: Term) -> int | None:
        """Put a snapshot in place of the last one.

        Args:
            snapshot: its version is not looked at, it gets a new one.
            term: in which it was built.

        Returns:
            Its version; None when the term is over, and nothing was done.

        Raises:
            StoreLostError: Redis is away; it may have been published.
        """
        blob = ENCODER.encode(snapshot).decode()
        status, _, version, _ = await self._call(
            "snapshot/publish",
            [self._keys.lead(ROLE), self._keys.snapshot()],
            *(self._owner, term.fence, snapshot.at_ms, blob),
        )
        return version if status else None

    async def read(self, known: Snapshot) -> Reading:
        """Read the present snapshot; `known` again when it still is that.

        Raises:
            StoreLostError: Redis is away.
            ScriptContractError: what stands there cannot be read.
        """
        status, _, version, now_ms, blob = await self._call(
            "snapshot/read", [self._keys.snapshot()], known.version
        )
        if status == UNCHANGED:
            return Reading(snapshot=known, server_ms=now_ms)
        if not status:
            return Reading(snapshot=NO_SNAPSHOT, server_ms=now_ms)
        try:
            found = DECODER.decode(blob)
        except msgspec.MsgspecError as fault:
            raise ScriptContractError(
                f"the snapshot cannot be read: {type(fault).__name__}"
            ) from None
        return Reading(snapshot=msgspec.structs.replace(found, version=version), server_ms=now_ms)
