import asyncio
from collections.abc import Awaitable, Callable

from tests.simulator.bench_client import Bench, ask, raw_post, steer

Start = Callable[..., Awaitable[Bench]]


async def test_request_above_the_limit_is_429_with_a_true_retry_time(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "rpm": 2}})
    await bench.chat(ask())
    bench.clock.now_s += 10
    await bench.chat(ask())
    bench.clock.now_s += 39.5

    response = await bench.chat(ask())

    assert response.status_code == 429
    assert response.headers["retry-after"] == "11"
    assert response.headers["retry-after-ms"] == "10500"
    assert response.json()["error"]["type"] == "requests"
    assert response.json()["error"]["code"] == "rate_limit_exceeded"
    assert "RPM" in response.json()["error"]["message"]
    bench.clock.now_s += 10.5
    assert (await bench.chat(ask())).status_code == 200
    assert bench.key()["violations"]["rpm"] == 1


async def test_rate_headers_tell_the_standing_after_this_request(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "rpm": 10, "tpm": 1000}})
    await bench.chat(ask("x" * 40, max_tokens=6))
    bench.clock.now_s += 1.5

    headers = (await bench.chat(ask("x" * 40, max_tokens=6))).headers

    assert headers["x-ratelimit-limit-requests"] == "10"
    assert headers["x-ratelimit-remaining-requests"] == "8"
    assert headers["x-ratelimit-reset-requests"] == "1m0s"
    assert headers["x-ratelimit-remaining-tokens"] == str(1000 - 16 - 10)


async def test_tokens_of_the_last_minute_close_the_key(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "tpm": 20}})
    await bench.chat(ask("x" * 40, max_tokens=10))

    response = await bench.chat(ask("x"))

    assert response.status_code == 429
    assert response.json()["error"]["type"] == "tokens"
    assert bench.key()["violations"]["tpm"] == 1
    assert bench.key()["peak_tokens_60s"] == 20


async def test_counting_provider_lets_pass_and_counts(start: Start) -> None:
    bench = await start(enforce=False, keys={"k": {"label": "a", "rpm": 1}})

    statuses = [(await bench.chat(ask())).status_code for _ in range(3)]

    assert statuses == [200, 200, 200]
    assert bench.key()["violations"]["rpm"] == 2
    assert bench.key()["peak_requests_60s"] == 3


async def test_keys_do_not_share_limits(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "rpm": 1}}, any_key=True)
    await bench.chat(ask())

    assert (await bench.chat(ask())).status_code == 429
    assert (await bench.chat(ask(), key="other")).status_code == 200


async def test_concurrency_counts_streams_that_are_still_running(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "concurrency": 1}})
    fault = {"kind": "hang_mid_stream", "at_frame": 2}
    reader, writer = await bench.open(raw_post(steer(stream=True, fault=fault)))
    await reader.readuntil(b"\r\n\r\n")

    response = await bench.chat(ask())

    assert response.status_code == 429
    assert bench.key()["violations"]["concurrency"] == 1
    writer.close()
    await bench.settled()
    assert (await bench.chat(ask())).status_code == 200
    assert bench.key()["max_in_flight"] == 1


async def test_client_that_left_just_before_is_not_counted(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "concurrency": 1}})
    held = raw_post(steer(fault={"kind": "hang_before_headers"}))
    for _ in range(20):
        _, writer = await bench.open(held)
        while not bench.key()["in_flight"]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        second_reader, second_writer = await bench.open(b"")
        await asyncio.sleep(0.001)
        writer.transport.abort()
        second_writer.write(raw_post(ask()))
        head = await second_reader.readuntil(b"\r\n")
        assert b"200" in head
        await bench.settled()

    assert bench.key()["violations"]["concurrency"] == 0


async def test_client_that_leaves_is_counted_as_aborted_with_the_tokens_it_got(
    start: Start,
) -> None:
    bench = await start()
    fault = {"kind": "hang_mid_stream", "at_frame": 4}
    request = steer(stream=True, fault=fault, id="x")
    reader, writer = await bench.open(raw_post(request))
    await reader.readuntil(b"\r\n\r\n")
    while bench.key()["completion_tokens"] < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    writer.transport.abort()

    stats = await bench.settled()
    story = stats["requests"]["x"]
    assert stats["keys"]["a"]["aborted"] == 1
    assert story["outcomes"] == ["aborted"]
    assert story["tokens"] == stats["keys"]["a"]["prompt_tokens"] + 3


async def test_client_that_half_closes_counts_as_gone(start: Start) -> None:
    bench = await start()
    _, writer = await bench.open(raw_post(steer(fault={"kind": "hang_before_headers"})))
    while not bench.sim.stats()["totals"]["in_flight"]:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    writer.write_eof()

    assert (await bench.settled())["keys"]["a"]["aborted"] == 1
    writer.close()


async def test_stats_follow_an_id_over_http_and_can_be_reset(start: Start) -> None:
    bench = await start()
    await bench.chat(steer(id="x"))
    await bench.chat(steer(id="x"))

    whole = (await bench.http.get("/stats")).json()
    one = (await bench.http.get("/stats/requests/x")).json()

    assert whole["name"] == "sim"
    assert whole["totals"]["completed"] == 2
    assert one == whole["requests"]["x"]
    assert one["outcomes"] == ["completed", "completed"]
    await bench.http.delete("/stats")
    assert (await bench.http.get("/stats")).json()["totals"]["completed"] == 0
    assert (await bench.http.get("/stats/requests/x")).status_code == 404


async def test_images_of_an_id_are_counted(start: Start) -> None:
    bench = await start()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    text = {"type": "text", "text": '[[sim {"id": "x"}]]'}
    request = {"model": "sim-small", "messages": [{"role": "user", "content": [text, image]}]}

    await bench.chat(request)

    assert bench.sim.stats()["requests"]["x"]["images"] == 1
