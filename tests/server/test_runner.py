"""Requests of one connection share a task, as long as none has to wait for another's end."""

import asyncio
from typing import Any

import pytest

from tests.fakes.waiting import until_soon
from tests.server.ports import served

GET = b"GET /%b HTTP/1.1\r\nhost: a\r\n\r\n"


async def answer(send: Any, body: bytes) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: bytes) -> bytes:
    writer.write(GET % path)
    async with asyncio.timeout(2.0):
        head = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))


async def test_requests_that_follow_each_other_share_a_task() -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        tasks.append(asyncio.current_task())
        await answer(send, b"ok")

    async with served(app) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(5):
            assert await ask(reader, writer, b"") == b"ok"
        assert state.tasks == set()  # between requests nobody has to wait for it
        writer.close()

    assert len(tasks) == 5
    assert len(set(tasks)) == 1


async def test_a_request_does_not_wait_for_what_another_does_after_its_answer() -> None:
    tasks: list[asyncio.Task[Any] | None] = []
    may_end = asyncio.Event()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        tasks.append(asyncio.current_task())
        await answer(send, b"ok")
        if len(tasks) == 1:
            await may_end.wait()

    async with served(app) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ask(reader, writer, b"") == b"ok"
        assert await ask(reader, writer, b"") == b"ok"
        assert state.tasks == {tasks[0]}
        may_end.set()
        assert await ask(reader, writer, b"") == b"ok"
        writer.close()

    assert tasks[0] is not tasks[1]
    assert tasks[2] is tasks[1]


async def test_a_task_that_was_told_to_end_serves_no_other_request() -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        tasks.append(asyncio.current_task())
        await answer(send, b"ok")
        if len(tasks) == 1 and tasks[0] is not None:
            tasks[0].cancel()  # nothing is awaited afterwards: it is never raised here

    async with served(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ask(reader, writer, b"") == b"ok"
        assert await ask(reader, writer, b"") == b"ok"
        writer.close()

    assert tasks[0] is not tasks[1]


@pytest.mark.parametrize("is_asked", [True, False])
async def test_the_task_ends_with_its_connection(is_asked: bool) -> None:
    before = asyncio.all_tasks()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, b"ok")

    async with served(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if is_asked:
            await ask(reader, writer, b"")
        writer.close()
        await until_soon(lambda: asyncio.all_tasks() == before)


async def test_what_one_request_left_unread_is_not_the_next_ones_body() -> None:
    bodies: list[bytes | None] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        bodies.append(scope["extensions"]["cluster_gw.read_now"](1000))
        await answer(send, b"ok")

    async with served(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in (b"first", b"", b"third"):
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            await reader.readuntil(b"ok")
        writer.close()

    assert bodies == [b"first", None, b"third"]


async def test_a_body_that_is_too_long_or_not_whole_is_not_at_hand() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        read_now = scope["extensions"]["cluster_gw.read_now"]
        seen.append(read_now(1000))
        if seen == [None]:
            may_send.set()
            first = await receive()
            rest = await receive()
            seen.append(first["body"] + rest["body"])
        else:
            seen.append(read_now(len(b"whole") - 1))
            seen.append(read_now(len(b"whole")))
        await answer(send, b"ok")

    may_send = asyncio.Event()
    async with served(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nha")
        await asyncio.wait_for(may_send.wait(), 2.0)
        writer.write(b"lf")
        await reader.readuntil(b"ok")
        writer.close()

    assert seen == [None, b"half"]
