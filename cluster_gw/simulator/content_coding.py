"""Compresses a body on its way out; every piece can be read as soon as it arrives."""

import zlib
from collections.abc import Callable
from typing import Final

import brotli  # type: ignore[import-untyped]  # the package ships no types
import zstandard

GZIP_WBITS: Final = 31
DEFLATE_WBITS: Final = 15  # HTTP's deflate is the zlib format (RFC 9110, 8.4.1.2)


class Encoder:
    """An incremental content coding: `feed` gives readable bytes, `finish` the last ones."""

    def __init__(self, feed: Callable[[bytes], bytes], finish: Callable[[], bytes]) -> None:
        self.feed = feed
        self.finish = finish


def make_encoder(encoding: str) -> Encoder:
    """An encoder for `gzip`, `deflate`, `br` or `zstd`."""
    if encoding == "br":
        return _make_brotli()
    if encoding == "zstd":
        return _make_zstd()
    return _make_zlib(GZIP_WBITS if encoding == "gzip" else DEFLATE_WBITS)


def _make_zlib(wbits: int) -> Encoder:
    compressor = zlib.compressobj(wbits=wbits)
    return Encoder(
        lambda data: compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH),
        compressor.flush,
    )


def _make_brotli() -> Encoder:
    compressor = brotli.Compressor()
    return Encoder(lambda data: compressor.process(data) + compressor.flush(), compressor.finish)


def _make_zstd() -> Encoder:
    compressor = zstandard.ZstdCompressor().compressobj()
    return Encoder(
        lambda data: (
            compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        ),
        lambda: compressor.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH),
    )
