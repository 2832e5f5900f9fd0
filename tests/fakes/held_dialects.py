"""Streams of every dialect that stop in the middle, and answers that are cut in other pieces."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
from aiohttp import web

from tests.fakes.every_dialect import VOICES, EveryDialect, halves, what_to_say

Document = dict[str, Any]


class HeldDialects(EveryDialect):
    """A running upstream; see `EveryDialect`.

    Attributes:
        hold_after: frames of the next stream after which it waits, and is broken off then; None
            for one that does not.
        go: breaks it off.
        held: how many wait now.
        instead: what later answers say; None for the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hold_after: int | None = None
        self.go = asyncio.Event()
        self.held = 0
        self.instead: str | None = None

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        dialect, path = request.match_info["dialect"], request.match_info["path"]
        if self.hold_after is None and self.instead is None:
            return await super()._serve(request)
        raw = await request.read()
        self.asked[dialect] += 1
        body = msgspec.json.decode(raw)
        model = path.rpartition("/")[2].partition(":")[0] if dialect == "gemini" else body["model"]
        said = what_to_say(model, raw) if self.hold_after is not None else self.instead
        frames = VOICES[dialect].frames(said)
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        if self.hold_after is None:
            await stream.write(b"".join(frames))
            return stream
        told = finer(dialect, frames)[: self.hold_after]
        self.hold_after = None
        await stream.write(b"".join(told))
        self.held += 1
        await self.go.wait()
        self.held -= 1
        raise ConnectionResetError


def finer(dialect: str, frames: list[bytes]) -> list[bytes]:
    """The same stream with words and arguments in more pieces."""
    told: list[bytes] = []
    for frame in frames:
        head, mark, payload = frame.partition(b"data: ")
        if payload.strip() == b"[DONE]":
            told.append(frame)
            continue
        told += [
            head + mark + msgspec.json.encode(document) + b"\n\n"
            for document in in_two(dialect, msgspec.json.decode(payload))
        ]
    return told


def in_two(dialect: str, document: Document) -> Iterator[Document]:
    """One frame as two, if it says words."""
    place, name = words_of(dialect, document)
    whole = None if place is None else place.get(name)
    if place is None or not isinstance(whole, str) or len(whole) < 2:
        yield document
        return
    for piece in halves(whole):
        place[name] = piece
        yield document
        if name == "arguments" and "name" in place:  # a call is named once
            del place["name"]
            document["choices"][0]["delta"]["tool_calls"][0].pop("id")


def words_of(dialect: str, document: Document) -> tuple[Document | None, str]:
    """The object of a frame that holds words, and the name of the member."""
    if dialect == "openai":
        for choice in document["choices"]:
            if "tool_calls" in choice["delta"]:
                return choice["delta"]["tool_calls"][0]["function"], "arguments"
            return choice["delta"], "content"
    if dialect == "anthropic":
        delta = document.get("delta") or {}
        return delta, "text" if "text" in delta else "partial_json"
    if dialect == "openai-responses":
        return document, "delta"
    for candidate in document.get("candidates") or ():
        return candidate["content"]["parts"][0], "text"
    return None, ""
