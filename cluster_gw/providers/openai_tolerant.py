"""Second reading of an answer that bends the format; slow, and it never gives up on a mapping.

Seen: content as a list of parts (Mistral's reasoning models), counts as text or floats, tool
arguments as an object, a missing `function`, choices as an object, half an emoji in a frame.
"""

from collections.abc import Mapping
from typing import Any

from cluster_gw.wire.json_codec import write
from cluster_gw.wire.openai_chat import (
    AnswerBody,
    AnswerChoice,
    AudioBody,
    ChunkBody,
    ChunkChoice,
    CompletionDetails,
    FunctionBody,
    ImageAddress,
    PromptDetails,
    SpokenBody,
    SpokenImage,
    ToolCallBody,
    UsageBody,
)


def bend_chunk(document: Mapping[str, Any]) -> ChunkBody:
    """A frame as the strict reader would have given it; errors are the caller's question."""
    return ChunkBody(
        choices=[
            ChunkChoice(
                index=whole(choice.get("index")),
                delta=bend_spoken(choice.get("delta") or choice.get("message")),
                finish_reason=text_or_none(choice.get("finish_reason")),
            )
            for choice in mappings(document.get("choices"))
        ],
        usage=bend_usage(document.get("usage")),
    )


def bend_answer(document: Mapping[str, Any]) -> AnswerBody:
    """A buffered answer as the strict reader would have given it."""
    return AnswerBody(
        choices=[
            AnswerChoice(
                message=bend_spoken(choice.get("message") or choice.get("delta")),
                finish_reason=text_or_none(choice.get("finish_reason")),
            )
            for choice in mappings(document.get("choices"))
        ],
        usage=bend_usage(document.get("usage")),
    )


def bend_spoken(spoken: Any) -> SpokenBody | None:
    """What a choice says."""
    if not isinstance(spoken, Mapping):
        return None
    content = spoken.get("content")
    reasoning = spoken.get("reasoning_content") or spoken.get("reasoning")
    return SpokenBody(
        content=part_texts(content, "text"),
        reasoning_content=part_texts(reasoning, "text") or part_texts(content, "thinking"),
        refusal=text_or_none(spoken.get("refusal")),
        tool_calls=[bend_call(call) for call in mappings(spoken.get("tool_calls"))] or None,
        function_call=bend_function(spoken.get("function_call")),
        audio=bend_audio(spoken.get("audio")),
        images=[bend_image(image) for image in mappings(spoken.get("images"))] or None,
    )


def bend_image(image: Mapping[str, Any]) -> SpokenImage:
    """An image that the model made."""
    given = image.get("image_url")
    url = given.get("url") if isinstance(given, Mapping) else given
    return SpokenImage(image_url=ImageAddress(url=url) if isinstance(url, str) else None)


def bend_audio(audio: Any) -> AudioBody | None:
    """Spoken output."""
    if not isinstance(audio, Mapping):
        return None
    return AudioBody(transcript=text_or_none(audio.get("transcript")))


def part_texts(content: Any, kind: str) -> str | None:
    """The text of all parts that have the member `kind`; a plain text counts as `text`."""
    if isinstance(content, str):
        return content if kind == "text" else None
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        inner = part.get(kind) if isinstance(part, Mapping) else part if kind == "text" else None
        if isinstance(inner, str):
            texts.append(inner)
        elif isinstance(inner, list):
            texts.append(part_texts(inner, "text") or "")
    return "".join(texts) or None


def bend_call(call: Mapping[str, Any]) -> ToolCallBody:
    """One fragment of a tool call."""
    index = whole(call.get("index"))
    return ToolCallBody(
        index=index,
        id=text_or_none(call.get("id")),
        function=bend_function(call.get("function")),
    )


def bend_function(function: Any) -> FunctionBody | None:
    """Name and arguments; arguments that are no text are written as JSON."""
    if not isinstance(function, Mapping):
        return None
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = write(arguments).decode()
    return FunctionBody(name=text_or_none(function.get("name")), arguments=arguments)


def bend_usage(usage: Any) -> UsageBody | None:
    """Token counts."""
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = (
        details if isinstance(details, Mapping) else {}
        for details in (usage.get("prompt_tokens_details"), usage.get("completion_tokens_details"))
    )
    return UsageBody(
        prompt_tokens=whole(usage.get("prompt_tokens")),
        completion_tokens=whole(usage.get("completion_tokens")),
        total_tokens=whole(usage.get("total_tokens")),
        prompt_tokens_details=PromptDetails(cached_tokens=whole(prompt.get("cached_tokens"))),
        completion_tokens_details=CompletionDetails(
            reasoning_tokens=whole(completion.get("reasoning_tokens"))
        ),
    )


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of an array; a lone object is an array of one."""
    if isinstance(value, Mapping):
        return [value]
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """A non-empty text; numbers are written out."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def whole(value: Any) -> int | None:
    """A whole number from a number or its text, None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 2**53 else None  # NaN and infinity compare false
