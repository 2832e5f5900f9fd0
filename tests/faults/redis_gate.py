"""Stands between a worker and its Redis and spoils one chosen call."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, Self

Spoil = Literal["request", "reply", "silence"]
SPOILS: Final[tuple[Spoil, ...]] = ("request", "reply", "silence")
CALL: Final = b"$7\r\nEVALSHA\r\n"


class Link:
    """One carried connection."""

    def __init__(self, outer: asyncio.StreamWriter, inner: asyncio.StreamWriter) -> None:
        self.outer = outer
        self.inner = inner
        self.is_muted = False
        self.answered = asyncio.Event()

    def close(self) -> None:
        """End both directions."""
        self.answered.set()
        self.outer.close()
        self.inner.close()

    async def carry_back(self, reader: asyncio.StreamReader) -> None:
        """Carry replies to the worker; a muted link swallows them."""
        while data := await reader.read(65536):
            if self.is_muted:
                self.answered.set()
            else:
                self.outer.write(data)
        self.outer.close()


class RedisGate:
    """A unix socket in front of Redis' own.

    Args:
        target: path of the server's socket.

    Attributes:
        calls: script calls that came by since `arm`.
        spoiled: whether the chosen call has come.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.calls = 0
        self.spoiled = False
        self._chosen = 0
        self._spoil: Spoil = "request"
        self._act: Callable[[], None] | None = None
        self._links: set[Link] = set()

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="gwg", dir="/tmp")
        path = Path(self._folder.name) / "s"
        self._server = await asyncio.start_unix_server(self._accept, path)
        self.url = f"unix://{path}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()
        for link in self._links:
            link.close()
        while self._links:  # noqa: ASYNC110 - the links tell nobody when they are gone
            await asyncio.sleep(0.001)
        await self._server.wait_closed()
        self._folder.cleanup()

    def arm(self, chosen: int, spoil: Spoil) -> None:
        """Spoil the call of that number, counted from 1 and from now on; 0 spoils none.

        Args:
            chosen: which call.
            spoil: `request`: the connection ends before the call reaches Redis. `reply`: Redis
                applies it and the connection ends before the reply comes back. `silence`: it is
                applied, its reply and all later ones are held, and the connection stays open.
        """
        self.calls, self.spoiled = 0, False
        self._chosen, self._spoil, self._act = chosen, spoil, None

    def arm_act(self, chosen: int, act: Callable[[], None]) -> None:
        """Do something just before that call reaches Redis, and let it pass."""
        self.arm(chosen, "request")
        self._act = act

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._target)
        link = Link(writer, inner_writer)
        self._links.add(link)
        back = asyncio.create_task(link.carry_back(inner_reader))
        try:
            while data := await reader.read(65536):
                if not await self._pass_on(data, link):
                    break
        except ConnectionError:
            return
        finally:
            link.close()
            await asyncio.gather(back, return_exceptions=True)
            self._links.discard(link)

    async def _pass_on(self, data: bytes, link: Link) -> bool:
        """Carry one write of the worker on; false when the link is to end."""
        before = self.calls
        self.calls += data.count(CALL)
        is_here = not self.spoiled and before < self._chosen <= self.calls
        if not is_here:
            link.inner.write(data)
            return True
        self.spoiled = True
        if self._act is not None:
            self._act()
            link.inner.write(data)
            return True
        if self._spoil == "request":
            return False
        link.is_muted = True
        link.inner.write(data)
        if self._spoil == "silence":
            return True
        await link.answered.wait()
        return False
