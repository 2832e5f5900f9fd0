"""Undoes content codings while the bytes come in, within a bound on how much they may grow.

The gateway asks upstreams for `identity`; some compress all the same, and some stack or repeat
members. RFC 9110 8.4.1, RFC 1952 2.2 (gzip members), RFC 8878 (zstd frames).
"""

import zlib
from typing import Final, Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

FREE_BYTES: Final = 8 * 1_048_576  # may come out whatever went in: one whole answer
MAX_RATIO: Final = 200  # repetitive event streams reach 50
ZSTD_SLICE_BYTES: Final = 1024  # the library cannot bound its output: 32 KiB for each input byte
ZSTD_MAX_WINDOW_BYTES: Final = 8 * 1_048_576  # RFC 9659

GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
ZLIB_HEAD_BYTES: Final = 2

IDENTITY: Final = frozenset({"", "identity", "none"})
ENCODINGS: Final = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})


class ContentEncodingError(ValueError):
    """The body is not what its content coding says, or grows beyond its bound."""


class Coding(Protocol):
    """One coding being undone."""

    @property
    def is_complete(self) -> bool:
        """Whether the input may end here."""

    def feed(self, data: bytes, allowed_bytes: int) -> bytes:
        """Undo the next bytes; stops soon after `allowed_bytes`, which the caller checks."""


class ZlibCoding:
    """gzip with any number of members, or deflate with or without its zlib head."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._inner = zlib.decompressobj(wbits=GZIP_WBITS) if is_gzip else None
        self._head = b""  # of a deflate body whose kind is not known yet
        self._is_fresh = True

    @property
    def is_complete(self) -> bool:
        """Whether the last member has ended."""
        return self._is_fresh or (self._inner is not None and self._inner.eof)

    def feed(self, data: bytes, allowed_bytes: int) -> bytes:
        """Undo the next bytes."""
        self._is_fresh = self._is_fresh and not data
        if self._inner is None:
            self._head += data
            if len(self._head) < ZLIB_HEAD_BYTES:
                return b""
            data = self._head
            self._inner = zlib.decompressobj(wbits=zlib.MAX_WBITS * (1 if is_zlib(data) else -1))
        inner, out = self._inner, b""
        while data and len(out) <= allowed_bytes:
            if inner.eof:
                data = data.lstrip(b"\0")  # padding between and after members
                if not (data and self._is_gzip):
                    break
                self._inner = inner = zlib.decompressobj(wbits=GZIP_WBITS)
            out += inner.decompress(data, allowed_bytes + 1 - len(out))
            data = inner.unused_data
        return out


class BrotliCoding:
    """br."""

    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._is_fresh = True

    @property
    def is_complete(self) -> bool:
        """Whether the stream has ended."""
        return self._is_fresh or bool(self._inner.is_finished())

    def feed(self, data: bytes, allowed_bytes: int) -> bytes:
        """Undo the next bytes."""
        self._is_fresh = False
        # Below the limit everything that came in comes out; at the limit the caller gives up.
        return bytes(self._inner.process(data, output_buffer_limit=allowed_bytes + 1))


class ZstdCoding:
    """zstd with any number of frames."""

    def __init__(self) -> None:
        self._inner = self._fresh()
        self._is_complete = True

    @property
    def is_complete(self) -> bool:
        """Whether the last frame has ended."""
        return self._is_complete

    def feed(self, data: bytes, allowed_bytes: int) -> bytes:
        """Undo the next bytes."""
        out: list[bytes] = []
        size = 0
        for start in range(0, len(data), ZSTD_SLICE_BYTES):
            piece = data[start : start + ZSTD_SLICE_BYTES]
            while piece:
                if self._inner.eof:
                    self._inner = self._fresh()
                out.append(self._inner.decompress(piece))
                size += len(out[-1])
                piece = self._inner.unused_data if self._inner.eof else b""
                self._is_complete = self._inner.eof
            if size > allowed_bytes:
                break
        return b"".join(out)

    @staticmethod
    def _fresh() -> "zstandard.ZstdDecompressionObj":
        return zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW_BYTES).decompressobj()


class ContentDecoder:
    """Undoes the codings a `content-encoding` header names.

    An unknown coding is refused by the first byte, so that a decoder can be made without care.

    Args:
        encoding: value of the header; empty or `identity` passes everything through.
        free_bytes: output allowed whatever the input.
        max_ratio: further output allowed for each byte of input.
    """

    def __init__(
        self, encoding: str, *, free_bytes: int = FREE_BYTES, max_ratio: int = MAX_RATIO
    ) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        names = [name for name in names if name not in IDENTITY]
        self._unknown = next((name for name in names if name not in ENCODINGS), None)
        # Codings are listed in the order in which they were applied.
        self._codings = [] if self._unknown else [make_coding(name) for name in reversed(names)]
        self._allowed_bytes = free_bytes
        self._max_ratio = max_ratio

    def feed(self, data: bytes) -> bytes:
        """Undo the next bytes; may give none.

        Raises:
            ContentEncodingError: unknown coding, broken data, or too much output.
        """
        if self._unknown is not None:
            raise ContentEncodingError("unknown content coding")
        if not self._codings:
            return data
        self._allowed_bytes += len(data) * self._max_ratio
        for coding in self._codings:
            try:
                data = coding.feed(data, self._allowed_bytes)
            except (zlib.error, brotli.error, zstandard.ZstdError) as error:
                raise ContentEncodingError(f"broken content coding: {error}") from None
            if len(data) > self._allowed_bytes:
                raise ContentEncodingError("content grows beyond its bound")
        self._allowed_bytes -= len(data)
        return data

    def finish(self) -> None:
        """Take the end of the body.

        Raises:
            ContentEncodingError: the coding is not complete: the body was cut.
        """
        if not all(coding.is_complete for coding in self._codings):
            raise ContentEncodingError("content ended inside its coding")


def is_known_encoding(encoding: str) -> bool:
    """Whether every coding of the header value can be undone."""
    names = {name.strip().lower() for name in encoding.split(",")}
    return names <= ENCODINGS | IDENTITY


def make_coding(name: str) -> Coding:
    """The undoer of one known coding."""
    if name == "br":
        return BrotliCoding()
    if name == "zstd":
        return ZstdCoding()
    return ZlibCoding(is_gzip=name != "deflate")


def is_zlib(head: bytes) -> bool:
    """Whether a deflate body starts with a zlib head (RFC 1950 2.2); some servers leave it out."""
    return head[0] & 0x0F == zlib.DEFLATED and (head[0] << 8 | head[1]) % 31 == 0
