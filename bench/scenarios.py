"""The loads: what is sent, how fast, to which port of the mock."""

from typing import NamedTuple

import msgspec


class Scenario(NamedTuple):
    """One load.

    Attributes:
        upstream: port of the mock, as text; the gateway finds it by the combo `c<port>`.
        prompt_bytes: size of the user message.
        rate: requests a second in an open loop; None is a closed loop.
        chunks: events of one answer, 0 for a JSON answer.
        seconds: length of the measured part of one round.
        is_limited: asked by a client that has limits of its own.
        is_cached: the gateway asks its response cache; a target without one answers as ever.
        is_new: each request is another one, which no cache knows.
    """

    name: str
    upstream: str
    prompt_bytes: int = 900
    conns: int = 64
    rate: int | None = None
    chunks: int = 0
    seconds: float = 4.0
    is_quick: bool = False
    is_limited: bool = False
    is_cached: bool = False
    is_new: bool = False


SCENARIOS = (
    Scenario("json 1 KB", "19100", seconds=3.0, is_quick=True),
    Scenario("json 30 KB", "19100", prompt_bytes=30_000, seconds=2.0, is_quick=True),
    Scenario("sse 64 streams", "19101", chunks=50, is_quick=True),
    Scenario("json 1 KB, client limits", "19100", seconds=3.0, is_limited=True),
    Scenario("json 1 KB, 1 conn", "19100", conns=1),
    Scenario("json 1 KB, 256 conns", "19100", conns=256),
    Scenario("50 ms, 200 rps", "19150", rate=200, conns=1024),
    Scenario("0 ms, 1000 rps", "19100", rate=1000, conns=1024),
    Scenario("0 ms, 2000 rps", "19100", rate=2000, conns=1024),
    Scenario("sse 100 starts/s", "19101", rate=100, chunks=50, conns=1024),
    Scenario("misses, 0 ms", "19100", seconds=3.0, is_cached=True, is_new=True),
    Scenario("misses, 50 ms", "19150", seconds=3.0, is_cached=True, is_new=True),
    Scenario("hits, 0 ms", "19100", seconds=3.0, is_cached=True),
    Scenario("hits, 50 ms", "19150", seconds=3.0, is_cached=True),
    Scenario("hits, sse", "19101", chunks=50, is_cached=True),
    Scenario("1 s, 1000 in flight", "19199", rate=1000, conns=4096, seconds=3.0),
)


NEW = "Answer @@@@@@@@@@."  # a number that the load generator puts there


def body_of(scenario: Scenario) -> bytes:
    """The request: the same bytes for every target."""
    request: dict[str, object] = {
        "model": f"c{scenario.upstream}",
        "messages": [
            {"role": "system", "content": NEW if scenario.is_new else "Answer in one sentence."},
            {"role": "user", "content": ("the quick brown fox " * 2000)[: scenario.prompt_bytes]},
        ],
        "max_tokens": 100,
    }
    if scenario.chunks:
        request["stream"] = True
        request["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(request)
