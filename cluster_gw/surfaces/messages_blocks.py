"""The blocks of a message as frames: one after the other, whatever order their pieces come in.

A block that has ended cannot go on. Other dialects may mix the pieces of several calls, so what
comes while a call is not whole waits behind it. However they are mixed, the work grows with the
length of the stream alone.
"""

from collections import deque
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.surfaces.messages_answer import clean_id, object_of
from cluster_gw.wire.anthropic_messages import FOREIGN, FOREIGN_CALL
from cluster_gw.wire.json_brackets import Brackets
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_event

TEXT: Final = "text"
THINKING: Final = "thinking"
REDACTED: Final = "redacted_thinking"
CALL: Final = "tool_use"
MAX_KEPT: Final = 1_048_576  # characters; who mixes more than that gets it in pieces
MOST_PIECES: Final = 4096
MOST_CALLS: Final = 1024  # that have ended and are remembered one by one
OVERHEAD: Final = 128  # of each block that waits, in characters
DELTAS: Final = MappingProxyType(
    {TEXT: ("text_delta", "text"), THINKING: ("thinking_delta", "thinking")}
)


class Kept(msgspec.Struct, gc=False):
    """Text that waits, or arguments that may go on, in the pieces they came in.

    Attributes:
        size: characters of all of it.
        is_long: it has outgrown `MAX_KEPT` and is not kept any more.
        is_broken: it can be no object any more.
        looked_at: so many pieces went through `brackets`.
    """

    texts: list[str]
    size: int
    brackets: Brackets
    looked_at: int = 0
    is_long: bool = False
    is_broken: bool = False

    @property
    def is_object(self) -> bool:
        """Whether it is one, whole; no piece is looked at twice.

        It is read when its brackets are closed: then it is an object, or never will be.
        """
        self._look()
        if self.is_broken or not self.brackets.is_closed:
            return False
        self.is_broken = object_of("".join(self.texts)) is None
        return not self.is_broken

    def add(self, text: str) -> None:
        """Go on with the next piece."""
        self.texts.append(text)
        self.size += len(text)
        if len(self.texts) > MOST_PIECES:  # tiny ones take thirty times their size
            self._look()
            self.texts, self.looked_at = ["".join(self.texts)], 1

    def bound(self) -> None:
        """Keep no more than may be kept."""
        if self.is_long or self.size > MAX_KEPT:
            self.is_long = True
            self.texts.clear()
            self.looked_at = 0

    def _look(self) -> None:
        """Let the brackets see the pieces that they have not seen."""
        for text in self.texts[self.looked_at :]:
            self.brackets.take(text)
        self.looked_at = len(self.texts)


class Piece(msgspec.Struct, gc=False):
    """A block, as far as it is known.

    Attributes:
        kind: of the block.
        text: what it began with: words, or arguments as JSON.
        kept: all of its text, once there is more than that.
        call: number of the call in the upstream's stream.
        signature: of a thought, with its mark.
    """

    kind: str
    text: str = ""
    kept: Kept | None = None
    call: int = -1
    id: str = ""
    name: str = ""
    signature: str = ""

    @property
    def all_text(self) -> str:
        """What it holds."""
        return self.text if self.kept is None else "".join(self.kept.texts)

    @property
    def size(self) -> int:
        """Characters that wait with it."""
        return OVERHEAD + (len(self.text) if self.kept is None else self.kept.size)

    @property
    def is_whole(self) -> bool:
        """Whether it may end: a call may when its arguments are an object, or too long to know."""
        if self.kind != CALL:
            return True
        kept = self.keeping()
        return kept.is_long or kept.is_object

    def keeping(self) -> Kept:
        """Where its text is kept from now on."""
        if self.kept is None:
            self.kept = Kept(texts=[self.text], size=len(self.text), brackets=Brackets())
        return self.kept

    @property
    def is_signed(self) -> bool:
        """Whether no more words may follow."""
        return bool(self.signature)


class BlockWriter:
    """Writes the blocks of one message.

    Args:
        message_id: makes ids for calls that came without.

    Attributes:
        has_calls: a tool is called.
    """

    def __init__(self, message_id: str) -> None:
        self.has_calls = False
        self._message_id = message_id
        self._index = -1
        self._open: Piece | None = None
        self._waiting: deque[Piece] = deque()
        self._waiting_calls: dict[int, Piece] = {}
        self._kept = 0
        self._begun_calls: set[int] = set()
        self._ended_calls: set[int] = set()
        self._all_ended_below = 0
        self._frames: list[bytes] = []

    def take(self, event: StreamEvent) -> bytes:
        """The frames of what an event adds."""
        if event.reasoning:
            self._add(Piece(kind=THINKING, text=event.reasoning))
        if event.signature:
            self._sign(event)
        if event.text:
            self._add(Piece(kind=TEXT, text=event.text))
        for call in event.tool_calls:
            self._add_call(call)
        return self._written()

    def end(self) -> bytes:
        """The frames of all that waits, and the end of the last block."""
        self._close()
        for piece in self._waiting:
            self._begin(piece)
            self._close()
        self._waiting.clear()
        self._waiting_calls.clear()
        self._kept = 0
        return self._written()

    def _sign(self, event: StreamEvent) -> None:
        """A signature ends the thought it belongs to, or stands before the call it belongs to."""
        if event.is_redacted:
            self._add(Piece(kind=REDACTED, signature=FOREIGN + event.signature))
        elif event.tool_calls:
            self._add(Piece(kind=THINKING, signature=FOREIGN_CALL + event.signature))
        else:
            self._add(Piece(kind=THINKING, signature=FOREIGN + event.signature))

    def _add_call(self, call: ToolCallDelta) -> None:
        self.has_calls = True
        fragment = Piece(kind=CALL, text=call.arguments, call=call.index)
        if not (call.index in self._begun_calls or self._has_ended(call.index)):
            self._begun_calls.add(call.index)
            fragment.id = call.id or f"toolu_{self._message_id}_{call.index}"
            fragment.name = call.name or ""
            if call.signature:
                self._add(Piece(kind=THINKING, signature=FOREIGN_CALL + call.signature))
        self._add(fragment)

    def _add(self, piece: Piece) -> None:
        """Write a piece, or let it wait for the call that is not whole yet."""
        if piece.kind == CALL and self._has_ended(piece.call):
            return  # its arguments were whole: what follows belongs to nothing
        if self._open is None:
            self._begin(piece)
        elif joins(piece, self._open):
            self._go_on(piece)
        elif self._waiting or not self._open.is_whole:
            self._wait(piece)
        else:
            self._close()
            self._begin(piece)

    def _wait(self, piece: Piece) -> None:
        other = self._waiting_calls.get(piece.call)
        if piece.kind != CALL:
            other = self._waiting[-1] if self._waiting else None
        if other is not None and joins(piece, other):
            self._kept += len(piece.text)
            other.keeping().add(piece.text)
            other.signature += piece.signature
        else:
            self._kept += piece.size
            self._waiting.append(piece)
            if piece.kind == CALL:
                self._waiting_calls[piece.call] = piece
        if self._kept > MAX_KEPT:
            self._go_over()

    def _go_on(self, piece: Piece) -> None:
        current = self._open
        assert current is not None  # noqa: S101 - `_add` has looked
        self._tell(piece)
        if current.kind == CALL:
            kept = current.keeping()
            kept.add(piece.text)
            kept.bound()
        current.signature += piece.signature
        while self._waiting and self._open is not None and self._open.is_whole:
            self._go_over()

    def _go_over(self) -> None:
        """End what is open and begin what has waited longest."""
        self._close()
        piece = self._waiting.popleft()
        if piece.kind == CALL:
            del self._waiting_calls[piece.call]
        self._kept -= piece.size
        self._begin(piece)

    def _begin(self, piece: Piece) -> None:
        self._index += 1
        self._open = piece
        block: dict[str, Any]
        if piece.kind == CALL:
            name = {"id": clean_id(piece.id), "name": piece.name, "input": {}}
            block = {"type": CALL, **name}
        elif piece.kind == THINKING:
            block = {"type": THINKING, "thinking": "", "signature": ""}
        elif piece.kind == REDACTED:
            block = {"type": REDACTED, "data": piece.signature}
        else:
            block = {"type": TEXT, "text": ""}
        self._frame("content_block_start", {"content_block": block})
        self._tell(piece)

    def _tell(self, piece: Piece) -> None:
        """The deltas of what a piece holds."""
        text = piece.all_text
        if piece.kind == CALL:
            if text:
                self._delta("input_json_delta", "partial_json", text)
            return
        if text:
            self._delta(*DELTAS[piece.kind], text)
        if piece.signature and piece.kind == THINKING:
            self._delta("signature_delta", "signature", piece.signature)

    def _close(self) -> None:
        piece, self._open = self._open, None
        if piece is None:
            return
        if piece.kind == THINKING and not piece.signature:
            self._delta("signature_delta", "signature", FOREIGN)
        if piece.kind == CALL:
            self._note_end(piece.call)
        self._frame("content_block_stop", {})

    def _has_ended(self, call: int) -> bool:
        if call in self._ended_calls:
            return True
        return call < self._all_ended_below and call not in self._begun_calls

    def _note_end(self, call: int) -> None:
        """Remember that a call was told; of very many the first in one number."""
        self._begun_calls.discard(call)
        self._ended_calls.add(call)
        if len(self._ended_calls) > MOST_CALLS:
            first = min(self._ended_calls)
            self._ended_calls.remove(first)
            self._all_ended_below = max(self._all_ended_below, first + 1)

    def _delta(self, kind: str, member: str, value: str) -> None:
        self._frame("content_block_delta", {"delta": {"type": kind, member: value}})

    def _frame(self, name: str, members: dict[str, Any]) -> None:
        document = {"type": name, "index": self._index, **members}
        self._frames.append(encode_event(name.encode(), write(document)))

    def _written(self) -> bytes:
        frames, self._frames = self._frames, []
        return b"".join(frames)


def joins(piece: Piece, other: Piece) -> bool:
    """Whether a piece goes on with what another began."""
    if piece.kind != other.kind or piece.kind == REDACTED:
        return False
    return piece.call == other.call and not other.is_signed
