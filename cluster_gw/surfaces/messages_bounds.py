"""How crowded a messages request may be; see `chat_bounds` for why."""

from cluster_gw.surfaces.chat_bounds import (
    MAX_ALL_PARTS,
    MAX_MESSAGES,
    MAX_PARTS,
    UNCOUNTED_BYTES,
    Excess,
    too_many_messages,
)
from cluster_gw.wire.anthropic_messages import Block, Message, MessagesBody


def excess_of_messages(body: MessagesBody, size_bytes: int) -> Excess | None:
    """The bound that a request of that many bytes exceeds."""
    if size_bytes <= UNCOUNTED_BYTES:
        return None
    if len(body.messages) > MAX_MESSAGES:
        return too_many_messages(len(body.messages))
    total = 0
    for place, message in enumerate(body.messages):
        for path, count in counts_of(message, f"messages[{place}].content"):
            total += count
            if count > MAX_PARTS:
                return Excess(path, f"{path} holds {count} blocks; the limit is {MAX_PARTS}.")
    if total > MAX_ALL_PARTS:
        return Excess(
            "messages",
            f"messages hold {total} content blocks together; the limit is {MAX_ALL_PARTS}.",
        )
    return None


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
