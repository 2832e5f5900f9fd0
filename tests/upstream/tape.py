"""A connection without a socket: bytes go in as they are cut, and what became of them comes out."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.incoming import Incoming
from cluster_gw.upstream.origin import Place

PLACE = Place("127.0.0.1", 80, is_tls=False)


class Tape(asyncio.Transport):
    """Keeps what is written; full when `takes_bytes` have been, until `drain`."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.unsent_bytes = 0
        self.takes_bytes: int | None = None
        self.is_full = False
        self.protocol: asyncio.Protocol | None = None
        self.is_aborted = False
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_aborted
        self.written.append(bytes(data))
        if self.takes_bytes is not None:
            self.unsent_bytes += len(data)
            if self.unsent_bytes > self.takes_bytes and not self.is_full:
                self.is_full = True
                assert self.protocol is not None
                self.protocol.pause_writing()

    def drain(self) -> None:
        self.unsent_bytes = 0
        self.is_full = False
        assert self.protocol is not None
        self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        assert not self.is_aborted
        self.is_paused = True

    def resume_reading(self) -> None:
        assert not self.is_aborted
        self.is_paused = False


class Turns:
    """What a connection asks of a loop, a turn at a time."""

    def __init__(self) -> None:
        self._soon: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._soon.append((callback, args))

    def time(self) -> float:
        return 0.0

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def turn(self) -> None:
        soon, self._soon = self._soon, []
        for callback, args in soon:
            callback(*args)


class Rig:
    """A connection on a tape, and whether it was given back."""

    def __init__(self) -> None:
        self.loop = Turns()
        self.given_back: list[Connection] = []
        self.tape = Tape()
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.connection = Connection(PLACE, loop, self.given_back.append)
        self.connection.connection_made(self.tape)
        self.tape.protocol = self.connection

    def ask(self, incoming: Incoming | None = None) -> Incoming:
        incoming = incoming or Incoming()
        self.send(incoming, b"HEAD", b"BODY")
        self.loop.turn()
        return incoming

    def send(self, incoming: Incoming, head: bytes, body: bytes, *, may_leave: bool = True) -> None:
        self.connection.send(incoming, head, body, lambda: may_leave)

    def feed(self, data: bytes) -> None:
        if not self.tape.is_aborted and data:
            self.connection.data_received(data)


class Outcome(NamedTuple):
    """What a reader would be told of an answer."""

    status: int
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_complete: bool
    fault: Fault | None
    is_reusable: bool


def outcome(pieces: Sequence[bytes], *, ends: bool = False) -> Outcome:
    """Feeds an answer in these pieces; `ends` closes the peer's side after the last."""
    rig = Rig()
    incoming = rig.ask()
    body = b""
    for piece in pieces:
        rig.feed(piece)
        body += b"".join(incoming.parts)
        incoming.parts.clear()
        incoming.waiting_bytes = 0
    if ends and not rig.tape.is_aborted:
        rig.connection.eof_received()
    assert incoming.is_complete or incoming.fault or not (ends or rig.tape.is_aborted)
    is_reusable = bool(rig.given_back) and not rig.tape.is_aborted
    fields = tuple((name, value.strip()) for name, value in incoming.fields)
    return Outcome(incoming.status, fields, body, incoming.is_complete, incoming.fault, is_reusable)
