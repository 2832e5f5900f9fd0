"""What a model thought before, put back into the messages of a chat request that goes to it again.

Models that think between calls of tools want to see it (`reasoning_content` of the message that
made the calls); most clients do not send back what they did not ask for.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from cluster_gw.canonical.conversation import ToolUse
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    raw,
)

REASONING: Final = "reasoning_content"
ECHOED: Final = "Z3c6ZWNobw"
"""Signature of a thought that is to be sent as `reasoning_content`, and of no other: only what the
very model thought is marked so. Base64 of `gw:echo`."""
CALLS: Final = b'"tool_calls"'
ASSISTANT: Final = b'"assistant"'
SAID: Final = ("role", "tool_calls", "tool_call_id")
DIGEST_BYTES: Final = 16
ABSENT: Final = b"null"
MESSAGES_READER: Final = JsonReader[list[Fields]](list[Fields])


class SaidFunction(msgspec.Struct, gc=False):
    """Name and arguments of a call."""

    name: str = ""
    arguments: str | None = None


class SaidCall(msgspec.Struct, gc=False):
    """A call that the model made before."""

    function: SaidFunction | None = None
    id: str | None = None


class SaidPart(msgspec.Struct, gc=False):
    """A part of a content."""

    text: str | None = None


CONTENT_READER: Final = JsonReader[str | list[str | SaidPart] | None](
    str | list[str | SaidPart] | None
)
CALLS_READER: Final = JsonReader[list[SaidCall] | None](list[SaidCall] | None)


class Thoughtless(NamedTuple):
    """A message of the model that lacks what it thought.

    Attributes:
        place: among the messages.
        calls: made in it; none where it only speaks.
        text: what it says.
    """

    place: int
    calls: tuple[ToolUse, ...]
    text: str


def thoughtless(messages: msgspec.Raw) -> list[Thoughtless]:
    """The messages of the model without thoughts; none where they cannot be read."""
    try:
        found = []
        for place, message in enumerate(MESSAGES_READER.read(messages)):
            is_spoken = bytes(message.get("role", ABSENT)) == ASSISTANT
            if is_spoken and bytes(message.get(REASONING, ABSENT)) == ABSENT:
                found.append(Thoughtless(place, calls_of(message), text_of(message)))
    except (InvalidJsonError, UnexpectedShapeError):  # the upstream will say what is wrong
        return []
    return found


def message_count(messages: msgspec.Raw) -> int:
    """How many there are; 0 where they cannot be read."""
    try:
        return len(MESSAGES_READER.read(messages))
    except (InvalidJsonError, UnexpectedShapeError):
        return 0


def messages_before(messages: msgspec.Raw, places: Collection[int]) -> dict[int, bytes]:
    """What stands for all that was said before the messages at some places, by these places.

    Marks that clients move from message to message, and thoughts, are no part of it.
    """
    found: dict[int, bytes] = {}
    state = blake2b(digest_size=DIGEST_BYTES)
    try:
        items = MESSAGES_READER.read(messages)
        for place in range(max(places, default=-1) + 1):
            if place in places:
                found[place] = state.digest()
            if place < len(items):
                update(state, items[place])
    except (InvalidJsonError, UnexpectedShapeError):  # the upstream will say what is wrong
        return found
    return found


def update(state: blake2b, message: Fields) -> None:
    """Add what a message says."""
    content = bytes(message.get("content", ABSENT))
    if not content.startswith(b'"'):  # most are, and need no reading
        content = bytes(raw(text_of(message)))
    for part in (content, *[bytes(message.get(name, ABSENT)) for name in SAID]):
        state.update(b"%d:%b" % (len(part), part))


def text_of(message: Fields) -> str:
    """The text of a message."""
    content = CONTENT_READER.read(message.get("content", ABSENT))
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part if isinstance(part, str) else part.text or "" for part in content])


def calls_of(message: Fields) -> tuple[ToolUse, ...]:
    """The calls of a message."""
    given = CALLS_READER.read(message.get("tool_calls", ABSENT)) or ()
    return tuple(
        [
            ToolUse(
                id=call.id or "",
                name=call.function.name,
                arguments=call.function.arguments or "{}",
            )
            for call in given
            if call.function is not None
        ]
    )


def with_thoughts(messages: msgspec.Raw, thoughts: Mapping[int, str]) -> msgspec.Raw:
    """The messages with thoughts at some places; all else stays as its bytes."""
    items = MESSAGES_READER.read(messages)
    for place, text in thoughts.items():
        items[place][REASONING] = raw(text)
    return raw(items)
