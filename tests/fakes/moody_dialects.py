"""One upstream of all dialects that says something else each time, and often breaks."""

import asyncio
from random import Random
from typing import Final

import msgspec
from aiohttp import web

from tests.fakes.every_dialect import VOICES, EveryDialect
from tests.fakes.held_dialects import finer

BROKEN: Final = 0.15
FAILED: Final = 0.05
LONGEST_S: Final = 0.01  # between two frames
WORDS: Final = " ".join(f"w{number}" for number in range(8))


class MoodyDialects(EveryDialect):
    """A running upstream; see `EveryDialect`.

    Args:
        seed: of its moods.
        is_constant: it says the same each time, in other pieces.

    Attributes:
        texts: all that it has said.
    """

    def __init__(self, seed: int, *, is_constant: bool) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self._random = Random(seed)
        self._is_constant = is_constant

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        dialect, path = request.match_info["dialect"], request.match_info["path"]
        body = msgspec.json.decode(await request.read())
        self.asked[dialect] += 1
        draw, voice = self._random.random, VOICES[dialect]
        if draw() < FAILED:
            return web.json_response(voice.refusal, status=500)
        number = "" if self._is_constant else str(sum(self.asked.values()))
        text = f"call{number} {WORDS}"
        self.texts.add(text)
        if not (body.get("stream") or "streamGenerateContent" in path):
            await asyncio.sleep(draw() * 5 * LONGEST_S)
            if draw() < BROKEN:
                raise ConnectionResetError
            return web.json_response(voice.answer(text))
        frames = finer(dialect, voice.frames(text))
        frames = finer(dialect, frames) if draw() < 1 / 2 else frames
        ends_at = self._random.randrange(len(frames)) if draw() < BROKEN else len(frames)
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        for frame in frames[:ends_at]:
            await stream.write(frame)
            await asyncio.sleep(draw() * LONGEST_S)
        if ends_at < len(frames):
            raise ConnectionResetError
        return stream
