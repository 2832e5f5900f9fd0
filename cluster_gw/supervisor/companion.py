"""Processes that run beside the workers of a group, such as the simulated providers of the demo."""

import asyncio
from collections.abc import Mapping

import msgspec

from cluster_gw.supervisor.child import Child, popen


class Companion(msgspec.Struct, frozen=True, kw_only=True):
    """A further process that runs as long as the group.

    Attributes:
        words: its command.
        port: where it listens on 127.0.0.1 once it is ready.
    """

    name: str
    words: tuple[str, ...]
    port: int

    def child(self, environ: Mapping[str, str]) -> Child:
        """Give the process to be looked after, not yet started."""
        return Child(self.name, lambda _: popen(list(self.words), environ=dict(environ)))

    async def is_listening(self) -> bool:
        """Whether it takes connections now."""
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True
