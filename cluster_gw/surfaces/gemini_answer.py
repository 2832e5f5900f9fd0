"""Answers of other dialects as generateContent has them: whole ones, and the parts of a stream."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Media, Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Usage
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.wire.gemini import MARKED
from cluster_gw.wire.json_codec import (
    FIELDS_READER,
    InvalidJsonError,
    UnexpectedShapeError,
    write,
)

FINISH_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "tool_calls": "STOP",
        "function_call": "STOP",
        "content_filter": "SAFETY",
    }
)
MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
NO_ARGUMENTS: Final = msgspec.Raw(b"{}")


def answer_json(answer: Answer, head: StreamHead) -> dict[str, Any]:
    """The document of an answer."""
    candidates = [candidate_of(place, choice) for place, choice in enumerate(answer.choices)]
    return response_json(candidates, answer.usage, head)


def response_json(
    candidates: list[dict[str, Any]], usage: Usage | None, head: StreamHead
) -> dict[str, Any]:
    """One answer, or one frame of a stream."""
    document: dict[str, Any] = {"candidates": candidates}
    if usage is not None:
        document["usageMetadata"] = usage_json(usage)
    document["modelVersion"] = head.model
    document["responseId"] = head.id
    return document


def candidate_of(index: int, choice: Choice) -> dict[str, Any]:
    """One answer; a call that holds no object of arguments is what the vendor calls malformed."""
    parts = [one for part in choice.parts if (one := part_json(part)) is not None]
    is_broken = any(
        isinstance(part, ToolUse) and arguments_of(part.arguments) is None for part in choice.parts
    )
    reason = MALFORMED if is_broken else finish_reason(choice.finish_reason)
    return candidate_json(index, parts, reason)


def candidate_json(
    index: int, parts: Iterable[dict[str, Any]], reason: str | None = None
) -> dict[str, Any]:
    """One candidate of an answer or of a frame."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}}
    if reason is not None:
        candidate["finishReason"] = reason
    candidate["index"] = index
    return candidate


def says(part: Part) -> bool:
    """Whether this format has words for a part; a broken call has them in the finish reason."""
    return isinstance(part, ToolUse) or part_json(part) is not None


def part_json(part: Part) -> dict[str, Any] | None:
    """One part; None for a call without sound arguments and for thoughts nobody can read."""
    if isinstance(part, Text | Refusal):
        return {"text": part.text}
    if isinstance(part, Thinking):
        return thought_json(part.text, part.signature) if not part.is_redacted else None
    if isinstance(part, ToolUse):
        return call_json(part)
    return media_json(part) if isinstance(part, Media) else None


def media_json(media: Media) -> dict[str, Any]:
    """An image, a sound or a document."""
    if media.url:
        return {"fileData": {"mimeType": media.media_type, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.media_type, "data": media.data}}


def thought_json(text: str, signature: str) -> dict[str, Any] | None:
    """One thought, with what proves it to another vendor; None without either."""
    # Without its mark it may be no base64, which this format demands.
    proof = {"thoughtSignature": signature} if signature.startswith(MARKED) else {}
    return {"text": text, "thought": True, **proof} if text or proof else None


def call_json(call: ToolUse) -> dict[str, Any] | None:
    """One call; None when its arguments are no object."""
    arguments = arguments_of(call.arguments)
    if arguments is None:
        return None
    function: dict[str, Any] = {"name": call.name, "args": arguments}
    if call.id:
        function["id"] = call.id
    part: dict[str, Any] = {"functionCall": function}
    if call.signature:
        part["thoughtSignature"] = call.signature
    return part


def arguments_of(text: str) -> msgspec.Raw | None:
    """The arguments of a call as they go into a document; None when they are no object."""
    if not text.strip():
        return NO_ARGUMENTS
    try:
        return msgspec.Raw(write(FIELDS_READER.read(text.encode("utf-8", "replace"))))
    except (InvalidJsonError, UnexpectedShapeError):
        return None


def finish_reason(reason: str | None) -> str:
    """The vendor's word for why an answer ended."""
    return FINISH_REASONS.get(reason or "stop", "OTHER")


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token counts; thoughts are counted apart here, and the details only where there are any."""
    document: dict[str, Any] = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": max(0, usage.completion_tokens - usage.reasoning_tokens),
        "totalTokenCount": usage.total_tokens,
    }
    if usage.cached_prompt_tokens:
        document["cachedContentTokenCount"] = usage.cached_prompt_tokens
    if usage.reasoning_tokens:
        document["thoughtsTokenCount"] = usage.reasoning_tokens
    if usage.audio_prompt_tokens:
        document["promptTokensDetails"] = [audio_json(usage.audio_prompt_tokens)]
    if usage.audio_completion_tokens:
        document["candidatesTokensDetails"] = [audio_json(usage.audio_completion_tokens)]
    return document


def audio_json(tokens: int) -> dict[str, Any]:
    """Tokens of sounds."""
    return {"modality": "AUDIO", "tokenCount": tokens}
