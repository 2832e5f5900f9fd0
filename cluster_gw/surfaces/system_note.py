"""A word of the gateway's own to the model, in a client's request of any dialect.

It stands behind what the client says to the model as its system. All else stays as its bytes.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cluster_gw.canonical.conversation import Conversation, Role, Text, Turn
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    raw,
    read_any,
)

SYSTEM_ROLES: Final = frozenset({b'"system"', b'"developer"'})
SYSTEM: Final = "system"
INSTRUCTIONS: Final = "instructions"
GEMINI_SYSTEM: Final = "systemInstruction"
ABSENT: Final = b"null"
MESSAGES_READER: Final = JsonReader[list[Fields]](list[Fields])
NO_ROLE: Final = msgspec.Raw(b'""')


def with_note(request: ChatRequest, note: str, mark: str) -> ChatRequest:
    """The request with a note; the same one where there is one already, or no place for it.

    Args:
        request: of a client.
        note: begins with `mark`.
        mark: by which an earlier note is known.
    """
    fields = dict(request.fields)
    try:
        match request.dialect:
            case Dialect.OPENAI:
                is_put = put_message(fields, note, mark)
            case Dialect.OPENAI_RESPONSES:
                is_put = put_text(fields, INSTRUCTIONS, note, mark)
            case Dialect.ANTHROPIC:
                is_put = put_text(fields, SYSTEM, note, mark)
            case Dialect.GEMINI:
                is_put = put_parts(fields, note, mark)
    except (InvalidJsonError, UnexpectedShapeError):  # the upstream will say what is wrong with it
        return request
    return msgspec.structs.replace(request, fields=fields) if is_put else request


def with_noted_turn(conversation: Conversation, note: str, mark: str) -> Conversation:
    """The same for a request that has been read for another dialect."""
    turns = conversation.turns
    leading = 0
    for turn in turns:
        if turn.role is not Role.SYSTEM:
            break
        if is_noted(turn.text, mark):
            return conversation
        leading += 1
    said = Turn(role=Role.SYSTEM, parts=(Text(text=note),))
    return msgspec.structs.replace(conversation, turns=(*turns[:leading], said, *turns[leading:]))


def put_message(fields: Fields, note: str, mark: str) -> bool:
    """Add a system message behind the leading ones; whether it was done."""
    messages = MESSAGES_READER.read(fields["messages"])
    leading = 0
    for message in messages:
        if bytes(message.get("role", NO_ROLE)) not in SYSTEM_ROLES:
            break
        if is_noted(read_any(message.get("content", ABSENT)), mark):
            return False
        leading += 1
    added = {"role": raw(SYSTEM), "content": raw(note)}
    fields["messages"] = raw([*messages[:leading], added, *messages[leading:]])
    return True


def put_text(fields: Fields, name: str, note: str, mark: str) -> bool:
    """Add to a member that is a text or a list of parts; whether it was done."""
    given = read_any(fields.get(name, ABSENT))
    if is_noted(given, mark):
        return False
    if not given:
        fields[name] = raw(note)
    elif isinstance(given, str):
        fields[name] = raw(f"{given}\n\n{note}")
    elif isinstance(given, list) and name == SYSTEM:
        fields[name] = raw([*given, {"type": "text", "text": note}])
    elif isinstance(given, list):
        fields[name] = raw([*given, {"type": "message", "role": SYSTEM, "content": note}])
    else:
        return False
    return True


def put_parts(fields: Fields, note: str, mark: str) -> bool:
    """Add a part to Gemini's system instruction; whether it was done."""
    given = read_any(fields.get(GEMINI_SYSTEM, ABSENT))
    added = {"text": note}
    if not given:
        fields[GEMINI_SYSTEM] = raw({"parts": [added]})
        return True
    if isinstance(given, str):
        given = {"parts": [{"text": given}]}
    if not isinstance(given, dict):
        return False
    parts = given.get("parts") or []
    listed = parts if isinstance(parts, list) else [parts]
    if is_noted(listed, mark):
        return False
    fields[GEMINI_SYSTEM] = raw({**given, "parts": [*listed, added]})
    return True


def is_noted(content: Any, mark: str) -> bool:
    """Whether a text, or one in a list of parts, has a line that begins with the mark."""
    return any(text.startswith(mark) or f"\n{mark}" in text for text in texts_of(content))


def texts_of(content: Any) -> Iterable[str]:
    """The texts of a content, in whatever shape a client writes it."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from texts_of(part)
    elif isinstance(content, dict):
        yield from texts_of(content.get("text"))
        yield from texts_of(content.get("content"))
