"""An answer of Anthropic's API in its other form; see `openai_forms.py`."""

from collections.abc import Iterator
from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any, write
from cluster_gw.wire.sse import SseFramer, encode_event

ENDS: Final = ("stop_reason", "stop_sequence")
CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
READ_APART: Final = frozenset({"type", "delta", "usage"})
"""Members of the frame that tells the end; others, as `context_management`, are the answer's."""
TEXTS: Final = (("text", "text_delta"), ("thinking", "thinking_delta"))
UNREAD: Final = (InvalidJsonError, UnexpectedShapeError, LookupError, AttributeError, TypeError)

Json = dict[str, Any]


def as_stream(body: bytes) -> bytes | None:
    """The stream of a whole answer; None where there is none."""
    try:
        document = read_any(body)
        frames = list(frames_of(document))
    except UNREAD:
        return None
    return b"".join([encode_event(one["type"].encode(), write(one)) for one in frames])


def frames_of(document: Json) -> Iterator[Json]:
    """The frames of an answer, in order."""
    head = {**document, "content": [], **dict.fromkeys(ENDS)}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(document["content"]):
        start, deltas = taken_apart(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ends = {name: document.get(name) for name in ENDS}
    yield {"type": "message_delta", "delta": ends, "usage": document.get("usage") or {}}
    yield {"type": "message_stop"}


def taken_apart(block: Json) -> tuple[Json, list[Json]]:
    """A block as it begins, and what is added; one that never grows begins whole."""
    start, deltas = dict(block), []
    for name, kind in TEXTS:
        if block["type"] == name:
            deltas.append({"type": kind, name: block[name]})
            start[name] = ""
    for one in block.get("citations") or ():
        deltas.append({"type": "citations_delta", "citation": one})
        start["citations"] = []
    if block["type"] == "thinking" and block.get("signature"):
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        start["signature"] = ""
    if block["type"] in CALLS:
        told = write(block["input"]).decode()
        deltas.append({"type": "input_json_delta", "partial_json": told})
        start["input"] = {}
    return start, deltas


def as_whole(stream: bytes) -> bytes | None:
    """The whole answer that a stream tells; None where it does not tell all of one."""
    framer = SseFramer()
    message: Json = {}
    blocks: dict[int, Json] = {}
    written: dict[int, str] = {}
    try:
        for frame in (*framer.feed(stream), *framer.flush()):
            told = read_any(frame.data)
            kind = told["type"]
            if kind == "message_start":
                message = dict(told["message"])
            elif kind == "content_block_start":
                blocks[told["index"]] = dict(told["content_block"])
            elif kind == "content_block_delta":
                grow(told["index"], told["delta"], blocks, written)
            elif kind == "message_delta":
                message |= told["delta"]
                message["usage"] = {**(message.get("usage") or {}), **(told.get("usage") or {})}
                message |= {name: one for name, one in told.items() if name not in READ_APART}
            elif kind == "message_stop":
                blocks = {at: whole_block(blocks[at], written.get(at, "")) for at in sorted(blocks)}
                return write({**message, "content": list(blocks.values())})
            elif kind not in {"ping", "content_block_stop"}:
                return None
    except UNREAD:
        return None
    return None


def whole_block(block: Json, arguments: str) -> Json:
    """A block with the arguments of its call; where none came they came with its beginning."""
    return {**block, "input": read_any(arguments.encode())} if arguments else block


def grow(index: int, delta: Json, blocks: dict[int, Json], written: dict[int, str]) -> None:
    """Add to a block what a frame says of it.

    Raises:
        LookupError: nobody here knows what that is.
    """
    block, kind = blocks[index], delta["type"]
    if kind == "input_json_delta":
        written[index] = written.get(index, "") + delta["partial_json"]
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
    elif kind == "signature_delta":
        block["signature"] = delta["signature"]
    else:
        name = {told: name for name, told in TEXTS}[kind]
        block[name] += delta[name]


def trimmed(frame: bytes, event: StreamEvent) -> bytes | None:
    """A frame of words, or of a piece of a call, with the rest of them; None for any other."""
    document: Json = read_any(frame)
    if document.get("type") != "content_block_delta":
        return None
    given = {
        "text": event.text,
        "thinking": event.reasoning,
        "partial_json": "".join(call.arguments for call in event.tool_calls),
    }
    delta = {name: given.get(name, one) for name, one in document["delta"].items()}
    return write({**document, "delta": delta})
