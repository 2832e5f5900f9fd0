"""A stream of the legacy completions API, written for the events of any dialect."""

from collections.abc import Mapping
from typing import Any

from cluster_gw.canonical.events import StreamEvent, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_answer import usage_json
from cluster_gw.surfaces.chat_errors import error_body
from cluster_gw.surfaces.chat_stream import END
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, write
from cluster_gw.wire.openai_chat import CHUNK_READER
from cluster_gw.wire.sse import encode_data


class TextStream:
    """Writes frames of text; see `surfaces.base.StreamEncoder`.

    What is no text, such as reasoning, has no place in this format.
    """

    def __init__(self, head: StreamHead) -> None:
        self._head = head
        self._usage: Usage | None = None
        request = head.request
        self._tells_apart = head.is_native and request is not None and request.choices > 1

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event; none where it says no text."""
        if event.usage is not None:
            self._usage = event.usage
        if event.done or event.fault is not None:
            return b""
        choices = self._choices(event)
        return self._frame(choices, extensions) if choices else b""

    def done(self) -> bytes:
        """Usage where the client asked for it, and the end marker."""
        if not self._head.include_usage or self._usage is None:
            return END
        return self._frame([], {"usage": usage_json(self._usage)}) + END

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One data event with the error object; no end marker may follow it."""
        return encode_data(error_body(error, request_id))

    def _choices(self, event: StreamEvent) -> list[dict[str, Any]]:
        if self._tells_apart:
            try:
                chunk = CHUNK_READER.read(event.raw)
            except (InvalidJsonError, UnexpectedShapeError):
                return []
            return [
                choice_json(choice.index or 0, text, choice.finish_reason)
                for choice in chunk.choices or ()
                if (
                    text := ""
                    if choice.delta is None
                    else choice.delta.content or choice.delta.refusal or ""
                )
                or choice.finish_reason
            ]
        if not (event.text or event.finish_reason):
            return []
        return [choice_json(0, event.text, event.finish_reason)]

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


def choice_json(index: int, text: str, finish_reason: str | None) -> dict[str, Any]:
    """One choice, or a piece of it."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish_reason}
