"""An answer of the Responses API in its other form: a stream ends with the whole of it."""

from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any, write
from cluster_gw.wire.sse import SseFramer

COMPLETED: Final = "response.completed"


def as_whole(stream: bytes) -> bytes | None:
    """The whole answer that a stream tells; None where it does not tell all of one."""
    framer = SseFramer()
    frames = [*framer.feed(stream), *framer.flush()]
    for frame in reversed(frames):
        try:
            told = read_any(frame.data)
        except (InvalidJsonError, UnexpectedShapeError):
            continue
        if isinstance(told, dict) and told.get("type") == COMPLETED and "response" in told:
            return write(told["response"])
    return None


def trimmed(frame: bytes, event: StreamEvent) -> bytes | None:
    """A frame of words, or of a piece of a call, with the rest of them; None for any other."""
    rest = "".join(call.arguments for call in event.tool_calls)
    document: dict[str, Any] = read_any(frame)
    if "delta" not in document:
        return None
    return write({**document, "delta": event.text or event.reasoning or rest})
