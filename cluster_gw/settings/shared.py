"""One configuration for all processes of a group: memory the parent writes and workers read.

A worker that starts again must see what the others run on, not what the disk holds meanwhile: the
file may be broken by now, and so may a file with a secret. Nothing here touches a named file, so no
secret reaches a disk.
"""

import hashlib
import os
import tempfile
import time
from typing import Final

import msgspec

from cluster_gw.errors import ConfigInvalidError

DIGEST_BYTES: Final = 16
READ_WITHIN_S: Final = 1.0
POLL_S: Final = 0.002


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration was made from; never shown, since both parts may hold secrets.

    Attributes:
        text: the file's bytes, references not resolved.
        files: content of every file it names.
        version: of the file since its group started, from 1.
    """

    text: bytes
    files: dict[str, bytes]
    version: int = 1

    def __repr__(self) -> str:
        return "Source(***)"


def open_shared() -> int:
    """Give a descriptor of memory (of an unlinked file where there is no such thing)."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("configuration")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def write_source(fd: int, source: Source) -> None:
    """Replace what `fd` holds; a reader meanwhile waits until it is whole."""
    data = msgspec.msgpack.encode(source)
    frame = hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data
    written = 0
    while written < len(frame):
        written += os.pwrite(fd, frame[written:], written)
    os.ftruncate(fd, len(frame))


def read_source(fd: int) -> Source:
    """Read what `fd` holds.

    Raises:
        ConfigInvalidError: it stayed incomplete: whoever wrote it ended halfway.
    """
    deadline_s = time.monotonic() + READ_WITHIN_S
    while True:
        frame = _content(fd)
        digest, data = frame[:DIGEST_BYTES], frame[DIGEST_BYTES:]
        if hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() == digest:
            return msgspec.msgpack.decode(data, type=Source)
        if time.monotonic() > deadline_s:
            raise ConfigInvalidError(["configuration: what the parent shared is incomplete"])
        time.sleep(POLL_S)


def _content(fd: int) -> bytes:
    parts: list[bytes] = []
    read = 0
    while part := os.pread(fd, 1 << 20, read):
        parts.append(part)
        read += len(part)
    return b"".join(parts)
