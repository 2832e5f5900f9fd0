"""A stream of the legacy completions API, written for the events of any dialect."""

from collections.abc import Mapping
from typing import Any

from cluster_gw.canonical.conversation import Part, Refusal, Text
from cluster_gw.canonical.events import StreamEvent, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_answer import usage_json
from cluster_gw.surfaces.chat_errors import error_body
from cluster_gw.surfaces.chat_stream import END
from cluster_gw.surfaces.unsaid import unsaid_comment
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_data


class TextStream:
    """Writes frames of text; see `surfaces.base.StreamEncoder`.

    What is no text, such as reasoning, has no place in this format.
    """

    def __init__(self, head: StreamHead) -> None:
        self._head = head
        self._usage: Usage | None = None

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event; none where it says no text."""
        if event.usage is not None:
            self._usage = event.usage
        if event.done or event.fault is not None:
            return b""
        pieces = self._head.pieces_of(event)
        choices = [
            choice_json(index, piece.text, piece.finish_reason)
            for index, piece in pieces
            if piece.text or piece.finish_reason
        ]
        frame = self._frame(choices, extensions) if choices else b""
        return frame + unsaid_comment(event, says) if event.has_media else frame

    def done(self) -> bytes:
        """Usage where the client asked for it, and the end marker."""
        if not self._head.include_usage or self._usage is None:
            return END
        return self._frame([], {"usage": usage_json(self._usage)}) + END

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One data event with the error object; no end marker may follow it."""
        return encode_data(error_body(error, request_id))

    def _frame(self, choices: list[Any], extensions: Mapping[str, Any] | None) -> bytes:
        head = self._head
        document = {
            "id": f"cmpl-{head.id}",
            "object": "text_completion",
            "created": head.created_s,
            "model": head.model,
            "choices": choices,
            **(extensions or {}),
        }
        return encode_data(write(document))


def says(part: Part) -> bool:
    """Whether this format has words for a part."""
    return isinstance(part, Text | Refusal)


def choice_json(index: int, text: str, finish_reason: str | None) -> dict[str, Any]:
    """One choice, or a piece of it."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish_reason}
