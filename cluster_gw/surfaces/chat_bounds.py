"""How crowded a chat request may be: what it holds in numbers, whatever its bytes.

A few MB of tiny messages or parts cost seconds to take apart, and the whole worker waits
meanwhile. So a large body is counted before it is read, by means that cost a few ms per 10 MB.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import AnyObject, ChatBody, Message

MAX_MESSAGES: Final = 20_000
MAX_PARTS: Final = 2_000  # of one message
MAX_ALL_PARTS: Final = 50_000
MAX_ITEMS: Final = 300_000  # what 20,000 messages with a tool call each hold
MAX_VALUES: Final = 1_000_000
MIN_ITEM_BYTES: Final = 3  # `{},` or `"",`
UNCOUNTED_BYTES: Final = MIN_ITEM_BYTES * MAX_PARTS  # smaller bodies cannot exceed any bound


class Excess(msgspec.Struct, frozen=True):
    """A bound that a request exceeds.

    Attributes:
        param: path of the member; None for the body as a whole.
        message: what is too much, and the bound.
    """

    param: str | None
    message: str


CROWDED: Final = Excess(None, f"The body holds more than {MAX_ITEMS} strings or objects.")


class Crowd(msgspec.Struct):
    """A body of which only the messages are counted."""

    messages: list[AnyObject]


CROWD_READER: Final = JsonReader[Crowd](Crowd)


def excess_of_body(body: bytes) -> Excess | None:
    """The bound that a body surely exceeds, told without reading it.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is crowded and no request at all.
    """
    if len(body) <= MIN_ITEM_BYTES * MAX_ITEMS or not is_crowded(body):
        return None
    return excess_of_crowd("messages", len(CROWD_READER.read(body).messages))


def excess_of(body: ChatBody, in_parts: list[Message], size_bytes: int) -> Excess | None:
    """The bound that a request exceeds.

    Args:
        body: the request.
        in_parts: its messages whose content is an array.
        size_bytes: of the whole.
    """
    if size_bytes <= UNCOUNTED_BYTES:
        return None
    if len(body.messages) > MAX_MESSAGES:
        return too_many("messages", len(body.messages))
    total = 0
    for message in in_parts:
        count = len(message.content or ())
        total += count
        if count > MAX_PARTS:
            path = f"messages[{body.messages.index(message)}].content"
            return Excess(path, f"{path} holds {count} parts; the limit is {MAX_PARTS}.")
    if total > MAX_ALL_PARTS:
        return too_many_parts("messages", total)
    return None


def excess_of_crowd(name: str, count: int) -> Excess:
    """The excess of a crowded body whose messages, by whatever name, are so many."""
    return too_many(name, count) if count > MAX_MESSAGES else CROWDED


def excess_of_parts(name: str, counts: Iterable[tuple[str, int]]) -> Excess | None:
    """The bound that the parts of all messages exceed.

    Args:
        name: of the member that holds the messages.
        counts: path and length of each list of parts.
    """
    total = 0
    for path, count in counts:
        total += count
        if count > MAX_PARTS:
            return Excess(path, f"{path} holds {count} parts; the limit is {MAX_PARTS}.")
    return too_many_parts(name, total) if total > MAX_ALL_PARTS else None


def excess_of_values(body: bytes, most: int = MAX_VALUES) -> Excess | None:
    """The same for values of any kind, where each of them costs something."""
    if body.count(b",") > most and without_strings(body).count(b",") > most:
        return Excess(None, f"The body holds more than {most} values.")
    return None


def is_crowded(body: bytes) -> bool:
    """Whether sound JSON surely holds more than `MAX_ITEMS` strings (names among them) or objects.

    Every string opens with a quote that no backslash precedes, and has at most two such quotes;
    quotes inside a string are always escaped. At most twice the bound passes.
    """
    quotes = body.count(b'"')
    if quotes > 2 * MAX_ITEMS and quotes - body.count(b'\\"') > 2 * MAX_ITEMS:
        return True
    # Braces may as well be text; only a body full of them is worth taking the strings out.
    return body.count(b"{") > MAX_ITEMS and without_strings(body).count(b"{") > MAX_ITEMS


def without_strings(body: bytes) -> bytes:
    """What stands between the strings of sound JSON."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.split(b'"')[::2])


def too_many(name: str, count: int) -> Excess:
    """The excess of a request with that many messages, by whatever name."""
    return Excess(name, f"{name} holds {count} {name}; the limit is {MAX_MESSAGES}.")


def too_many_parts(name: str, total: int) -> Excess:
    """The excess of a request whose messages, by whatever name, hold that many parts."""
    message = f"{name} holds {total} content parts together; the limit is {MAX_ALL_PARTS}."
    return Excess(name, message)
