"""How crowded a messages request may be; see `chat_bounds` for why."""

import itertools

from cluster_gw.surfaces.chat_bounds import (
    MAX_MESSAGES,
    UNCOUNTED_BYTES,
    Excess,
    excess_of_parts,
    too_many,
)
from cluster_gw.wire.anthropic_messages import Block, Message, MessagesBody


def excess_of_messages(body: MessagesBody, size_bytes: int) -> Excess | None:
    """The bound that a request of that many bytes exceeds."""
    if size_bytes <= UNCOUNTED_BYTES:
        return None
    if len(body.messages) > MAX_MESSAGES:
        return too_many("messages", len(body.messages))
    return excess_of_parts(
        "messages",
        itertools.chain.from_iterable(
            counts_of(message, f"messages[{place}].content")
            for place, message in enumerate(body.messages)
        ),
    )


def counts_of(message: Message, path: str) -> list[tuple[str, int]]:
    """How many blocks each list of a message holds, by path."""
    if isinstance(message.content, str):
        return []
    inner = [
        (f"{path}[{place}].content", inside_count(block))
        for place, block in enumerate(message.content)
    ]
    return [(path, len(message.content)), *inner]


def inside_count(block: Block) -> int:
    """Blocks inside a result of a tool."""
    return len(block.content) if isinstance(block.content, list) else 0
