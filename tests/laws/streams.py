"""Streams as laws look at them: decoded whole or in pieces, with an end."""

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.providers.base import Provider


def heard(codec: Provider, chunks: Sequence[bytes]) -> tuple[list[StreamEvent], int]:
    """All events of a stream, and its signs of life."""
    decoder = codec.stream_decoder()
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    return events + decoder.flush(), decoder.signs_of_life


def check_any_split(codec: Provider, stream: bytes, data: st.DataObject) -> None:
    """However a stream is cut, it says the same."""
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=10)))
    split = [stream[a:b] for a, b in itertools.pairwise([0, *cuts, len(stream)])]

    assert heard(codec, split) == heard(codec, [stream])


def check_one_end(events: Sequence[StreamEvent]) -> None:
    """It ends once at most, and nothing follows."""
    ends = [place for place, event in enumerate(events) if event.done or event.fault]

    assert ends in ([], [len(events) - 1])
