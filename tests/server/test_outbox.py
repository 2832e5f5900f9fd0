"""Bytes of a connection wait for the next turn of the loop, and lose neither order nor end."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from cluster_gw.server.outbox import Outbox
from tests.server.ports import served


class Recording:
    """A transport that says what was asked of it, into a list shared with others."""

    def __init__(self, log: list[tuple[str, bytes]], name: str = "") -> None:
        self.name = name
        self._log = log
        self.closed = False

    def write(self, data: bytes) -> None:
        self._log.append((self.name, data))

    def writelines(self, pieces: list[bytes]) -> None:
        self.write(b"".join(pieces))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        self._log.append((self.name, b"<closed>"))


def outbox_of(transport: Recording, on_left: Callable[[], None] = lambda: None) -> Outbox:
    return Outbox(asyncio.get_running_loop(), cast("asyncio.Transport", transport), on_left)


async def test_answers_of_one_turn_leave_one_after_the_other() -> None:
    log: list[tuple[str, bytes]] = []
    boxes = [outbox_of(Recording(log, name)) for name in "abc"]

    async def answer(box: Outbox, data: bytes) -> None:
        box.add(data)
        log.append(("work", data))

    await asyncio.gather(*(answer(box, b"1") for box in boxes))
    await asyncio.sleep(0)

    assert [name for name, _ in log] == ["work", "work", "work", "a", "b", "c"]


async def test_what_waits_for_one_connection_leaves_in_order_and_at_once() -> None:
    log: list[tuple[str, bytes]] = []
    box = outbox_of(Recording(log))
    box.add(b"head")
    box.add(b"body")
    await asyncio.sleep(0)
    box.add(b"more")
    await asyncio.sleep(0)

    assert log == [("", b"headbody"), ("", b"more")]


async def test_what_leaves_at_once_takes_along_what_waits() -> None:
    log: list[tuple[str, bytes]] = []
    box = outbox_of(Recording(log))
    box.add(b"head")
    box.add(b"piece", at_once=True)
    box.add(b"more", at_once=True)
    await asyncio.sleep(0)

    assert log == [("", b"headpiece"), ("", b"more")]


async def test_closing_writes_what_waits_first_and_only_once() -> None:
    log: list[tuple[str, bytes]] = []
    box = outbox_of(Recording(log))
    box.add(b"last")
    box.close()
    await asyncio.sleep(0)

    assert log == [("", b"last"), ("", b"<closed>")]


async def test_nothing_is_written_to_a_peer_that_has_gone() -> None:
    log: list[tuple[str, bytes]] = []
    transport = Recording(log)
    box = outbox_of(transport)
    box.add(b"late")
    transport.closed = True
    await asyncio.sleep(0)

    assert log == []


async def test_owner_is_told_after_bytes_left_and_after_the_close() -> None:
    log: list[tuple[str, bytes]] = []
    box = outbox_of(Recording(log), lambda: log.append(("owner", b"")))
    box.add(b"x")
    box.leave()
    box.close()
    box.leave()

    assert [name or data.decode() for name, data in log] == ["x", "owner", "<closed>", "owner"]


async def hello(_scope: Any, _receive: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
    )
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.parametrize("count", [1, 3])
async def test_server_that_stops_in_the_same_turn_still_sends_its_answers(count: int) -> None:
    async def then_stop(scope: Any, receive: Any, send: Any) -> None:
        await hello(scope, receive, send)
        answered.append(scope["path"])
        if len(answered) == count:
            for connection in list(state.connections):
                connection.shutdown()

    answered: list[str] = []
    async with served(then_stop) as (port, state):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
        for _, writer in streams:
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        async with asyncio.timeout(2.0):
            got = [await reader.read(-1) for reader, _ in streams]
        for _, writer in streams:
            writer.close()

    assert [answer.partition(b"\r\n\r\n")[2] for answer in got] == [b"hello"] * count


async def test_answer_before_a_malformed_head_leaves_before_its_refusal() -> None:
    async with served(hello) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        async with asyncio.timeout(2.0):
            await reader.readuntil(b"hello")
            writer.write(b"BAD\r\n\r\n")
            rest = await reader.read(-1)
        writer.close()

    assert rest.startswith(b"HTTP/1.1 400")
