"""Words that are no answer: verdicts of a provider's filter that come instead of one.

A stream is held as long as all it said might be such a word, a few characters at most. If it was
one, and nothing came beside it, the answer says nothing, and whoever judges answers sees that.
"""

from collections.abc import Sequence

import msgspec

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.providers.base import StreamDecoder


def without_empty_words(completion: Completion, words: Sequence[str]) -> Completion:
    """Give a buffered answer; without its text where that is nothing but one of the words."""
    if completion.tool_calls or completion.has_media or not _is_one(completion.text, words):
        return completion
    return msgspec.structs.replace(completion, text="", characters=0)


class EmptyWordsDecoder:
    """Does the same for a stream; see `providers.base.StreamDecoder`.

    Args:
        inner: decodes the stream.
        words: in lower case.
    """

    def __init__(self, inner: StreamDecoder, words: Sequence[str]) -> None:
        self._inner = inner
        self._words = words
        self._text = ""
        self._held: list[StreamEvent] = []
        self._is_open = True

    @property
    def signs_of_life(self) -> int:
        """Those of the stream."""
        return self._inner.signs_of_life

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes and give the events that need not be held."""
        return self._sifted(self._inner.decode(chunk))

    def flush(self) -> list[StreamEvent]:
        """Take the end of the stream and give all that is still held."""
        return [*self._sifted(self._inner.flush()), *self._release()]

    def _sifted(self, events: list[StreamEvent]) -> list[StreamEvent]:
        if not self._is_open:
            return events
        given: list[StreamEvent] = []
        for place, event in enumerate(events):
            self._text += event.text
            said = self._text.strip().lower()
            is_end = event.done or event.finish_reason is not None or event.fault is not None
            is_other = event.tool_calls or event.has_media or event.pieces
            might_be = not is_other and any(word.startswith(said) for word in self._words)
            if said and might_be and not is_end:
                self._held.append(event)
            elif is_end or not might_be:
                self._held.append(event)
                return [*given, *self._release(), *events[place + 1 :]]
            else:
                given.append(event)  # nothing was said yet
        return given

    def _release(self) -> list[StreamEvent]:
        """Give what was held, and hold no more; without its text where that was no answer."""
        held, self._held, self._is_open = self._held, [], False
        is_other = any(event.tool_calls or event.has_media or event.pieces for event in held)
        if is_other or not _is_one(self._text, self._words):
            return held
        return [msgspec.structs.replace(event, text="") if event.text else event for event in held]


def _is_one(text: str, words: Sequence[str]) -> bool:
    return text.strip().lower() in words
