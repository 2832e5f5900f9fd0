"""Keeps the overlay this worker knows the present one; puts back what Redis has lost of it."""

import contextlib
from collections.abc import Callable
from typing import Final

from cluster_gw.background.lookout import Lookout
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.overlays import NO_OVERLAY, Overlay, Overlays

LOOK_S: Final = 1.0  # what is told of a change may get lost


class ConfigWatch(Lookout):
    """Reads the overlay when there is another.

    Args:
        overlays: where it is.
        on_unreadable: called with the reason when it cannot be read; the last one stays.
        on_restored: called with the version that Redis had lost and has again.
        on_superseded: called with the version that Redis had lost and gave to another change.

    Attributes:
        known: the one that was read last.
    """

    def __init__(
        self,
        overlays: Overlays,
        *,
        on_unreadable: Callable[[str], None],
        on_restored: Callable[[int], None],
        on_superseded: Callable[[int], None],
    ) -> None:
        self.known = NO_OVERLAY
        self._overlays = overlays
        self._on_unreadable = on_unreadable
        self._on_restored, self._on_superseded = on_restored, on_superseded
        self._listeners: list[Callable[[Overlay], None]] = []
        self._told = ""
        super().__init__(self.look)

    def when_read(self, tell: Callable[[Overlay], None]) -> None:
        """Have `tell` called with each new one."""
        self._listeners.append(tell)

    async def look(self) -> None:
        """Read it if it is another one than before; while Redis is away the last one stays."""
        with contextlib.suppress(StoreLostError):
            await self.read()

    async def read(self) -> None:
        """Read it if it is another one than before.

        Raises:
            StoreLostError: Redis is away, or the record is not as we write it.
        """
        try:
            found = await self._overlays.read(self.known)
        except ScriptContractError as fault:
            if self._told != str(fault):
                self._on_unreadable(str(fault))
            self._told = str(fault)
            return
        self._told = ""
        known = self.known
        if found.version < known.version:
            # A failover, or an emptied server: what was acknowledged holds all the same. Whoever
            # writes first is right; the version stays what it was.
            if await self._overlays.restore(found, known):
                self._on_restored(known.version)
            return  # the next look finds what stands there
        if known.version and found.version == known.version and found.id != known.id:
            # A failover lost what is known here, and somebody has changed what was before it.
            self._on_superseded(known.version)
            found = await self._overlays.renumber(found) or found
        self.take(found)

    def take(self, overlay: Overlay) -> None:
        """Know this one from now on: it was read, or written by this worker."""
        is_new = (overlay.version, overlay.id) != (self.known.version, self.known.id)
        if is_new and overlay.version >= self.known.version:
            self.known = overlay
            for tell in self._listeners:
                tell(overlay)
