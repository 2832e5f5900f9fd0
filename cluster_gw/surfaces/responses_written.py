"""A stream of the Responses API, written for events of any other dialect."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.conversation import Media
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.responses_answer import (
    COMPLETED,
    CUT_REASONS,
    IN_PROGRESS,
    INCOMPLETE,
    call_json,
    image_json,
    message_json,
    reasoning_json,
    refusal_json,
    response_json,
    says,
    summary_json,
    text_json,
)
from cluster_gw.surfaces.responses_signature import Kept
from cluster_gw.surfaces.responses_stream import error_event, frame
from cluster_gw.surfaces.unsaid import unsaid_comment
from cluster_gw.wire.json_codec import write

MAX_KEPT: Final = 16 * 1_048_576  # characters, about, of what the last event says again
PIECE_OVERHEAD: Final = 128
ITEM_OVERHEAD: Final = 2048
TOO_LONG: Final = CUT_REASONS["length"]
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class OpenItem(msgspec.Struct, kw_only=True):
    """An item of the output that is still being said.

    Attributes:
        place: in the output.
        content: parts of a message that are closed.
        said: the pieces of what is open: a part, a summary, arguments.
        is_refusal: the open part of a message says that the model will not.
    """

    place: int
    id: str
    kind: str
    content: list[dict[str, Any]] = []
    said: list[str] = []
    is_refusal: bool = False
    signature: str = ""
    signed: Kept = Kept.THOUGHT
    call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """What the open part says so far."""
        return "".join(self.said)


class WrittenStream:
    """Writes a sound stream for any run of events; see `surfaces.base.StreamEncoder`.

    Text and thoughts follow each other; calls stay open until the answer ends, because other
    dialects may go on with any of them. The last event says the whole answer again, so an answer
    has a bound: above it nothing more is written, and it ends as one that was too long.
    """

    def __init__(self, head: StreamHead) -> None:
        self._head = head
        self._sequence = 0
        self._kept = 0
        self._output: list[dict[str, Any] | None] = []
        self._speech: OpenItem | None = None
        self._calls: dict[int, OpenItem] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._extensions: Mapping[str, Any] = NOTHING

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frames of one event; none for what this dialect has no words for."""
        if event.fault is not None:
            return b""
        self._usage = event.usage or self._usage
        self._finish_reason = event.finish_reason or self._finish_reason
        self._extensions = extensions or self._extensions
        if self._kept > MAX_KEPT:
            return b""
        self._kept += len(event.text) + len(event.reasoning) + len(event.signature)
        self._kept += PIECE_OVERHEAD + sum([len(call.arguments) for call in event.tool_calls])
        frames: list[bytes] = []
        if event.reasoning:
            self._think(event.reasoning, frames)
        if event.signature:
            kind = Kept.REDACTED if event.is_redacted else Kept.THOUGHT
            self._sign(event.signature, Kept.CALL if event.tool_calls else kind, frames)
        if event.text:
            self._say(event.text, frames, is_refusal=event.is_refusal)
        for media in event.media:
            self._show(media, frames)
        for delta in event.tool_calls:
            self._call(delta, frames)
        if event.has_media or event.lost:
            frames.append(unsaid_comment(event, says))
        return b"".join(frames)

    def done(self) -> bytes:
        """Close what is open, and the response with all of it."""
        frames: list[bytes] = []
        if not self._output:
            self._begin_message(frames, is_refusal=False)
        cut = CUT_REASONS.get(self._finish_reason or "")
        if self._kept > MAX_KEPT:
            cut = TOO_LONG
        status = INCOMPLETE if cut else COMPLETED
        self._close_speech(frames, status if not self._calls else COMPLETED)
        for call in self._calls.values():
            self._close_call(call, frames, status)
        response = response_json(
            self._head, status=status, output=self._output, usage=self._usage, cut=cut
        )
        self._put(frames, f"response.{status}", response=response, **self._extensions)
        return b"".join(frames)

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One `error` event; nothing may follow it."""
        return error_event(error, request_id, self._sequence)

    def _think(self, text: str, frames: list[bytes]) -> None:
        item = self._speech
        # What is signed is whole: more of it is another thought.
        if item is None or item.kind != "rs" or item.signature:
            item = self._begin_thought(frames)
        if not item.said:
            self._put_in(
                frames,
                item,
                "response.reasoning_summary_part.added",
                summary_index=0,
                part=summary_json(""),
            )
        item.said.append(text)
        self._put_in(
            frames, item, "response.reasoning_summary_text.delta", summary_index=0, delta=text
        )

    def _begin_thought(self, frames: list[bytes]) -> OpenItem:
        self._close_speech(frames)
        item = self._speech = self._new_item("rs")
        self._announce(item, reasoning_json(item.id, "", ""), frames)
        return item

    def _sign(self, signature: str, kind: Kept, frames: list[bytes]) -> None:
        item = self._speech
        if item is None or item.kind != "rs" or item.signature or kind is not Kept.THOUGHT:
            item = self._begin_thought(frames)
        item.signature, item.signed = signature, kind
        if kind is not Kept.THOUGHT:
            self._close_speech(frames)

    def _say(self, text: str, frames: list[bytes], *, is_refusal: bool) -> None:
        item = self._speech
        if item is None or item.kind != "msg":
            item = self._begin_message(frames, is_refusal=is_refusal)
        elif item.is_refusal is not is_refusal:
            self._close_part(item, frames)
            self._open_part(item, frames, is_refusal=is_refusal)
        item.said.append(text)
        index = len(item.content)
        if is_refusal:
            self._put_in(frames, item, "response.refusal.delta", content_index=index, delta=text)
        else:
            self._put_in(
                frames,
                item,
                "response.output_text.delta",
                content_index=index,
                delta=text,
                logprobs=[],
            )

    def _show(self, media: Media, frames: list[bytes]) -> None:
        if not says(media):
            return
        self._close_speech(frames)
        self._kept += len(media.data)
        item = self._new_item("ig")
        self._announce(item, image_json(item.id, None, IN_PROGRESS), frames)
        self._put_in(frames, item, "response.image_generation_call.completed")
        self._finish(item, image_json(item.id, media.data, COMPLETED), frames)

    def _begin_message(self, frames: list[bytes], *, is_refusal: bool) -> OpenItem:
        self._close_speech(frames)
        item = self._speech = self._new_item("msg")
        self._announce(item, message_json(item.id, [], IN_PROGRESS), frames)
        self._open_part(item, frames, is_refusal=is_refusal)
        return item

    def _open_part(self, item: OpenItem, frames: list[bytes], *, is_refusal: bool) -> None:
        item.said, item.is_refusal = [], is_refusal
        part = refusal_json("") if is_refusal else text_json("")
        self._put_in(
            frames,
            item,
            "response.content_part.added",
            content_index=len(item.content),
            part=part,
        )

    def _close_part(self, item: OpenItem, frames: list[bytes]) -> None:
        index, text = len(item.content), item.text
        if item.is_refusal:
            part = refusal_json(text)
            self._put_in(frames, item, "response.refusal.done", content_index=index, refusal=text)
        else:
            part = text_json(text)
            self._put_in(
                frames,
                item,
                "response.output_text.done",
                content_index=index,
                text=text,
                logprobs=[],
            )
        self._put_in(frames, item, "response.content_part.done", content_index=index, part=part)
        item.content.append(part)

    def _call(self, delta: ToolCallDelta, frames: list[bytes]) -> None:
        call = self._calls.get(delta.index)
        # Some vendors number every parallel call 0: a fresh id is a fresh call as well.
        if call is not None and delta.id and delta.id != call.call_id:
            self._close_call(call, frames, COMPLETED)
            call = None
        if call is None:
            self._close_speech(frames)
            if delta.signature:
                self._sign(delta.signature, Kept.CALL, frames)
            item = self._new_item("fc")
            call = self._calls[delta.index] = item
            item.call_id = delta.id or f"call_{self._head.id}_{item.place}"
            item.name = delta.name or ""
            self._announce(
                item, call_json(item.id, item.call_id, item.name, "", IN_PROGRESS), frames
            )
        if delta.arguments:
            call.said.append(delta.arguments)
            self._put_in(
                frames, call, "response.function_call_arguments.delta", delta=delta.arguments
            )

    def _close_call(self, call: OpenItem, frames: list[bytes], status: str) -> None:
        arguments = call.text
        self._put_in(
            frames,
            call,
            "response.function_call_arguments.done",
            name=call.name,
            arguments=arguments,
        )
        item = call_json(call.id, call.call_id, call.name, arguments, status)
        self._finish(call, item, frames)

    def _close_speech(self, frames: list[bytes], status: str = COMPLETED) -> None:
        """Close a message or a thought, if one is open."""
        item, self._speech = self._speech, None
        if item is None:
            return
        if item.kind == "msg":
            self._close_part(item, frames)
            self._finish(item, message_json(item.id, item.content, status), frames)
            return
        text = item.text
        if item.said:
            self._put_in(
                frames, item, "response.reasoning_summary_text.done", summary_index=0, text=text
            )
            self._put_in(
                frames,
                item,
                "response.reasoning_summary_part.done",
                summary_index=0,
                part=summary_json(text),
            )
        self._finish(item, reasoning_json(item.id, text, item.signature, item.signed), frames)

    def _new_item(self, kind: str) -> OpenItem:
        place = len(self._output)
        self._kept += ITEM_OVERHEAD
        return OpenItem(place=place, id=f"{self._head.id}_{place}", kind=kind)

    def _announce(self, item: OpenItem, document: dict[str, Any], frames: list[bytes]) -> None:
        if not self._sequence:
            response = response_json(self._head, status=IN_PROGRESS)
            self._put(frames, "response.created", response=response)
            self._put(frames, "response.in_progress", response=response)
        self._output.append(None)
        self._put(frames, "response.output_item.added", output_index=item.place, item=document)

    def _finish(self, item: OpenItem, document: dict[str, Any], frames: list[bytes]) -> None:
        self._output[item.place] = document
        self._put(frames, "response.output_item.done", output_index=item.place, item=document)

    def _put_in(self, frames: list[bytes], item: OpenItem, kind: str, **members: Any) -> None:
        item_id = f"{item.kind}_{item.id}"
        self._put(frames, kind, item_id=item_id, output_index=item.place, **members)

    def _put(self, frames: list[bytes], kind: str, **members: Any) -> None:
        document = {"type": kind, "sequence_number": self._sequence, **members}
        self._sequence += 1
        frames.append(frame(kind.encode(), write(document)))
