"""From Gemini's structs to the internal language: what an answer says, and its tokens."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.conversation import Media
from cluster_gw.canonical.events import ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.openai_errors import document_of as any_document
from cluster_gw.providers.openai_errors import malformed_fault
from cluster_gw.wire.gemini import (
    ANSWER_READER,
    MODALITIES_READER,
    AnswerBody,
    CallBody,
    Candidate,
    MediaBody,
    SpokenPart,
    UsageMetadata,
)
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    read_any,
    write,
)
from cluster_gw.wire.redact import redact

ABSENT: Final = frozenset({b"", b"null"})
BLOCKED: Final = "content_filter"
FINISH_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": BLOCKED,
        "RECITATION": BLOCKED,
        "LANGUAGE": BLOCKED,
        "BLOCKLIST": BLOCKED,
        "PROHIBITED_CONTENT": BLOCKED,
        "SPII": BLOCKED,
        "MODEL_ARMOR": BLOCKED,
        "IMAGE_SAFETY": BLOCKED,
        "IMAGE_PROHIBITED_CONTENT": BLOCKED,
        "IMAGE_RECITATION": BLOCKED,
    }
)
FAILURES: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
    | {"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"}
)
"""Ends that are no answer when nothing was said before them: the model failed, another may not."""
UNKNOWN: Final = "a part of another kind"
GROUNDING: Final = "groundingMetadata"
CITATIONS: Final = "citationMetadata"
AUDIO: Final = "AUDIO"
NO_MEMBER: Final = frozenset({b"", b"null", b"{}"})
NO_REASON: Final = frozenset({None, "", "FINISH_REASON_UNSPECIFIED"})


def read_body(data: bytes) -> AnswerBody:
    """Read one answer, or one frame of a stream; half an emoji in it becomes `?`.

    Raises:
        InvalidJsonError: no JSON.
        UnexpectedShapeError: not of the format.
    """
    try:
        return ANSWER_READER.read(data)
    except UnpairedSurrogateError:
        return ANSWER_READER.read(write(read_any(data)))


def broken_fault(error: InvalidJsonError | UnexpectedShapeError, what: str) -> Fault:
    """The fault of something that is not of the format."""
    if isinstance(error, InvalidJsonError):
        return malformed_fault(f"{what} is no JSON")
    return malformed_fault(f"{what} is not of its format: {error}")


def has_error(body: AnswerBody) -> bool:
    """Whether it is an error object."""
    return bytes(body.error) not in ABSENT


def document_of(body: AnswerBody) -> dict[str, Any]:
    """The error object as plain values; bytes of it that are no text become marks."""
    return {"error": any_document(bytes(body.error).decode("utf-8", "replace").encode())}


def parts_of(candidate: Candidate) -> list[SpokenPart]:
    """What a candidate says."""
    content = candidate.content
    return [] if content is None or content.parts is None else content.parts


def is_spoken(part: SpokenPart) -> bool:
    """Whether a part is something to hand on."""
    return bool(part.text or part.function_call is not None or part.inline_data or part.file_data)


def is_unknown(part: SpokenPart) -> bool:
    """Whether a part is of a kind that only this vendor knows, such as code that it ran."""
    return part.text is None and not is_spoken(part) and not part.thought_signature


def lost_of(candidate: Candidate) -> Iterator[str]:
    """What a candidate says that nothing in the internal language stands for, by name."""
    if any(map(is_unknown, parts_of(candidate))):
        yield UNKNOWN
    if bytes(candidate.grounding_metadata) not in NO_MEMBER:
        yield GROUNDING
    if bytes(candidate.citation_metadata) not in NO_MEMBER:
        yield CITATIONS


def text_of(parts: list[SpokenPart]) -> str:
    """All text that is no thought."""
    return "".join([part.text for part in parts if part.text and not part.thought])


def thoughts_of(parts: list[SpokenPart]) -> str:
    """All thoughts."""
    return "".join([part.text for part in parts if part.text and part.thought])


def has_media(parts: list[SpokenPart]) -> bool:
    """Whether anything is shown rather than said."""
    return any(part.inline_data is not None or part.file_data is not None for part in parts)


def media_of(parts: list[SpokenPart]) -> tuple[Media, ...]:
    """What is shown rather than said."""
    given = [part.inline_data or part.file_data for part in parts if part.function_call is None]
    return tuple([medium_of(one) for one in given if one is not None])


def medium_of(media: MediaBody) -> Media:
    """Something that is shown."""
    return Media(media_type=media.mime_type or "", data=media.data or "", url=media.file_uri or "")


def calls_of(parts: list[SpokenPart], numbers: Iterator[int]) -> tuple[ToolCallDelta, ...]:
    """The calls among some parts, each whole; those without an id get one of their number."""
    return tuple(
        [
            call_of(part.function_call, next(numbers), part.thought_signature or "")
            for part in parts
            if part.function_call is not None
        ]
    )


def call_of(call: CallBody, number: int, signature: str) -> ToolCallDelta:
    """One call; `number` counts from 1."""
    return ToolCallDelta(
        index=number - 1,
        id=call.id or f"call_{number}",
        name=call.name or "",
        arguments=arguments_of(call),
        signature=signature,
    )


def arguments_of(call: CallBody) -> str:
    """The arguments of a call as JSON text."""
    return "{}" if bytes(call.args) in ABSENT else bytes(call.args).decode("utf-8", "replace")


def reason_of(candidate: Candidate, *, has_calls: bool) -> str | None:
    """Why a candidate ended, in the words of the internal language; None while it has not."""
    given = candidate.finish_reason
    if given in NO_REASON:
        return None
    word = FINISH_REASONS.get(given or "", "stop")
    return "tool_calls" if has_calls and word == "stop" else word


def failure_of(candidate: Candidate, secret: str | None) -> Fault | None:
    """The fault of an end that is none; only for a candidate that said nothing."""
    if candidate.finish_reason not in FAILURES:
        return None
    message = candidate.finish_message or f"finish reason {candidate.finish_reason}"
    return Fault(
        kind=FaultKind.IN_BAND, type=candidate.finish_reason, message=redact(message, secret)
    )


def is_blocked(body: AnswerBody) -> bool:
    """Whether the prompt was refused before any answer."""
    return (
        not body.candidates
        and body.prompt_feedback is not None
        and bool(body.prompt_feedback.block_reason)
    )


def usage_of(usage: UsageMetadata | None, before: Usage | None = None) -> Usage | None:
    """Token counts, never below those of `before`: single frames leave some of them out."""
    if usage is None:
        return None
    known = before or Usage()
    prompt = count(usage.prompt_token_count) + count(usage.tool_use_prompt_token_count)
    thoughts = count(usage.thoughts_token_count)
    prompt = max(prompt, known.prompt_tokens)
    spoken = max(count(usage.candidates_token_count) + thoughts, known.completion_tokens)
    total = max(count(usage.total_token_count), prompt + spoken, known.total_tokens)
    if not total:
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=spoken,
        total_tokens=total,
        cached_prompt_tokens=max(
            count(usage.cached_content_token_count), known.cached_prompt_tokens
        ),
        reasoning_tokens=max(thoughts, known.reasoning_tokens),
        audio_prompt_tokens=max(audio_in(usage.prompt_tokens_details), known.audio_prompt_tokens),
        audio_completion_tokens=max(
            audio_in(usage.candidates_tokens_details), known.audio_completion_tokens
        ),
    )


def audio_in(details: msgspec.Raw) -> int:
    """Tokens of sounds; 0 where the details cannot be read, which is no reason to fail."""
    if AUDIO.encode() not in bytes(details):
        return 0
    try:
        counts = MODALITIES_READER.read(details)
    except (InvalidJsonError, UnexpectedShapeError):
        return 0
    return sum([count(one.token_count) for one in counts if one.modality == AUDIO])


def count(value: int | None) -> int:
    """A count that is at least 0."""
    return value if value is not None and value > 0 else 0
