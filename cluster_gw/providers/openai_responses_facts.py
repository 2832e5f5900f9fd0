"""What items, usage and ends of the Responses dialect say in the internal language."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.canonical.conversation import Media
from cluster_gw.canonical.events import Usage
from cluster_gw.providers.openai_facts import count
from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_responses import (
    SIGNED_BY_VENDOR,
    Incomplete,
    OutputItem,
    ResponseBody,
    ResponseUsage,
    StreamedResponse,
)

MESSAGE: Final = "message"
REASONING: Final = "reasoning"
IMAGE: Final = "image_generation_call"
TEXT_READER: Final = JsonReader[str](str)
FUNCTION_CALL: Final = "function_call"
ANNOTATIONS: Final = "annotations"
NONE: Final = frozenset({b"", b"null", b"[]"})
TOLD: Final = frozenset({REASONING, MESSAGE, FUNCTION_CALL, IMAGE})
BETWEEN_SUMMARIES: Final = "\n\n"
REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {"max_output_tokens": "length", "content_filter": "content_filter"}
)


def usage_of(usage: ResponseUsage | None) -> Usage | None:
    """Token counts, None when they are missing or all zero."""
    if usage is None:
        return None
    prompt, completion = count(usage.input_tokens), count(usage.output_tokens)
    total = count(usage.total_tokens) or prompt + completion
    if not total:
        return None
    given, drawn = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cached_prompt_tokens=0 if given is None else count(given.cached_tokens),
        reasoning_tokens=0 if drawn is None else count(drawn.reasoning_tokens),
    )


def call_name(item: OutputItem) -> str:
    """The name of what is called."""
    return item.name or item.type


def call_id(item: OutputItem) -> str | None:
    """What the result of a call will name."""
    return item.call_id or item.id


def lost_of(item: OutputItem) -> Iterator[str]:
    """What of an item has no words in the internal language, by name."""
    if item.type and item.type not in TOLD:
        yield item.type
    if any(bytes(part.annotations) not in NONE for part in item.content or ()):
        yield ANNOTATIONS


def reason_of_cut(details: Incomplete | None) -> str:
    """The finish reason of an answer that is incomplete."""
    return REASONS.get((details and details.reason) or "", "length")


def reason_of_whole(*, has_calls: bool) -> str:
    """The finish reason of a complete answer: the dialect has no word for waiting on tools."""
    return "tool_calls" if has_calls else "stop"


def kept_as(answer: ResponseBody | StreamedResponse) -> str:
    """The name by which the vendor keeps an answer, which it does unless it says otherwise."""
    return "" if answer.store is False or answer.id is None else answer.id


def signature_of(item: OutputItem) -> str:
    """The proof of a thought, as it travels in other dialects; empty without one."""
    return SIGNED_BY_VENDOR + item.encrypted_content if item.encrypted_content else ""


def thought_of(item: OutputItem) -> str:
    """A thought in words: its summaries, or all of it where the vendor shows that."""
    parts = item.summary or item.content or ()
    return BETWEEN_SUMMARIES.join([part.text for part in parts if part.text])


def image_of(item: OutputItem) -> tuple[Media, ...]:
    """The image that a call of the vendor's own tool made."""
    if item.type != IMAGE or not bytes(item.result).startswith(b'"'):
        return ()
    return (Media(media_type="image/png", data=TEXT_READER.read(item.result)),)
