"""What is kept of an answer for others, and how it is written: msgpack, zstd, then the seal."""

import struct
from typing import Final

import msgspec
import zstandard

from cluster_gw.store.sealing import Seal, UnsealError

VERSION: Final = "1"
LEVEL: Final = 1  # 3 is as large within a hundredth, and slower
MOST_BYTES: Final = 80 * 1024 * 1024
"""Of an entry that is read, unpacked: `cache.max_entry_mb` allows less, so it is not ours."""
OVERHEAD_BYTES: Final = 900
"""Of an entry in Redis: its key, its line, the index; measured by tests/store."""
SIZE: Final = struct.Struct(">I")
"""What stands before an entry: its length as it was before it was packed."""
INLINE_BYTES: Final = 128 * 1024
"""What is larger is packed and unpacked in a thread of its own."""
SIZE_STEP: Final = 3  # an allocator has four sizes from one power of two to the next
LEAST_STEP_BYTES: Final = 16
HEAD_BYTES: Final = 64  # the line before the body, and what the server adds


class EntryUnreadableError(Exception):
    """What stands there is not what a worker with this seal has written."""


class EntryUnwritableError(Exception):
    """An entry holds what cannot be written: a number or a text that no upstream should send."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One good answer as the upstream gave it.

    Attributes:
        dialect: of the upstream.
        route: that answered.
        provider: of the route.
        model: of the route.
        content_type: of the payload.
        is_stream: whether the payload is a stream of events, else one document.
        payload: all the bytes, decoded of any content encoding.
        prompt_tokens: used, by the upstream's word or our count.
        completion_tokens: the same of the answer.
        created_ms: when it had come, ms since the epoch.
        client: who asked.
        finish: why it ended, as the surface's own word; empty where it does not matter.
    """

    dialect: str
    route: str
    provider: str
    model: str
    content_type: str
    is_stream: bool
    payload: bytes
    prompt_tokens: int
    completion_tokens: int
    created_ms: int
    client: str
    finish: str = ""


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a follower must know before the first bytes of an answer that is still coming.

    Attributes:
        dialect: of the upstream.
        route: that answers.
        provider: of the route.
        model: of the route.
        content_type: of the bytes.
        is_stream: whether they are a stream of events.
    """

    dialect: str
    route: str
    provider: str
    model: str
    content_type: str
    is_stream: bool


class EntryCodec:
    """Writes and reads entries, in one thread: what it packs with is used again.

    Args:
        seal: encrypts them.

    Attributes:
        format: names what this one reads and writes; entries of other formats are none to it.
    """

    def __init__(self, seal: Seal) -> None:
        self.format = f"{VERSION}-{seal.name}" if seal.name else VERSION
        self._seal = seal
        self._pack = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress
        self._unpack = zstandard.ZstdDecompressor().decompress

    def apart(self) -> "EntryCodec":
        """The same for another thread."""
        return EntryCodec(self._seal)

    def encode(self, name: str, entry: Entry) -> bytes:
        """What is written under a name.

        Raises:
            EntryUnwritableError: see the class.
        """
        try:
            plain = msgspec.msgpack.encode(entry)
        except (OverflowError, UnicodeError) as fault:
            raise EntryUnwritableError(type(fault).__name__) from None
        return SIZE.pack(len(plain)) + self._seal.close(name, self._pack(plain))

    def decode(self, name: str, stored: bytes) -> Entry:
        """What was written there.

        Raises:
            EntryUnreadableError: see the class.
        """
        try:
            packed = self._seal.open(name, stored[SIZE.size :])
            if not 0 <= zstandard.frame_content_size(packed) <= MOST_BYTES:
                raise EntryUnreadableError("larger than any that is written")
            return msgspec.msgpack.decode(self._unpack(packed), type=Entry)
        except (UnsealError, zstandard.ZstdError, msgspec.MsgspecError, UnicodeError) as fault:
            raise EntryUnreadableError(type(fault).__name__) from None


def takes_long(stored: bytes) -> bool:
    """Whether reading it may last longer than a turn of the loop should."""
    size = SIZE.unpack_from(stored)[0] if len(stored) >= SIZE.size else 0
    return size > INLINE_BYTES


def stored_bytes(length: int) -> int:
    """How many bytes of Redis an entry takes whose written form has this length."""
    size = length + HEAD_BYTES
    step = max(LEAST_STEP_BYTES, 1 << max(0, size.bit_length() - SIZE_STEP))
    return -(-size // step) * step + OVERHEAD_BYTES
