"""From vendor structs to the internal language: what a frame or an answer says, and its tokens."""

from collections.abc import Iterable, Sequence

import msgspec

from cluster_gw.canonical.conversation import Media
from cluster_gw.canonical.events import ToolCallDelta, Usage
from cluster_gw.wire.media import image_at
from cluster_gw.wire.openai_chat import SpokenBody, ToolCallBody, UsageBody


def is_plain(spoken: SpokenBody) -> bool:
    """Whether nothing but text and reasoning is spoken, and nothing shown."""
    return (
        spoken.tool_calls is None
        and spoken.refusal is None
        and spoken.audio is None
        and spoken.function_call is None
        and spoken.images is None
    )


def text_of(spoken: SpokenBody) -> str:
    """Answer text; a refusal and a transcript are answers as well."""
    text = spoken.content or ""
    if spoken.refusal:
        text += spoken.refusal
    if spoken.audio is not None and spoken.audio.transcript:
        text += spoken.audio.transcript
    return text


def reasoning_of(spoken: SpokenBody) -> str:
    """Reasoning text; vendors that send both members repeat themselves."""
    return spoken.reasoning_content or spoken.reasoning or ""


def calls_of(spoken: SpokenBody) -> tuple[ToolCallDelta, ...]:
    """Fragments of tool calls, the one legacy `function_call` among them."""
    calls = [call_of(call, place) for place, call in enumerate(spoken.tool_calls or ())]
    legacy = spoken.function_call
    if legacy is not None:
        calls.append(ToolCallDelta(name=legacy.name, arguments=legacy.arguments or ""))
    return tuple(calls)


def images_of(spoken: SpokenBody) -> tuple[Media, ...]:
    """Images that the model made."""
    urls = [one.image_url.url for one in spoken.images or () if one.image_url is not None]
    return tuple([image_at(url) for url in urls if url])


def unspoken_characters(spoken: SpokenBody) -> int:
    """Output characters beside the answer text: reasoning, names and arguments of tool calls."""
    calls = sum(len(call.name or "") + len(call.arguments) for call in calls_of(spoken))
    return len(reasoning_of(spoken)) + calls


def call_of(call: ToolCallBody, place: int) -> ToolCallDelta:
    """One fragment; `place` in its list stands in for a missing index."""
    function = call.function
    return ToolCallDelta(
        index=place if call.index is None else call.index,
        id=call.id or None,
        name=function.name if function is not None else None,
        arguments=(function.arguments or "") if function is not None else "",
    )


def usage_of(usage: UsageBody | None) -> Usage | None:
    """Token counts, None when they are missing or all zero: some vendors send zeros for unknown."""
    if usage is None:
        return None
    prompt, completion, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
    if not (prompt and completion and total and prompt > 0 and completion > 0 and total > 0):
        prompt, completion = count(prompt), count(completion)
        total = count(total) or prompt + completion
    if not total:
        return None
    prompt_details, details = usage.prompt_tokens_details, usage.completion_tokens_details
    told = Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cached_prompt_tokens=0 if prompt_details is None else count(prompt_details.cached_tokens),
        reasoning_tokens=0 if details is None else count(details.reasoning_tokens),
    )
    heard = None if prompt_details is None else prompt_details.audio_tokens
    spoken = None if details is None else details.audio_tokens
    if not (heard or spoken):
        return told
    return msgspec.structs.replace(
        told, audio_prompt_tokens=count(heard), audio_completion_tokens=count(spoken)
    )


def count(value: int | None) -> int:
    """A count that is at least 0."""
    return value if value is not None and value > 0 else 0


def joined(texts: Iterable[str]) -> str:
    """All texts, concatenated."""
    return "".join(texts)


def first_reason(reasons: Sequence[str | None]) -> str | None:
    """The first finish reason that was given."""
    return next((reason for reason in reasons if reason), None)
