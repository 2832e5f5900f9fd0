"""An upstream that speaks the Responses API and answers as the last text tells it to."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from tests.fakes import responses_frames as wire
from tests.fakes.listener import Listener

CALLS: Final = (
    wire.call("call_one", "weather", '{"city":"Oslo","days":1}'),
    wire.call("call_two", "weather", '{"city":"Rome","days":2}'),
)
STORY: Final = "It was a dark and stormy night; the rain fell in torrents."
PROOF: Final = "gAAAAproof"

ANSWERS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "say": lambda: wire.response(wire.message(wire.text(STORY))),
    "call": lambda: wire.response(*CALLS),
    "think": lambda: wire.response(
        wire.thought("First this.", "Then that.", encrypted=PROOF), wire.message(wire.text(STORY))
    ),
    "refuse": lambda: wire.response(wire.message(wire.refusal("I will not."))),
    "cut": lambda: wire.response(wire.message(wire.text(STORY)), cut="max_output_tokens"),
    "filter": lambda: wire.response(wire.message(wire.text(STORY)), cut="content_filter"),
    "place": lambda: wire.response(wire.message(wire.text('{"city":"Oslo","days":3}'))),
    "search": lambda: wire.response(
        *({"id": f"ws_{n}", "type": "web_search_call", "status": "completed"} for n in range(4)),
        wire.message(wire.text(STORY)),
    ),
    "break": lambda: wire.response(
        wire.message(wire.text(STORY)), error={"code": "server_error", "message": "it broke"}
    ),
    "fail": lambda: wire.response(error={"code": "server_error", "message": "it broke"}),
}


class ResponsesUpstream(Listener):
    """A running upstream; `async with` starts and ends it.

    Attributes:
        requests: bodies it was sent, in order.
        headers: of each of them.
    """

    path = "/v1/responses"
    base_path = "/v1"

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        word = last_text(body).partition(" ")[0]
        if word.isdigit():
            fault = {"message": f"told to {word}", "type": "server_error", "code": None}
            return web.json_response({"error": fault}, status=int(word))
        if word == "gone":
            fault = {
                "message": f"Previous response with id '{body['previous_response_id']}' not found.",
                "type": "invalid_request_error",
                "param": "previous_response_id",
                "code": "previous_response_not_found",
            }
            return web.json_response({"error": fault}, status=404)
        answer = ANSWERS.get(word, ANSWERS["say"])()
        if word == "keep":
            answer |= {"id": f"resp_kept_{len(self.requests)}", "store": body.get("store", True)}
        if not body.get("stream"):
            return web.json_response(answer)
        stream = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await stream.prepare(request)
        for frame in wire.frames(answer):
            await stream.write(frame)
        await stream.write_eof()
        return stream


def last_text(body: dict[str, Any]) -> str:
    """The last text of the user."""
    given = body["input"]
    if isinstance(given, str):
        return given
    contents = [item["content"] for item in given if item.get("role") == "user"]
    last = contents[-1]
    return last if isinstance(last, str) else str(last[0]["text"])
