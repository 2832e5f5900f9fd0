"""Answers in the wire format of OpenAI's Responses API, buffered and streamed."""

from collections.abc import Iterator
from typing import Any

import msgspec

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 18,
}


def message(*parts: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """A message of the model."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": list(parts),
    }


def text(said: str) -> dict[str, Any]:
    """A part of text."""
    return {"type": "output_text", "text": said, "annotations": [], "logprobs": []}


def refusal(said: str) -> dict[str, Any]:
    """A part that says that the model will not."""
    return {"type": "refusal", "refusal": said}


def thought(*summaries: str, encrypted: str | None = None, number: int = 0) -> dict[str, Any]:
    """A thought."""
    return {
        "id": f"rs_{number}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": one} for one in summaries],
        "encrypted_content": encrypted,
    }


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call of a function."""
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def response(
    *output: dict[str, Any], cut: str | None = None, error: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A whole answer.

    Args:
        output: its items.
        cut: why it is incomplete.
        error: why it failed.
    """
    status = "failed" if error else "incomplete" if cut else "completed"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": error,
        "incomplete_details": {"reason": cut} if cut else None,
        "model": "up",
        "output": list(output),
        "usage": None if error else USAGE,
    }


def events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer, without numbers."""
    open_answer = {**answer, "status": "in_progress", "output": [], "usage": None, "error": None}
    yield {"type": "response.created", "response": open_answer}
    yield {"type": "response.in_progress", "response": open_answer}
    for place, item in enumerate(answer["output"]):
        yield from item_events(item, place)
    yield {"type": f"response.{answer['status']}", "response": answer}


def item_events(item: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """The events of one item."""
    where = {"item_id": item["id"], "output_index": place}
    opened = {**item, "status": "in_progress"}
    if item["type"] == "message":
        yield added({**opened, "content": []}, place)
        for number, part in enumerate(item["content"]):
            yield from part_events(part, {**where, "content_index": number})
    elif item["type"] == "reasoning":
        yield added({**opened, "summary": [], "encrypted_content": None}, place)
        for number, part in enumerate(item["summary"]):
            yield from summary_events(part, {**where, "summary_index": number})
    elif item["type"] == "function_call":
        yield added({**opened, "arguments": ""}, place)
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        yield {
            "type": "response.function_call_arguments.done",
            **where,
            "arguments": item["arguments"],
        }
    else:
        yield added(opened, place)
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def added(item: dict[str, Any], place: int) -> dict[str, Any]:
    """The event that opens an item."""
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def part_events(part: dict[str, Any], where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of one part of a message."""
    kind, member = ("output_text", "text") if part["type"] == "output_text" else ("refusal",) * 2
    yield {"type": "response.content_part.added", **where, "part": {**part, member: ""}}
    for piece in pieces(part[member]):
        yield {"type": f"response.{kind}.delta", **where, "delta": piece}
    yield {"type": f"response.{kind}.done", **where, member: part[member]}
    yield {"type": "response.content_part.done", **where, "part": part}


def summary_events(part: dict[str, Any], where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of one part of a thought's summary."""
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{kind}_text.delta", **where, "delta": piece}
    yield {"type": f"{kind}_text.done", **where, "text": part["text"]}
    yield {"type": f"{kind}_part.done", **where, "part": part}


def pieces(whole: str) -> list[str]:
    """A text in pieces of four characters."""
    return [whole[place : place + 4] for place in range(0, len(whole), 4)]


def frames(answer: dict[str, Any]) -> list[bytes]:
    """The frames of a streamed answer."""
    return [
        frame({"sequence_number": number, **event}) for number, event in enumerate(events(answer))
    ]


def frame(event: dict[str, Any]) -> bytes:
    """One frame."""
    name, data = str(event["type"]), msgspec.json.encode(event)
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
