"""What of an answer of another dialect a client cannot be told, by name."""

from collections.abc import Callable

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Media, Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import StreamEvent
from cluster_gw.wire.sse import encode_comment


def unsaid_of(answer: Answer, says: Callable[[Part], bool]) -> tuple[str, ...]:
    """The kinds of parts that are left out, each once.

    Args:
        answer: of an upstream.
        says: whether the client's dialect has words for a part.
    """
    left_out = [part for choice in answer.choices for part in choice.parts if not says(part)]
    return tuple(dict.fromkeys((*answer.lost, *map(kind_of, left_out))))


def unsaid_comment(event: StreamEvent, says: Callable[[Part], bool]) -> bytes:
    """The same of what is shown or lost in a stream, as comment lines: its headers are history."""
    media = (*event.media, *(one for _, piece in event.pieces for one in piece.media))
    shown = [kind_of(part) for part in media if not says(part)]
    kinds = dict.fromkeys((*event.lost, *shown))
    return b"".join([encode_comment(b"dropped answer: " + line_of(kind)) for kind in kinds])


def line_of(name: str) -> bytes:
    """A name, which may be the vendor's, without line ends."""
    return " ".join(name.split()).encode("utf-8", "replace")


def kind_of(part: Part) -> str:
    """What a part is called."""
    match part:
        case Media():
            return part.kind
        case Thinking(is_redacted=True):
            return "redacted thinking"
        case Thinking():
            return "thinking"
        case ToolUse():
            return "call of a tool"
        case Text() | Refusal():
            return "text"
        case _:
            return "result of a tool"


def is_image(part: Part) -> bool:
    """Whether a part shows an image."""
    return isinstance(part, Media) and part.kind == "image"
