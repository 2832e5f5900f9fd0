"""What was changed of the configuration while everything runs: one record for all (`lua/config`).

Its patches are text here: what they mean is the business of the settings.
"""

from typing import Final

import msgspec

from cluster_gw.errors import ScriptContractError
from cluster_gw.store.caller import ScriptCaller

DONE: Final = 1
UNCHANGED: Final = 2
NO_ID: Final = "-"
AGAIN: Final = "+"


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """One version of it.

    Attributes:
        version: grows with each change; 0 where nothing was ever changed.
        id: of its writing: after a failover two may have the same version.
        patches: JSON.
    """

    version: int = 0
    id: str = NO_ID
    patches: str = "{}"


NO_OVERLAY: Final = Overlay()


def config_version(overlay: Overlay) -> int:
    """Give what operators see of an overlay's version: 1 where nothing was ever changed."""
    return overlay.version + 1


class Overlays(ScriptCaller):
    """Reads and writes the overlay.

    Every method raises `StoreLostError` while Redis is away.
    """

    async def read(self, known: Overlay) -> Overlay:
        """Give the present one: `known` itself when it still is that, `NO_OVERLAY` without any."""
        status, _, version, _, name, patches = await self._call(
            "config/read", [self._keys.overlay()], known.version, known.id
        )
        if status == UNCHANGED:
            return known
        if not status:
            return NO_OVERLAY
        try:
            return Overlay(version=version, id=name.decode(), patches=patches.decode())
        except UnicodeDecodeError:
            raise ScriptContractError("the overlay is no text") from None

    async def replace(
        self, seen: Overlay, new: Overlay, *, valid_until_ms: int = 0
    ) -> Overlay | None:
        """Put `new` in place of `seen`.

        Args:
            seen: what its writer saw there.
            new: its version is the least that it gets; 0 for the next.
            valid_until_ms: by the server's clock: later nothing is done, so that a call that was
                given up cannot come true; 0 for no end.

        Returns:
            It with its version; None when something else stands there, or it came too late.
        """
        status, version = await self._put(seen, new, valid_until_ms)
        return msgspec.structs.replace(new, version=version) if status else None

    async def restore(self, found: Overlay, known: Overlay) -> bool:
        """Put back what was there before; whether this very call did.

        Args:
            found: what stands there instead.
            known: the later one, that is lost; it gets its version again.
        """
        status, _ = await self._put(found, known, 0)
        return status == DONE

    async def renumber(self, found: Overlay) -> Overlay | None:
        """Give what stands there the next version: its own was given to another one before.

        Who saw the other one and builds a change on it is refused from now on. Any number of
        workers may do this for the same one: it is done once.

        Returns:
            It with its new version; None when something else stands there by now.
        """
        again = Overlay(id=f"{found.id}{AGAIN}", patches=found.patches)
        return await self.replace(found, again)

    async def _put(self, seen: Overlay, new: Overlay, valid_until_ms: int) -> tuple[int, int]:
        status, _, version, _ = await self._call(
            "config/commit",
            [self._keys.overlay()],
            *(seen.version, new.id, new.patches, new.version, valid_until_ms),
        )
        return status, version
