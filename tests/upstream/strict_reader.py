"""An answer read by the letter of RFC 9112: slow, whole, and written apart from what it judges."""

import re
from typing import NamedTuple

TEXT = rb"[\t \x21-\x7e\x80-\xff]*"
FIELD = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:" + TEXT + rb"\r\n"
REASON = rb"[^\r\n]*"  # decides nothing, so its characters do not either
HEAD = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: " + REASON + rb")?\r\n((?:" + FIELD + rb")*)\r\n")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[\t ]*(?:;[^\r\n]*)?\r\n")
TRAILERS = re.compile(rb"(?:" + FIELD + rb")*\r\n")


class Reading(NamedTuple):
    status: int
    body: bytes
    rest: bytes


def read(answer: bytes) -> Reading | None:
    """The first final answer and what follows it; None when there is none that ends by itself."""
    while head := HEAD.match(answer.lstrip(b"\r\n")):
        rest = answer.lstrip(b"\r\n")[head.end() :]
        status = int(head[1])
        if status == 101:
            return None
        if status >= 200:
            return _body(status, head[2], rest)
        answer = rest
    return None


def _body(status: int, lines: bytes, rest: bytes) -> Reading | None:
    lengths, codings = [], []
    for line in lines.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            lengths.append(value.strip(b" \t"))
        if name.lower() == b"transfer-encoding":
            codings.append(value.strip(b" \t").lower())
    if len(lengths) + len(codings) > 1:
        return None
    if status in {204, 304}:
        return Reading(status, b"", rest)
    if codings == [b"chunked"]:
        return _chunks(status, rest)
    if not lengths or not re.fullmatch(rb"\d{1,19}", lengths[0]) or len(rest) < int(lengths[0]):
        return None
    size = int(lengths[0])
    return Reading(status, rest[:size], rest[size:])


def _chunks(status: int, rest: bytes) -> Reading | None:
    body = b""
    while head := CHUNK.match(rest):
        size, rest = int(head[1], 16), rest[head.end() :]
        if not size:
            end = TRAILERS.match(rest)
            return None if end is None else Reading(status, body, rest[end.end() :])
        if len(rest) < size + 2 or rest[size : size + 2] != b"\r\n":
            return None
        body, rest = body + rest[:size], rest[size + 2 :]
    return None
