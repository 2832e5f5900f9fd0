"""A stream for clients of providers that have none: the whole answer, told as one.

Such a provider is asked without `stream`, and its answer becomes the frames it would have sent.
"""

from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.openai_errors import (
    UNREAD,
    content_fault,
    document_of,
    in_band_fault,
    malformed_fault,
)
from cluster_gw.providers.openai_stream import OpenAIStreamDecoder
from cluster_gw.wire.error_body import read_error
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.openai_chat import DONE
from cluster_gw.wire.sse import encode_data

MAX_BYTES: Final = 16 * 1_048_576
COPIED: Final = ("id", "created", "model", "system_fingerprint")


class WholeAnswerDecoder:
    """Takes a whole answer and gives its events at the end; see `providers.base.StreamDecoder`.

    Args:
        secret: credential of the call, for redaction.
    """

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._body = bytearray()  # tiny pieces by themselves would take many times their size
        self._pieces = 0
        self._is_over = False

    @property
    def signs_of_life(self) -> int:
        """How many pieces have come: each of them is one."""
        return self._pieces

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Keep the next bytes; no event, but for an answer that is too large."""
        if self._is_over:
            return []
        if len(self._body) + len(chunk) > MAX_BYTES:
            self._is_over = True
            self._body.clear()
            fault = Fault(kind=FaultKind.TOO_LARGE, message="answer above its bound")
            return [StreamEvent(fault=fault)]
        self._body += chunk
        self._pieces += 1
        return []

    def flush(self) -> list[StreamEvent]:
        """Take the end of the answer and give all its events."""
        body = bytes(self._body)
        if not body:
            return []
        document = document_of(body)
        if document is UNREAD:
            return [StreamEvent(fault=content_fault("", body, "JSON"))]
        facts = read_error(document)
        if facts is not None:
            return [StreamEvent(fault=in_band_fault(facts, document, self._secret))]
        if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
            return [StreamEvent(fault=malformed_fault("the answer holds no choices"))]
        decoder = OpenAIStreamDecoder(self._secret)
        return [*decoder.decode(frames_of(document)), *decoder.flush()]


def frames_of(document: dict[str, Any]) -> bytes:
    """The stream of an answer: all choices, then its usage, then the end."""
    common: dict[str, Any] = {
        **{name: document[name] for name in COPIED if name in document},
        "object": "chat.completion.chunk",
    }
    choices = [
        choice_of(place, choice)
        for place, choice in enumerate(document["choices"])
        if isinstance(choice, dict)
    ]
    frames = [encode_data(write({**common, "choices": choices}))]
    if document.get("usage") is not None:
        frames.append(encode_data(write({**common, "choices": [], "usage": document["usage"]})))
    return b"".join([*frames, encode_data(DONE)])


def choice_of(place: int, choice: dict[str, Any]) -> dict[str, Any]:
    """A choice of a frame; an answer that is whole has ended, whether it says so or not."""
    message = choice.get("message")
    delta = dict(message) if isinstance(message, dict) else {}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [
            {"index": index, **call} for index, call in enumerate(calls) if isinstance(call, dict)
        ]
    return {
        "index": choice.get("index", place),
        "delta": delta,
        "finish_reason": choice.get("finish_reason") or "stop",
    }
