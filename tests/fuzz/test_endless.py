"""Streams that never end take the same memory however long they go on."""

import pytest

from cluster_gw.providers.base import Provider
from cluster_gw.providers.openai_whole import WholeAnswerDecoder
from tests.fuzz.codecs import ArraySurface, head, streaming, surfaces
from tests.fuzz.endless import BYTES, ENDLESS, EVENTS, PIECE_BYTES, Chunks, growth_bytes

SHORT = 64 * 1_048_576 // PIECE_BYTES
LONG = 1024 * 1_048_576 // PIECE_BYTES
FLAT_BYTES = 1_048_576  # half of the short stream is 32 times as much

LENGTHS = (
    pytest.param(SHORT, id="64MB"),
    pytest.param(LONG, id="1GB", marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
)
FEW_BYTES = frozenset({"blank lines", "empty events", "short lines of one event"})
"""Too few to reach the bound of who keeps a whole answer, which others do."""
SOUND = [
    pytest.param(codec, chunks, id=f"{codec_name}-{name.replace(' ', '-')}")
    for codec_name, codec in streaming().items()
    for name, chunks in {**BYTES, **ENDLESS[codec.dialect]}.items()
    if name not in FEW_BYTES or not isinstance(codec.stream_decoder(), WholeAnswerDecoder)
]
WRITERS = {**surfaces(), "gemini-array": ArraySurface()}


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize(("codec", "chunks"), SOUND)
def test_a_decoder_holds_no_more_of_a_stream_that_never_ends(
    codec: Provider, chunks: Chunks, count: int
) -> None:
    decoder = codec.stream_decoder()
    stream = chunks()

    grown = growth_bytes(lambda _: decoder.decode(next(stream)), count)

    assert grown < FLAT_BYTES


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("is_native", [True, False], ids=["native", "written"])
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("name", WRITERS)
def test_an_encoder_holds_no_more_of_a_stream_that_never_ends(
    name: str, kind: str, is_native: bool, count: int
) -> None:
    encoder = WRITERS[name].stream_encoder(head(is_native=is_native))
    event = EVENTS[kind]

    grown = growth_bytes(lambda number: encoder.encode(event(number)), count)

    assert grown < FLAT_BYTES
