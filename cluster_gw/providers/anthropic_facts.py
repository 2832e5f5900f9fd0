"""From Anthropic's structs to the internal language: usage, why an answer ended, what it says."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, ToolCallDelta, Usage
from cluster_gw.wire.anthropic_answer import (
    ANSWER_LAX,
    ANSWER_READER,
    AnswerBlock,
    AnswerBody,
    OutputDetails,
    UsageBody,
)
from cluster_gw.wire.anthropic_messages import SIGNED
from cluster_gw.wire.json_codec import (
    UnexpectedShapeError,
    UnpairedSurrogateError,
    read_any,
    write,
)

FINISH_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
)
TOLD: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
CITATIONS: Final = "citations"
NONE: Final = frozenset({b"", b"null", b"[]"})
NO_INPUT: Final = "{}"
COUNTS: Final = (
    "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
)  # fmt: skip


def finish_of(stop_reason: str | None) -> str | None:
    """OpenAI's word for an end; a word nobody knows is an end all the same."""
    return None if stop_reason is None else FINISH_REASONS.get(stop_reason, "stop")


def larger(before: UsageBody | None, told: UsageBody | None) -> UsageBody | None:
    """Counts of a stream so far: each only grows, and what is not told again stays."""
    if before is None or told is None:
        return told or before
    counts = {
        name: max(count(getattr(before, name)), count(getattr(told, name))) for name in COUNTS
    }
    thinking = max(thinking_of(before), thinking_of(told))
    return UsageBody(**counts, output_tokens_details=OutputDetails(thinking_tokens=thinking))


def usage_of(usage: UsageBody | None) -> Usage | None:
    """Token counts, None when they are missing or all zero."""
    if usage is None:
        return None
    cached = count(usage.cache_read_input_tokens)
    prompt = count(usage.input_tokens) + count(usage.cache_creation_input_tokens) + cached
    completion = count(usage.output_tokens)
    if not (prompt or completion):
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_prompt_tokens=cached,
        reasoning_tokens=thinking_of(usage),
    )


def thinking_of(usage: UsageBody) -> int:
    """Tokens of thoughts."""
    details = usage.output_tokens_details
    return 0 if details is None else count(details.thinking_tokens)


def count(value: int | None) -> int:
    """A count that is at least 0."""
    return value if value is not None and value > 0 else 0


def completion_of(body: bytes, answer: AnswerBody) -> Completion:
    """The facts of a sound answer."""
    blocks = answer.content or []
    text = "".join([block.text or "" for block in blocks if block.type == "text"])
    calls = tuple(call_of(block, place) for place, block in enumerate(calls_in(blocks)))
    unspoken = sum([len(block.thinking or "") for block in blocks])
    unspoken += sum([len(call.name or "") + len(call.arguments) for call in calls])
    return Completion(
        raw=body,
        text=text,
        characters=len(text) + unspoken,
        tool_calls=calls,
        finish_reason=finish_of(answer.stop_reason),
        usage=usage_of(answer.usage),
        has_media=any(block.type and block.type not in TOLD for block in blocks),
    )


def calls_in(blocks: list[AnswerBlock]) -> list[AnswerBlock]:
    """Calls of the client's tools; those of the vendor's own are run by the vendor."""
    return [block for block in blocks if block.type == "tool_use"]


def call_of(block: AnswerBlock, place: int) -> ToolCallDelta:
    """One whole call."""
    return ToolCallDelta(
        index=place, id=block.id or None, name=block.name, arguments=input_text(block.input)
    )


def input_text(given: msgspec.Raw) -> str:
    """The input of a call as JSON text."""
    return bytes(given).decode("utf-8", "replace") or NO_INPUT


def answer_of(completion: Completion) -> Answer:
    """The whole of a completion that this codec decoded."""
    body = body_of(completion.raw)
    parts: list[Part] = []
    for place, block in enumerate(body.content or ()):
        part = part_of(block, place)
        if part is not None:
            parts.append(part)
    choice = Choice(
        parts=tuple(parts),
        finish_reason=finish_of(body.stop_reason) or "stop",
        stop_sequence=body.stop_sequence,
    )
    return Answer(
        id=body.id or "",
        choices=(choice,),
        usage=completion.usage,
        lost=tuple(dict.fromkeys(one for block in body.content or () for one in lost_of(block))),
    )


def lost_of(block: AnswerBlock) -> Iterator[str]:
    """What of a block, or of its beginning, has no words in the internal language, by name."""
    if block.type and block.type not in TOLD:
        yield block.type
    if bytes(block.citations) not in NONE:
        yield CITATIONS


def body_of(raw: bytes) -> AnswerBody:
    """The body of an answer, even one with numbers as text or half an emoji.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is none.
    """
    try:
        return ANSWER_READER.read(raw)
    except (UnexpectedShapeError, UnpairedSurrogateError):
        return ANSWER_LAX.read(write(read_any(raw)))


def part_of(block: AnswerBlock, place: int) -> Part | None:
    """One block; None for what has no words in the internal language."""
    match block.type:
        case "text":
            return Text(text=block.text) if block.text else None
        case "thinking":
            signature = SIGNED + block.signature if block.signature else ""
            return Thinking(text=block.thinking or "", signature=signature)
        case "redacted_thinking":
            return Thinking(signature=SIGNED + (block.data or ""), is_redacted=True)
        case "tool_use":
            return ToolUse(
                id=block.id or f"call_{place}",
                name=block.name or "",
                arguments=input_text(block.input),
            )
        case _:
            return None
