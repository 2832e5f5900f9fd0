"""What is asked of each decoder for any bytes: a target raises for whatever it must not do.

The first byte of an input chooses how the rest is cut or labelled; the rest is what comes in.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from cluster_gw.canonical.conversation import AnswerFormat
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.errors import ErrorBody
from cluster_gw.mending.arguments import repaired
from cluster_gw.mending.json_output import healed
from cluster_gw.pipeline.translation import UNREADABLE
from cluster_gw.providers.base import NotingProvider, Provider, RewritingProvider, StreamDecoder
from cluster_gw.surfaces.base import StreamEncoder, Surface
from cluster_gw.wire.content_encoding import ENCODINGS, ContentDecoder, ContentEncodingError
from cluster_gw.wire.sse import SseFrame, SseFramer
from tests.fuzz.codecs import SECRET, ArraySurface, head, providers, streaming, surfaces
from tests.fuzz.mended import mended_text, mending

Target = Callable[[bytes], None]

CONTENT_TYPES = ("application/json", "text/event-stream", "text/html", "", "application/json; x")
STATUSES = (400, 401, 403, 404, 413, 429, 500, 503, 529, 599)
NOW_MS = 1_800_000_000_000
FREE_BYTES = 65_536
MAX_RATIO = 20
HELD_PER_BYTE = 64  # a list of short lines costs about 50 bytes for each
HELD_FREE = 16_384
FRAME_BYTES = 96
BROKEN = ErrorBody(status=502, type="upstream_error", code="stream_broken", message="m")


def targets() -> Mapping[str, Target]:
    """All targets by name."""
    found: dict[str, Target] = {
        "sse": check_framer,
        "content-encoding": check_content_encoding,
        "error": partial(check_error, tuple(providers().values())),
    }
    for name, codec in streaming().items():
        check = check_mended if isinstance(codec, RewritingProvider) else check_stream
        found[f"stream-{name}"] = partial(check, codec)
    for name, codec in providers().items():
        found[f"answer-{name}"] = partial(check_answer, codec)
    for name, surface in surfaces().items():
        found[f"request-{name}"] = partial(check_request, surface)
    return found


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """What came in, whole and in pieces of one length."""
    step, stream = (data[0] % 32 + 1 if data else 1), data[1:]
    return stream, [stream[at : at + step] for at in range(0, len(stream), step)]


def check_framer(data: bytes) -> None:
    """Any split gives the same frames; what is kept has a bound."""
    stream, pieces = cut(data)
    for bound in (FRAME_BYTES, 1_048_576):
        whole, split = SseFramer(bound), SseFramer(bound)
        expected = [*whole.feed(stream), *whole.flush()]
        found: list[SseFrame] = []
        for piece in pieces:
            found += split.feed(piece)
            held = len(split._line) + len(split._data) + len(split._more)
            assert held <= bound + len(pieces[0])
        found += split.flush()
        assert found == expected
        assert split.is_overflowing is whole.is_overflowing
        if not whole.is_overflowing:
            assert split.signs_of_life == whole.signs_of_life


def check_content_encoding(data: bytes) -> None:
    """A coding is undone within its bound, or refused."""
    stream, pieces = cut(data)
    names = sorted(ENCODINGS)
    for encoding in (*names, f"{names[0]}, {names[-1]}"):
        decoder = ContentDecoder(encoding, free_bytes=FREE_BYTES, max_ratio=MAX_RATIO)
        size = 0
        try:
            for piece in pieces:
                size += len(decoder.feed(piece))
            decoder.finish()
        except ContentEncodingError:
            pass
        assert size <= FREE_BYTES + MAX_RATIO * len(stream)


def check_stream(codec: Provider, data: bytes) -> None:
    """Any split gives the same events, with one end at most, and a surface can say them."""
    stream, pieces = cut(data)
    events = decoded(codec.stream_decoder(SECRET), [stream])
    split = codec.stream_decoder(SECRET)
    assert decoded(split, pieces) == events
    assert held_bytes(split) <= HELD_FREE + HELD_PER_BYTE * len(stream)
    ends = [place for place, one in enumerate(events) if one.done or one.fault is not None]
    assert ends in ([], [len(events) - 1])
    assert all(SECRET not in one.fault.message for one in events if one.fault is not None)
    writers = [*surfaces().values(), ArraySurface()]
    check_written(writers[data[0] % len(writers)] if data else writers[0], codec, events)


def check_written(surface: Surface, codec: Provider, events: list[StreamEvent]) -> None:
    """What a client gets can be read again by the decoder of its dialect."""
    encoder = surface.stream_encoder(head(is_native=surface.dialect is codec.dialect))
    text = encoded(encoder, events)
    if isinstance(surface, ArraySurface):
        # Frames of the own dialect travel on with whatever bytes they hold.
        check_json(text.decode("utf-8", "replace"))
        return
    for reader in streaming().values():
        if reader.dialect is surface.dialect:
            read = decoded(reader.stream_decoder(), [text])
            assert not any(
                one.fault is not None and one.fault.kind is FaultKind.MALFORMED for one in read
            ), text
            return


def encoded(encoder: StreamEncoder, events: list[StreamEvent]) -> bytes:
    """One stream, ended as its events say."""
    text = b"".join([encoder.encode(event) for event in events])
    if any(event.fault is not None for event in events):
        return text + encoder.error(BROKEN, "r1")
    return text + encoder.done()


def decoded(decoder: StreamDecoder, pieces: list[bytes]) -> list[StreamEvent]:
    """All events of a stream."""
    events = [event for piece in pieces for event in decoder.decode(piece)]
    return events + decoder.flush()


def held_bytes(root: object) -> int:
    """What the bytes, texts and members below an object take, about."""
    size, waiting, seen = 0, [root], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, bytes | bytearray | str):
            size += len(one) + 32
        elif isinstance(one, dict):
            size += 64 * len(one)
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            size += 8 * len(one)
            waiting += one
        elif isinstance(one, msgspec.Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
        else:
            waiting += list(getattr(one, "__dict__", {}).values())
    return size


def check_mended(codec: Provider, data: bytes) -> None:
    """A stream, the same when it is mended, and the same bytes as a text that is."""
    check_stream(codec, data)
    check_mended_text(data)
    check_mended_stream(codec, data)


def check_mended_text(data: bytes) -> None:
    """Any split of a text gives the same answer, and nothing is in it that was not there."""
    step, text = (data[0] % 32 + 1 if data else 1), data[1:].decode("utf-8", "replace")
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    whole, split = mended_text([text] if text else []), mended_text(pieces)
    assert whole == split
    assert len(whole.text) + len(whole.reasoning) <= len(text)
    assert not set(whole.text + whole.reasoning) - set(text)
    for schema in (None, {"type": "object", "properties": {"a": {"type": "array"}}}):
        better = repaired(text, schema)
        assert better is None or repaired(better, schema) is None
    found = healed(text, AnswerFormat())
    assert found is None or found in text


def check_mended_stream(codec: Provider, data: bytes) -> None:
    """Mended events keep the laws of a stream, and their frames can be read again."""
    stream, pieces = cut(data)
    events = decoded(mending(codec), [stream])
    assert decoded(mending(codec), pieces) == events
    ends = [place for place, one in enumerate(events) if one.done or one.fault is not None]
    assert ends in ([], [len(events) - 1])
    check_written(surfaces()["chat-completions"], codec, events)


def check_answer(codec: Provider, data: bytes) -> None:
    """A body is a completion or a fault, and a completion can be told in every dialect."""
    content_type, body = CONTENT_TYPES[data[0] % len(CONTENT_TYPES)] if data else "", data[1:]
    fault = codec.decode_not_stream(body, content_type, SECRET)
    assert SECRET not in fault.message
    found = codec.decode_completion(body, content_type, SECRET)
    if isinstance(found, Fault):
        assert SECRET not in found.message
        return
    assert isinstance(found, Completion)
    if found.vectors is not None:
        return
    for surface in surfaces().values():
        if surface.dialect is codec.dialect:
            assert isinstance(surface.encode_completion(found, {"gateway": {}}), bytes)
    try:
        answer = codec.read_answer(found)
    except UNREADABLE:
        return
    for surface in surfaces().values():
        check_json(surface.encode_answer(answer, head(is_native=False)))


def check_error(codecs: Sequence[Provider], data: bytes) -> None:
    """An error of any body is a fault without the credential, and of a bounded size."""
    place, body = data[0] if data else 0, data[1:]
    codec, status = codecs[place % len(codecs)], STATUSES[place % len(STATUSES)]
    headers: dict[str, Any] = {"content-type": "application/json", "retry-after": "5"}
    fault = codec.decode_error(status, headers, body, NOW_MS, SECRET)
    assert isinstance(fault, Fault)
    assert fault.status is not None
    assert SECRET.encode() not in msgspec.json.encode(fault)
    assert len(fault.message) <= 300


def check_request(surface: Surface, data: bytes) -> None:
    """A body is a request or an error, and a request goes to every dialect or says why not."""
    body = data[1:]
    request = surface.decode_request(body)
    if isinstance(request, ErrorBody):
        assert 400 <= surface.status_of(request) < 500
        msgspec.json.decode(surface.encode_error(request, "r1"))
        return
    assert isinstance(request, ChatRequest)
    if request.embedding is not None:
        for name, codec in providers().items():
            # Numbers of tokens are for routes that take them, which is OpenAI's dialect.
            if "embeddings" in name and not (request.embedding.token_counts and "gemini" in name):
                check_native(codec, request)
        return
    natives = [codec for codec in streaming().values() if codec.dialect is request.dialect]
    for codec in natives:
        check_native(codec, request)
    try:
        conversation = surface.read_conversation(request)
    except UNREADABLE:
        return
    for codec in streaming().values():
        if codec.dialect is request.dialect:
            continue
        try:
            translated = codec.encode_conversation(conversation, "up")
        except UNREADABLE:
            continue
        check_json(translated.body)


def check_json(body: bytes | str) -> None:
    """Schemas and arguments go on as they are, and may hold numbers that no double has."""
    json.loads(body, parse_float=str, parse_int=str, parse_constant=refuse_constant)


def refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are no JSON."""
    raise ValueError(name)


def check_native(codec: Provider, request: ChatRequest) -> None:
    """A request of the codec's own dialect travels on, the same each time."""
    sent = codec.encode_request(request, "up")
    assert sent == codec.encode_request(request, "up")
    assert sent
    if isinstance(codec, NotingProvider):
        assert codec.encode_noted(request, "up").body == sent
