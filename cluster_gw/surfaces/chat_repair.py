"""Shapes that clients send and upstreams refuse, put right (the tolerance list).

Every rule looks at decoded facts first, so that an ordinary request is not touched at all.
"""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import FIELDS_READER, Fields, JsonReader, raw
from cluster_gw.wire.openai_chat import ChatBody, Message

NULLABLE: Final = ("tools", "tool_choice", "parallel_tool_calls")
LENGTH_FIELDS: Final = ("max_tokens", "max_completion_tokens")
SELDOM: Final = frozenset((*NULLABLE, *LENGTH_FIELDS))
MAX_STOPS: Final = 4  # the format's own bound
NULL: Final = b"null"

ITEMS_READER: Final = JsonReader[list[msgspec.Raw]](list[msgspec.Raw])


def repair(fields: Fields, body: ChatBody, in_parts: list[Message]) -> None:
    """Change in place what the tolerance list allows and the format does not.

    Args:
        fields: the raw members.
        body: what was read of them.
        in_parts: the messages whose content is an array.
    """
    if not SELDOM.isdisjoint(fields):
        drop_empty(fields, body)
    if body.tool_choice == "any":
        fields["tool_choice"] = raw("required")
    if isinstance(body.stop, list) and len(body.stop) > MAX_STOPS:
        fields["stop"] = raw(body.stop[:MAX_STOPS])
    if in_parts and any(map(has_bare_text, in_parts)):
        fields["messages"] = raw(with_text_parts(fields["messages"], body.messages))


def drop_empty(fields: Fields, body: ChatBody) -> None:
    """Leave out what clients send empty in place of leaving it out."""
    for name in NULLABLE:
        if name in fields and bytes(fields[name]) == NULL:
            del fields[name]
    for name in LENGTH_FIELDS:
        if name in fields and (count := getattr(body, name)) is not None and count <= 0:
            del fields[name]


def has_bare_text(message: Message) -> bool:
    """Whether the content is an array that holds plain strings."""
    content = message.content
    return isinstance(content, list) and any(isinstance(part, str) for part in content)


def with_text_parts(messages: msgspec.Raw, decoded: list[Message]) -> list[msgspec.Raw]:
    """The messages with each plain string of a content array made a text part.

    Messages without one stay as they are, unread.
    """
    rebuilt = ITEMS_READER.read(messages)
    for place, message in enumerate(decoded):
        if has_bare_text(message):
            fields = FIELDS_READER.read(rebuilt[place])
            parts = ITEMS_READER.read(fields["content"])
            fields["content"] = raw(
                [
                    {"type": "text", "text": known} if isinstance(known, str) else part
                    for part, known in zip(parts, message.content or (), strict=True)
                ]
            )
            rebuilt[place] = raw(fields)
    return rebuilt
