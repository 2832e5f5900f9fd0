"""A stream of the legacy completions API, written for the events of any dialect."""

from typing import Any

from cluster_gw.canonical.conversation import Part, Refusal, Text
from cluster_gw.canonical.events import StreamEvent
from cluster_gw.surfaces.chat_stream import ChunkStream


class TextStream(ChunkStream):
    """Writes frames of text; what is no text, such as reasoning, has no place in this format."""

    prefix = "cmpl"
    kind = "text_completion"

    @staticmethod
    def _says(part: Part) -> bool:
        return says(part)

    def _choice(self, index: int, piece: StreamEvent) -> dict[str, Any] | None:
        if not (piece.text or piece.finish_reason):
            return None
        return choice_json(index, piece.text, piece.finish_reason)


def says(part: Part) -> bool:
    """Whether this format has words for a part."""
    return isinstance(part, Text | Refusal)


def choice_json(index: int, text: str, finish_reason: str | None) -> dict[str, Any]:
    """One choice, or a piece of it."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish_reason}
