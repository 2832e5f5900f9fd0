import asyncio
from collections.abc import Awaitable, Callable

from tests.simulator.bench_client import Bench, ask, raw_post, steer

Start = Callable[..., Awaitable[Bench]]

GET_LIVEZ = b"GET /livez HTTP/1.1\r\nhost: sim\r\n\r\n"
CLOSING = b"GET /livez HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n"


async def test_pipelined_requests_are_answered_in_order(start: Start) -> None:
    bench = await start()
    slow = raw_post(steer(text="first", latency_ms=20))
    fast = raw_post(steer(text="second"))

    received, _ = await bench.read_all(slow + fast + CLOSING)

    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.index(b'"first"') < received.index(b'"second"')
    assert received.endswith(b'{"status":"ok"}')


async def test_request_may_come_byte_by_byte(start: Start) -> None:
    bench = await start()
    reader, writer = await bench.open(b"")
    for byte in CLOSING:
        writer.write(bytes([byte]))
        await asyncio.sleep(0)

    assert (await reader.read()).startswith(b"HTTP/1.1 200")


async def test_connection_is_kept_for_the_next_request(start: Start) -> None:
    bench = await start()

    for _ in range(3):
        await bench.chat(ask())

    assert bench.sim.connection_count == 1


async def test_body_is_asked_for_when_the_client_waits(start: Start) -> None:
    bench = await start()
    head, _, body = raw_post(ask()).partition(b"\r\n\r\n")
    reader, writer = await bench.open(head + b"\r\nexpect: 100-continue\r\n\r\n")

    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body)
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")


async def test_broken_http_is_400_and_the_end(start: Start) -> None:
    bench = await start()

    received, _ = await bench.read_all(b"NOT HTTP AT ALL\r\n\r\n")

    assert received.startswith(b"HTTP/1.1 400")


async def test_upgrade_is_ignored(start: Start) -> None:
    bench = await start()
    head = b"GET /livez HTTP/1.1\r\nhost: sim\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"

    received, _ = await bench.read_all(head)

    assert received.startswith(b"HTTP/1.1 200")


async def test_long_body_that_comes_at_once_is_no_head(start: Start) -> None:
    bench = await start()

    received, _ = await bench.read_all(raw_post(steer(text="x" * 200_000)) + CLOSING)

    assert received.count(b"HTTP/1.1 200 OK") == 2


async def test_endless_head_is_431(start: Start) -> None:
    bench = await start()

    received, _ = await bench.read_all(b"GET / HTTP/1.1\r\nx-long: " + b"a" * 100_000)

    assert received.startswith(b"HTTP/1.1 431")


async def test_body_above_the_bound_is_413(start: Start) -> None:
    bench = await start(max_body_bytes=200)

    received, _ = await bench.read_all(raw_post(ask("x" * 200)))

    assert received.startswith(b"HTTP/1.1 413")


async def test_slow_reader_of_a_huge_answer_gets_all_of_it(start: Start) -> None:
    bench = await start()
    fault = {"kind": "huge_answer", "size_bytes": 8_000_000}
    head, _, body = raw_post(steer(stream=True, fault=fault)).partition(b"\r\n\r\n")
    reader, _ = await bench.open(head + b"\r\nconnection: close\r\n\r\n" + body)
    await asyncio.sleep(0.05)
    assert bench.key()["in_flight"] == 1

    received = await reader.read()

    assert received.count(b"x") >= 8_000_000
    assert received.endswith(b"0\r\n\r\n")
    assert bench.key()["completed"] == 1


async def test_close_drops_clients_in_mid_answer(start: Start) -> None:
    bench = await start()
    reader, _ = await bench.open(raw_post(steer(fault={"kind": "hang_before_headers"})))
    while not bench.key()["in_flight"]:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    await bench.sim.close()

    assert bench.sim.connection_count == 0
    assert await reader.read() == b""
