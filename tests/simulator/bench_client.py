"""A client of one running simulator that sees answers as they are, down to the bytes."""

import asyncio
from contextlib import suppress
from typing import Any

import httpx
import msgspec

from cluster_gw.simulator.server import RunningSimulator


class SteppedClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def ask(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A chat request with one user message."""
    message = {"role": "user", "content": text}
    return {"model": "sim-small", "messages": [message], **fields}


def steer(*, stream: bool = False, model: str = "sim-small", **directive: Any) -> dict[str, Any]:
    """A chat request that carries a directive."""
    text = f"please [[sim {msgspec.json.encode(directive).decode()}]] thanks"
    return ask(text, stream=stream, model=model)


def raw_post(document: Any, *, key: str = "k", path: str = "/v1/chat/completions") -> bytes:
    """The bytes of a POST with this JSON body."""
    body = msgspec.json.encode(document)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: sim\r\nauthorization: Bearer {key}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Bench:
    """One simulator and clients for it."""

    def __init__(self, sim: RunningSimulator, http: httpx.AsyncClient, clock: SteppedClock) -> None:
        self.sim = sim
        self.http = http
        self.clock = clock
        self._writers: list[asyncio.StreamWriter] = []

    async def chat(self, document: Any, key: str = "k") -> httpx.Response:
        """Post a chat request and read the whole answer."""
        headers = {"authorization": f"Bearer {key}"}
        return await self.http.post("/v1/chat/completions", json=document, headers=headers)

    async def events(self, document: Any) -> list[Any]:
        """The documents of a streamed answer; `[DONE]` as text."""
        response = await self.chat({**document, "stream": True})
        assert response.status_code == 200, response.text
        return parse_events(response.text)

    async def open(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send raw bytes over a connection of their own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.sim.port)
        self._writers.append(writer)
        writer.write(request)
        return reader, writer

    async def close(self) -> None:
        """Drop the raw connections."""
        for writer in self._writers:
            writer.close()
        for writer in self._writers:
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def read_all(self, request: bytes) -> tuple[bytes, str]:
        """All bytes that come back until the end, and how it ended: `fin` or `rst`."""
        reader, _ = await self.open(request)
        received, ending = b"", "fin"
        try:
            while piece := await reader.read(65_536):
                received += piece
        except ConnectionResetError:
            ending = "rst"
        return received, ending

    async def settled(self) -> dict[str, Any]:
        """Statistics once nothing is in flight any more."""
        async with asyncio.timeout(5):
            while self.sim.stats()["totals"]["in_flight"]:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        return self.sim.stats()

    def key(self, label: str = "a") -> dict[str, Any]:
        """The book of one key."""
        book: dict[str, Any] = self.sim.stats()["keys"][label]
        return book


def parse_events(text: str) -> list[Any]:
    """The documents of an event stream."""
    payloads = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [item if item == "[DONE]" else msgspec.json.decode(item) for item in payloads]


def said(events: list[Any], index: int = 0) -> str:
    """The text of one choice of a stream."""
    chunks = [choice for event in events if event != "[DONE]" for choice in event["choices"]]
    return "".join(c["delta"].get("content") or "" for c in chunks if c["index"] == index)
