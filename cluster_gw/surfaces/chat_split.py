"""A long chat request taken apart before it is read, so that its messages are read only once.

Nearly all of a long body is the array of its messages, in which the facts are looked for anyway.
Finding the raw members of the body would walk over that array a second time, so it is cut out
first, and the few hundred bytes around it are read as if a short one stood in its place. What lies
around the cut is sound JSON with the stand-in, and what was cut out is one sound array: so the
whole is sound as well, and means the same. Wherever that cannot be told at once, the body is left
to the plain way.
"""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    check_utf8,
    read_fields,
)
from cluster_gw.wire.openai_chat import CHAT_READER, MESSAGES_READER, ChatBody

LONG_BYTES: Final = 8 * 1024  # below, the cut costs more than it spares
MOST_BEFORE_BYTES: Final = 256
MOST_AFTER_BYTES: Final = 1024
NAME: Final = b'"messages":'
END: Final = b"}]"
STAND_IN: Final = b'[{"role":"cut out"}]'


def read_split(body: bytes) -> tuple[Fields, ChatBody] | None:
    """The raw members and the facts of a long body; None where the plain way must be gone.

    Raises:
        InvalidJsonError: it is not UTF-8.
    """
    begin = body.find(NAME, 0, MOST_BEFORE_BYTES) + len(NAME)
    # Only the outermost object is open there, so the name is one of its own members.
    if begin < len(NAME) or body.count(b"{", 0, begin) != 1:
        return None
    if body[begin : begin + 1] == b" ":
        begin += 1
    end = body.rfind(END, len(body) - MOST_AFTER_BYTES) + len(END)
    if end < len(END) or body[begin : begin + 1] != b"[":
        return None
    check_utf8(body)
    # A view: a copy of what fills the caches of the processor costs as much as reading it does.
    messages = msgspec.Raw(memoryview(body)[begin:end])
    around = body[:begin] + STAND_IN + body[end:]
    try:
        fields, facts = read_fields(around), CHAT_READER.read(around)
        facts.messages = MESSAGES_READER.read(messages)
    except (InvalidJsonError, UnexpectedShapeError):
        return None  # the plain way tells what is wrong, and where
    if bytes(fields["messages"]) != STAND_IN:  # named once more behind, and the last one counts
        return None
    fields["messages"] = messages
    return fields, facts
