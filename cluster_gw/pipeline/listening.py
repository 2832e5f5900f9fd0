"""A decoder that is listened to: its events also go to whoever keeps something of a stream."""

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.core.outcome.heard import Heard
from cluster_gw.providers.base import StreamDecoder


class ListeningDecoder:
    """Passes on what another decoder gives; see `providers.base.StreamDecoder`.

    Args:
        decoder: gives the events.
        heard: gathers what they say.
    """

    def __init__(self, decoder: StreamDecoder, heard: Heard) -> None:
        self._decoder = decoder
        self._heard = heard

    @property
    def signs_of_life(self) -> int:
        """As the other's."""
        return self._decoder.signs_of_life

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes and give the events completed by them."""
        return self._noted(self._decoder.decode(chunk))

    def flush(self) -> list[StreamEvent]:
        """Take the clean end of the stream."""
        return self._noted(self._decoder.flush())

    def _noted(self, events: list[StreamEvent]) -> list[StreamEvent]:
        for event in events:
            self._heard.add(event)
        return events
