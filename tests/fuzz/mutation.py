"""Changes inputs where it matters: inside their JSON, which blind changes of bytes mostly break."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from cluster_gw import wire
from cluster_gw.wire.json_codec import read_any
from tests.fuzz.structs import structs_below

LINE: Final = re.compile(rb"(?m)^data: ?(?=\{)(.*?)\r?$")
SHARE_OF_JSON: Final = 0.6
MOST_CHANGES: Final = 3
ODD: Final[Sequence[Any]] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 1e308, -0.0, 0.5, "", "1", "null", "\u0000",
    "\u2028", "\r\n\r\n", "data: [DONE]", "{", "{}", "\U0001f600", [], {}, [[]], [None], {"": None},
    "error", "stop", "tool_use", "text", "A" * 300,
)  # fmt: skip


def field_names() -> list[str]:
    """Every member that a reader of the wire formats knows, and every kind it tells apart."""
    names: set[str] = set()
    for struct in structs_below(wire):
        names.update(field.encode_name for field in msgspec.structs.fields(struct))
        tag = struct.__struct_config__.tag
        names.update([tag] if isinstance(tag, str) else [])
    return sorted(names)


NAMES: Final = tuple(field_names())


def mutated(
    data: bytes, max_bytes: int, seed: int, blindly: Callable[[bytes, int], bytes]
) -> bytes:
    """Another input made of this one.

    Args:
        data: the input.
        max_bytes: bound of the result.
        seed: the same one gives the same result.
        blindly: changes bytes without looking at them.
    """
    chance = random.Random(seed)
    if len(data) < 3 or chance.random() > SHARE_OF_JSON:
        return blindly(data, max_bytes)
    changed = inside_json(data, chance)
    return (
        changed if changed is not None and len(changed) <= max_bytes else blindly(data, max_bytes)
    )


def inside_json(data: bytes, chance: random.Random) -> bytes | None:
    """The input with one document changed, or a frame repeated or moved; None without any."""
    frames = list(LINE.finditer(data, 1))
    start, end = (1, len(data))
    if frames:
        if chance.random() < 0.2:
            blocks = data[1:].split(b"\n\n")
            blocks.insert(chance.randrange(len(blocks) + 1), chance.choice(blocks))
            return data[:1] + b"\n\n".join(blocks)
        start, end = chance.choice(frames).span(1)
    try:
        document = read_any(data[start:end])
    except (ValueError, RecursionError):
        return None
    for _ in range(chance.randint(1, MOST_CHANGES)):
        document = changed_document(document, chance)
    try:
        return data[:start] + msgspec.json.encode(document) + data[end:]
    except (ValueError, OverflowError, RecursionError):
        return None


def changed_document(document: Any, chance: random.Random) -> Any:
    """The document with one value in it changed."""
    if not isinstance(document, dict | list) or not document or chance.random() < 0.15:
        return changed_value(document, chance)
    key = chance.choice(sorted(document) if isinstance(document, dict) else range(len(document)))
    document[key] = changed_document(document[key], chance)
    return document


def changed_value(value: Any, chance: random.Random) -> Any:
    """Another value in place of this one, or the same with a member more, less, or twice."""
    how = chance.randrange(4)
    if isinstance(value, dict) and how < 3:
        name = chance.choice(sorted(value) if value and how == 0 else NAMES)
        if how == 0 and value:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: chance.choice([*ODD, value])}
    if isinstance(value, list) and how < 3:
        place = chance.randrange(len(value) + 1)
        middle = [chance.choice([*ODD, *value[:4]])] if how else []
        return [*value[:place], *middle, *value[place + (how == 0) :]]
    if isinstance(value, str) and how == 0:
        return value + chance.choice(["x", "\ud83d", '"', "\\u0000"])[:1]
    return chance.choice([*ODD, chance.choice(NAMES)])
