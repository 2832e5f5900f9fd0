"""Writes an answer in the OpenAI dialect: one body, or the chunks of a stream."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec

from cluster_gw.simulator.answer import Answer, Choice
from cluster_gw.simulator.reply import Frame

DONE_FRAME: Final = Frame(b"data: [DONE]\n\n")
LOGPROB_STEP: Final = 0.01


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What every chunk of an answer repeats."""

    id: str
    created_s: int
    model: str
    system_fingerprint: str

    def fields(self, kind: str) -> dict[str, Any]:
        """The outer fields of a document of this kind."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created_s,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
        }


class Blank(msgspec.Struct, frozen=True, kw_only=True):
    """Deltas of `content` that come before the text, or alone."""

    count: int = 0
    content: str = ""


def buffered_body(
    envelope: Envelope, answer: Answer, *, has_usage: bool, blank: Blank | None
) -> bytes:
    """The JSON document of a whole answer."""
    document = envelope.fields("chat.completion")
    document["choices"] = [
        {
            "index": index,
            "message": _message(choice, answer.reasoning_field, blank),
            "logprobs": _logprobs(choice.pieces, answer),
            "finish_reason": choice.finish_reason,
        }
        for index, choice in enumerate(answer.choices)
    ]
    if has_usage:
        document["usage"] = answer.usage()
    return msgspec.json.encode(document)


def stream_frames(
    envelope: Envelope, answer: Answer, *, has_usage: bool, blank: Blank | None
) -> list[Frame]:
    """All events of a streamed answer, `[DONE]` last; choices take turns."""
    outer = envelope.fields("chat.completion.chunk")
    if has_usage:
        outer["usage"] = None
    runs = [
        list(_choice_chunks(index, choice, answer, blank))
        for index, choice in enumerate(answer.choices)
    ]
    frames = [
        event_frame({**outer, "choices": [chunk]}, tokens)
        for turn in zip_longest(*runs)
        for chunk, tokens in (each for each in turn if each is not None)
    ]
    if has_usage:
        frames.append(event_frame({**outer, "choices": [], "usage": answer.usage()}, 0))
    frames.append(DONE_FRAME)
    return frames


def event_frame(document: dict[str, Any], tokens: int = 0) -> Frame:
    """One server-sent event that carries this document."""
    return Frame(b"data: " + msgspec.json.encode(document) + b"\n\n", tokens)


def _message(choice: Choice, reasoning_field: str, blank: Blank | None) -> dict[str, Any]:
    text: str | None = "".join(choice.pieces)
    if not text:
        text = blank.content * blank.count if blank is not None else None
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if choice.reasoning:
        message[reasoning_field] = "".join(choice.reasoning)
    if choice.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": "".join(call.fragments)},
            }
            for call in choice.tool_calls
        ]
    return message


def _choice_chunks(
    index: int, choice: Choice, answer: Answer, blank: Blank | None
) -> Iterator[tuple[dict[str, Any], int]]:
    """The chunks of one choice with the tokens each carries."""
    start = {"role": "assistant", "content": "", "refusal": None}
    yield _chunk(index, start), 0
    for _ in range(0 if blank is None else blank.count):
        yield _chunk(index, {"content": "" if blank is None else blank.content}), 0
    for thought in choice.reasoning:
        yield _chunk(index, {answer.reasoning_field: thought}), 1
    for position, piece in enumerate(choice.pieces):
        logprobs = _logprobs((piece,), answer, position)
        yield _chunk(index, {"content": piece}, logprobs=logprobs), 1
    for delta in _call_deltas(choice):
        yield _chunk(index, {"tool_calls": [delta]}), 1
    if choice.finish_reason is not None:
        yield _chunk(index, {}, finish_reason=choice.finish_reason), 0


def _chunk(
    index: int,
    delta: dict[str, Any],
    *,
    logprobs: dict[str, Any] | None = None,
    finish_reason: str | None = None,
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}


def _call_deltas(choice: Choice) -> Iterator[dict[str, Any]]:
    """Heads of all calls, then their arguments in turns: parallel calls really interleave."""
    for index, call in enumerate(choice.tool_calls):
        function = {"name": call.name, "arguments": ""}
        yield {"index": index, "id": call.id, "type": "function", "function": function}
    for turn in zip_longest(*(call.fragments for call in choice.tool_calls)):
        for index, fragment in enumerate(turn):
            if fragment is not None:
                yield {"index": index, "function": {"arguments": fragment}}


def _logprobs(pieces: Sequence[str], answer: Answer, first: int = 0) -> dict[str, Any] | None:
    """Falling log probabilities; the alternatives are the piece itself, less and less likely."""
    if not answer.has_logprobs:
        return None
    content = []
    for position, piece in enumerate(pieces, start=first):
        entry = {"token": piece, "bytes": list(piece.encode())}
        logprob = -LOGPROB_STEP * (position + 1)
        others = [{**entry, "logprob": logprob - rank} for rank in range(answer.top_logprobs)]
        content.append({**entry, "logprob": logprob, "top_logprobs": others})
    return {"content": content, "refusal": None}
