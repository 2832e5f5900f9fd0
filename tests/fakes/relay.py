"""Stands between workers and Redis: carries bytes late, slowly, or not at all."""

import asyncio
import threading
from collections import deque
from pathlib import Path
from typing import Final, Self

CHUNK_BYTES: Final = 65536
READY_S: Final = 10.0


class Relay:
    """A loopback port in front of a server's unix socket, with a loop and a thread of its own.

    Args:
        target: path of the server's socket.

    Attributes:
        delay_s: by how much bytes come late, in each direction.
        bytes_per_s: how many replies get through, None for no bound.
        is_cut: nothing is carried any more; connections stay open, and new ones are accepted.
    """

    def __init__(self, target: Path) -> None:
        self.delay_s = 0.0
        self.bytes_per_s: float | None = None
        self.is_cut = False
        self.port = 0
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """For workers."""
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(READY_S)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(READY_S)

    def drop(self) -> None:
        """Close all connections that are open now."""
        self._loop.call_soon_threadsafe(self._close_all)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._ending.wait()
        server.close()
        self._close_all()
        # The tasks of connections end with their sockets; what is left is cancelled with the loop.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_unix_connection(self._target)
        except OSError:  # the server is down: so is this connection
            writer.close()
            return
        self._writers |= {writer, inner_writer}
        try:
            await asyncio.gather(
                self._carry(reader, inner_writer, is_reply=False),
                self._carry(inner_reader, writer, is_reply=True),
            )
        finally:
            self._writers -= {writer, inner_writer}

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_reply: bool
    ) -> None:
        """Carry one direction; reading never waits, so that delays do not add up."""
        due: deque[tuple[float, bytes]] = deque()
        arrived = asyncio.Event()
        sending = asyncio.create_task(self._send(due, arrived, writer, is_reply=is_reply))
        try:
            while data := await reader.read(CHUNK_BYTES):
                due.append((self._loop.time() + self.delay_s, data))
                arrived.set()
        except ConnectionError:
            pass
        finally:
            sending.cancel()
            writer.close()

    async def _send(
        self,
        due: deque[tuple[float, bytes]],
        arrived: asyncio.Event,
        writer: asyncio.StreamWriter,
        *,
        is_reply: bool,
    ) -> None:
        while True:
            await arrived.wait()
            arrived.clear()
            while due:
                at_s, data = due.popleft()
                await asyncio.sleep(max(0.0, at_s - self._loop.time()))
                if is_reply and self.bytes_per_s:
                    await asyncio.sleep(len(data) / self.bytes_per_s)
                if not self.is_cut:
                    writer.write(data)

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.close()
