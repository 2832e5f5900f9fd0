import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import brotli  # type: ignore[import-untyped]  # the package ships no types
import msgspec
import pytest
import zstandard

from tests.simulator.bench_client import Bench, ask, parse_events, raw_post, said, steer

Start = Callable[..., Awaitable[Bench]]


async def test_status_carries_body_headers_and_retry_time(start: Start) -> None:
    bench = await start()
    fault = {
        "kind": "status",
        "code": 529,
        "body": {"error": "overloaded"},
        "headers": {"x-extra": "1"},
        "retry_after": 2.5,
    }

    response = await bench.chat(steer(fault=fault, id="x"))

    assert response.status_code == 529
    assert response.json() == {"error": "overloaded"}
    assert (response.headers["x-extra"], response.headers["retry-after"]) == ("1", "2.5")
    story = bench.sim.stats()["requests"]["x"]
    assert (story["outcomes"], story["tokens"]) == (["status_529"], 0)


async def test_status_without_a_body_has_an_error_of_the_provider_s_shape(start: Start) -> None:
    bench = await start()

    response = await bench.chat(ask(model="fault-status-503"))

    assert response.status_code == 503
    assert response.json()["error"]["type"] == "server_error"


async def test_text_body_of_a_status_is_sent_as_text(start: Start) -> None:
    bench = await start()

    response = await bench.chat(steer(fault={"kind": "status", "code": 502, "body": "bad gateway"}))

    assert response.headers["content-type"].startswith("text/plain")
    assert response.text == "bad gateway"


async def test_redirect_points_elsewhere(start: Start) -> None:
    bench = await start()

    response = await bench.chat(steer(fault={"kind": "redirect", "location": "http://x/"}))

    assert (response.status_code, response.headers["location"]) == (307, "http://x/")


async def test_hang_before_headers_can_end_in_silence_or_late(start: Start) -> None:
    bench = await start()
    hang = {"kind": "hang_before_headers", "max_s": 0.01}

    silent, ending = await bench.read_all(raw_post(steer(fault=hang, id="x")))
    late = await bench.chat(steer(fault={**hang, "then": "answer"}))

    assert (silent, ending) == (b"", "fin")
    story = bench.sim.stats()["requests"]["x"]
    assert (story["outcomes"], story["tokens"]) == (["hung"], 0)
    assert late.status_code == 200


@pytest.mark.parametrize("place", [{"at_byte": 100}, {"at_frame": 2}, {}])
@pytest.mark.parametrize("stream", [True, False])
async def test_hang_mid_stream_sends_a_part_and_holds(
    start: Start, place: dict[str, int], stream: bool
) -> None:
    bench = await start()
    fault = {"kind": "hang_mid_stream", "max_s": 0.01, **place}

    received, ending = await bench.read_all(raw_post(steer(stream=stream, fault=fault)))

    body = received.partition(b"\r\n\r\n")[2]
    assert ending == "fin"
    assert body
    assert not body.endswith(b"0\r\n\r\n")
    assert bench.key()["failed"] == 1


async def test_hang_mid_stream_can_go_on(start: Start) -> None:
    bench = await start()
    fault = {"kind": "hang_mid_stream", "at_byte": 333, "max_s": 0.01, "then": "answer"}

    events = await bench.events(steer(text="all of it", fault=fault))

    assert said(events) == "all of it"
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize("mode", ["fin", "rst"])
@pytest.mark.parametrize("at_byte", [0, 1, 57, 1000])
async def test_cut_in_the_body_lets_exactly_n_bytes_through(
    start: Start, at_byte: int, mode: str
) -> None:
    bench = await start()
    fault = {"kind": "cut", "at_byte": at_byte, "mode": mode}
    request = steer(fault=fault, tokens=400, id="x")

    received, ending = await bench.read_all(raw_post(request))

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert (len(body), ending) == (at_byte, mode)
    assert bench.sim.stats()["requests"]["x"]["outcomes"] == ["cut"]


@pytest.mark.parametrize("mode", ["fin", "rst"])
@pytest.mark.parametrize("at_byte", [0, 10, 300])
async def test_cut_of_the_response_counts_its_head(start: Start, at_byte: int, mode: str) -> None:
    bench = await start()
    fault = {"kind": "cut", "at_byte": at_byte, "scope": "response", "mode": mode}

    received, ending = await bench.read_all(raw_post(steer(stream=True, fault=fault)))

    assert (len(received), ending) == (at_byte, mode)
    assert bench.key()["failed"] == 1


async def test_cut_stream_charges_only_whole_frames(start: Start) -> None:
    bench = await start()
    whole = (await bench.chat(steer(stream=True, text="a b c d"))).content
    frames = whole.split(b"\n\n")
    at_byte = len(b"\n\n".join(frames[:3])) + 2 + 10  # role, two pieces, ten bytes of the third

    fault = {"kind": "cut", "at_byte": at_byte}
    await bench.read_all(raw_post(steer(stream=True, text="a b c d", fault=fault, id="x")))

    book = bench.key()
    assert book["completion_tokens"] == 4 + 2


@pytest.mark.parametrize("mode", ["fin", "rst"])
async def test_close_without_reply_sends_nothing(start: Start, mode: str) -> None:
    bench = await start()
    fault = {"kind": "close_without_reply", "mode": mode}

    received = await bench.read_all(raw_post(steer(fault=fault, id="x")))

    assert received == (b"", mode)
    assert bench.sim.stats()["requests"]["x"]["tokens"] == 0


async def test_raw_reply_is_not_http(start: Start) -> None:
    bench = await start()

    received = await bench.read_all(raw_post(steer(fault={"kind": "raw_reply", "data": "\xffno"})))

    assert received == (b"\xffno", "fin")


async def test_blank_chunks_come_before_the_text(start: Start) -> None:
    bench = await start()
    fault = {"kind": "blank_chunks", "count": 3, "content": " "}

    events = await bench.events(steer(text="yes", fault=fault))

    assert said(events) == "   yes"
    assert len(events) == 7


async def test_blank_chunks_alone_leave_no_text(start: Start) -> None:
    bench = await start()
    fault = {"kind": "blank_chunks", "count": 2, "only": True}

    events = await bench.events(steer(text="yes", fault=fault))
    buffered = (await bench.chat(steer(text="yes", fault={**fault, "content": "\n"}))).json()

    assert said(events) == ""
    assert buffered["choices"][0]["message"]["content"] == "\n\n"
    assert buffered["usage"]["completion_tokens"] == 0


async def test_role_only_finishes_without_text(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(fault={"kind": "role_only"}))
    buffered = (await bench.chat(steer(fault={"kind": "role_only"}))).json()

    assert [set(event["choices"][0]["delta"]) for event in events[:-1]] == [
        {"role", "content", "refusal"},
        set(),
    ]
    assert buffered["choices"][0]["message"]["content"] is None


async def test_reasoning_only_says_all_in_thoughts(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(text="a b", fault={"kind": "reasoning_only"}))

    thoughts = [e["choices"][0]["delta"].get("reasoning_content", "") for e in events[:-1]]
    assert said(events) == ""
    assert "".join(thoughts) == "a b"


async def test_malformed_json_breaks_one_frame_or_the_body(start: Start) -> None:
    bench = await start()
    fault = {"kind": "malformed_json", "at_frame": 1}

    streamed = (await bench.chat(steer(stream=True, fault=fault))).text.split("\n\n")
    buffered = (await bench.chat(steer(fault=fault))).content
    payload = (await bench.chat(steer(fault={**fault, "payload": "nope"}))).text

    msgspec.json.decode(streamed[0].removeprefix("data: "))
    msgspec.json.decode(streamed[2].removeprefix("data: "))
    for broken in (streamed[1].removeprefix("data: "), buffered, payload):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(broken)


async def test_wrong_content_type_is_a_page_or_the_truth_under_a_false_name(start: Start) -> None:
    bench = await start()
    fault: dict[str, Any] = {"kind": "wrong_content_type"}

    page = await bench.chat(steer(stream=True, fault=fault, id="x"))
    truth = await bench.chat(steer(text="ok", fault={**fault, "body": None}))

    assert page.status_code == 200
    assert page.headers["content-type"] == truth.headers["content-type"] == "text/html"
    assert page.text.startswith("<html>")
    assert truth.json()["choices"][0]["message"]["content"] == "ok"
    assert bench.sim.stats()["requests"]["x"]["tokens"] == 0


async def test_missing_usage_is_charged_all_the_same(start: Start) -> None:
    bench = await start()
    fault = {"kind": "missing_usage"}
    options = {"include_usage": True}

    events = await bench.events({**steer(fault=fault), "stream_options": options})
    buffered = (await bench.chat(steer(fault=fault))).json()

    assert all("usage" not in event for event in events[:-1])
    assert "usage" not in buffered
    assert bench.key()["completion_tokens"] == 32


async def test_slow_drip_sends_small_slices(start: Start) -> None:
    bench = await start()
    fault = {"kind": "slow_drip", "bytes_per_chunk": 100, "delay_ms": 1}

    async with bench.http.stream(
        "POST",
        "/v1/chat/completions",
        json=steer(stream=True, text="a b", fault=fault),
        headers={"authorization": "Bearer k"},
    ) as response:
        slices = [piece async for piece in response.aiter_raw()]

    assert max(map(len, slices)) <= 100
    assert said(parse_events(b"".join(slices).decode())) == "a b"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("stream", [True, False])
async def test_encoded_body_can_be_read_piece_by_piece(
    start: Start, encoding: str, stream: bool
) -> None:
    bench = await start()
    fault = {"kind": "encoded", "encoding": encoding}
    decoders: dict[str, Callable[[], Callable[[bytes], bytes]]] = {
        "gzip": lambda: zlib.decompressobj(wbits=31).decompress,
        "deflate": lambda: zlib.decompressobj().decompress,
        "br": lambda: brotli.Decompressor().process,
        "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
    }
    decode = decoders[encoding]()

    async with bench.http.stream(
        "POST",
        "/v1/chat/completions",
        json=steer(stream=stream, text="größe 🌊", fault=fault),
        headers={"authorization": "Bearer k"},
    ) as response:
        encoded = b"".join([piece async for piece in response.aiter_raw()])
    text = b"".join(decode(encoded[at : at + 1]) for at in range(len(encoded))).decode()

    assert response.headers["content-encoding"] == encoding
    assert "größe" in text
    assert stream or msgspec.json.decode(text)["usage"]


async def test_in_band_error_ends_a_stream_as_told(start: Start) -> None:
    bench = await start()
    fault = {"kind": "in_band_error", "at_frame": 2, "error": {"message": "m", "code": "c"}}

    ended = await bench.events(steer(text="a b c", fault=fault))
    done = await bench.events(steer(text="a b c", fault={**fault, "then": "done"}))
    going = await bench.events(steer(text="a b c", fault={**fault, "then": "continue"}))

    assert ended[2] == {"error": {"message": "m", "code": "c"}}
    assert (len(ended), len(done), len(going)) == (3, 4, 7)
    assert done[-1] == "[DONE]"


async def test_in_band_error_of_a_buffered_answer_is_its_body(start: Start) -> None:
    bench = await start()

    response = await bench.chat(steer(fault={"kind": "in_band_error"}, id="x"))

    assert response.status_code == 200
    assert response.json()["error"]["type"] == "server_error"
    assert bench.sim.stats()["requests"]["x"]["tokens"] == 0


async def test_no_done_ends_cleanly_without_it(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(text="a", fault={"kind": "no_done"}))

    assert events[-1]["choices"][0]["finish_reason"] == "stop"


async def test_no_finish_leaves_the_reason_out(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(text="a", fault={"kind": "no_finish"}))
    buffered = (await bench.chat(steer(text="a", fault={"kind": "no_finish"}))).json()

    assert all(event["choices"][0]["finish_reason"] is None for event in events[:-1])
    assert buffered["choices"][0]["finish_reason"] is None


async def test_huge_answer_has_its_size(start: Start) -> None:
    bench = await start()
    fault = {"kind": "huge_answer", "size_bytes": 1_000_001}

    buffered = (await bench.chat(steer(fault=fault))).json()
    events = await bench.events(steer(fault=fault))

    assert len(buffered["choices"][0]["message"]["content"]) == 1_000_001
    assert len(said(events)) == 1_000_001


async def test_duplicate_frame_is_sent_twice(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(text="a b", fault={"kind": "duplicate_frame", "at_frame": 2}))

    assert said(events) == "a b b"


async def test_faults_combine(start: Start) -> None:
    bench = await start()
    faults = [{"kind": "encoded"}, {"kind": "no_done"}, {"kind": "cut", "at_byte": 50}]

    received, ending = await bench.read_all(raw_post(steer(stream=True, fault=faults)))

    assert ending == "rst"
    assert b"content-encoding: gzip" in received
    assert bench.sim.stats()["faults"]["applied"] == {"encoded": 1, "no_done": 1, "cut": 1}


async def test_directive_fault_with_times_lets_the_retry_through(start: Start) -> None:
    bench = await start()
    request = steer(id="x", fault={"kind": "status", "code": 500}, times=1)

    statuses = [(await bench.chat(request)).status_code for _ in range(3)]

    assert statuses == [500, 200, 200]
    outcomes = bench.sim.stats()["requests"]["x"]["outcomes"]
    assert outcomes == ["status_500", "completed", "completed"]


async def test_control_plane_scripts_lists_and_clears_faults(start: Start) -> None:
    bench = await start()
    rules = [
        {"match": {"key": "a"}, "fault": {"kind": "status", "code": 500}},
        {"match": {"model": "sim-large"}, "fault": {"kind": "no_done"}, "times": None},
    ]

    added = await bench.http.post("/sim/faults", json=rules)
    first = await bench.chat(ask())
    left = (await bench.http.get("/sim/faults")).json()
    await bench.http.delete("/sim/faults")

    assert added.json()["pending"] == 2
    assert first.status_code == 500
    assert [each["rule"]["fault"]["kind"] for each in left] == ["no_done"]
    assert bench.sim.stats()["faults"]["pending"] == 0


async def test_mistaken_script_is_refused(start: Start) -> None:
    bench = await start()

    response = await bench.http.post("/sim/faults", json=[{"fault": {"kind": "explode"}}])

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "sim_faults_invalid"
