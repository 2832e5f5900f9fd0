"""What quirks change inside messages, tools and formats of a chat request.

Each takes the raw member and gives another; what a quirk is not about stays as it was written.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.wire.json_codec import Fields, JsonReader, raw, read_any

CHARACTERS_PER_TOKEN: Final = 4
SYSTEM_ROLES: Final = frozenset({"system", "developer"})
NAMED_SCHEMAS: Final = frozenset({"properties", "$defs", "definitions", "patternProperties"})
NULL: Final = b"null"
PERMISSIVE: Final = msgspec.Raw(
    b'{"type":"json_schema","json_schema":{"name":"json","schema":{"type":"object"}}}'
)
MESSAGES_READER: Final = JsonReader[list[Fields]](list[Fields])
ROLE_READER: Final = JsonReader[str](str)


def with_text_for_null(messages: msgspec.Raw) -> msgspec.Raw:
    """An empty text for each content that is null."""
    items = MESSAGES_READER.read(messages)
    for message in items:
        if "content" in message and bytes(message["content"]) == NULL:
            message["content"] = raw("")
    return raw(items)


def flattened(messages: msgspec.Raw) -> msgspec.Raw:
    """One text for each content of text parts alone."""
    items = MESSAGES_READER.read(messages)
    for message in items:
        content = message.get("content")
        if content is None or not bytes(content).startswith(b"["):
            continue
        parts = read_any(content)
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        told = [text for text in texts if isinstance(text, str)]
        if len(told) == len(parts):
            message["content"] = raw("".join(told))
    return raw(items)


def without_members(messages: msgspec.Raw, names: tuple[str, ...]) -> msgspec.Raw:
    """The messages without members that a provider refuses."""
    return raw(
        [
            {name: value for name, value in message.items() if name not in names}
            for message in MESSAGES_READER.read(messages)
        ]
    )


def trimmed(messages: msgspec.Raw, most_tokens: int) -> msgspec.Raw:
    """The system texts and as many of the last turns as fit, at least the last; whole turns.

    A turn begins with a message of the user, so that no result of a tool loses its call.

    Args:
        messages: of the request.
        most_tokens: by estimate, a quarter of the characters.
    """
    items = MESSAGES_READER.read(messages)
    roles = [ROLE_READER.read(message["role"]) for message in items]
    is_system = [role in SYSTEM_ROLES for role in roles]
    sizes = [-(-len(message.get("content", b"")) // CHARACTERS_PER_TOKEN) for message in items]
    left = most_tokens - sum(size for size, system in zip(sizes, is_system, strict=True) if system)
    start, total = 0, 0
    starts = [place for place, role in enumerate(roles) if role == "user"]
    for place in reversed(range(len(items))):
        total += 0 if is_system[place] else sizes[place]
        if total > left:
            start = next((one for one in starts if one > place), starts[-1] if starts else 0)
            break
    if not start:
        return messages
    return raw([one for at, one in enumerate(items) if at >= start or is_system[at]])


def without_keywords(tools: msgspec.Raw, names: frozenset[str]) -> msgspec.Raw:
    """The tools with schemas that lack some keywords; properties of such a name stay."""
    return raw(_stripped(read_any(tools), names))


def _stripped(schema: Any, names: frozenset[str]) -> Any:
    if isinstance(schema, list):
        return [_stripped(one, names) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: {key: _stripped(one, names) for key, one in value.items()}
        if name in NAMED_SCHEMAS and isinstance(value, Mapping)
        else _stripped(value, names)
        for name, value in schema.items()
        if name not in names
    }


def permissive(response_format: msgspec.Raw) -> msgspec.Raw:
    """A schema of any object in place of `json_object`."""
    asked = read_any(response_format)
    is_object = isinstance(asked, dict) and asked.get("type") == "json_object"
    return PERMISSIVE if is_object else response_format


def in_a_list(stop: msgspec.Raw) -> msgspec.Raw:
    """A lone text to stop at as a list of one."""
    return raw([read_any(stop)]) if bytes(stop).startswith(b'"') else stop
