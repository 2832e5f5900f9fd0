"""A conversation as a chat completions request, for an upstream of the OpenAI dialect."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
    Part,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.providers.reasoning_echo import ECHOED, REASONING
from cluster_gw.wire.data_url import data_url

EMPTY_SCHEMA: Final = msgspec.Raw(b'{"type":"object","properties":{}}')
PASSED: Final = (
    "temperature", "top_p", "seed", "presence_penalty", "frequency_penalty"
)  # fmt: skip


def request_json(conversation: Conversation, model: str, lost: list[str]) -> dict[str, Any]:
    """The document of a request; what it has no words for goes into `lost`."""
    messages = [
        message
        for place, turn in enumerate(conversation.turns)
        for message in messages_of(turn, f"turn {place + 1}", lost)
    ]
    document: dict[str, Any] = {"model": model, "messages": messages}
    if conversation.stream:
        document["stream"] = True
        document["stream_options"] = {"include_usage": True}
    put_sampling(document, conversation.sampling, lost)
    if conversation.tools:
        document["tools"] = [tool_json(tool) for tool in conversation.tools]
        put_choice(document, conversation.tool_choice)
    if conversation.format is not None:
        document["response_format"] = format_json(conversation.format)
    if conversation.user is not None:
        document["user"] = conversation.user
    return document


def messages_of(turn: Turn, where: str, lost: list[str]) -> list[dict[str, Any]]:
    """One turn; results of tools are messages of their own."""
    if turn.role is Role.ASSISTANT:
        return [spoken_json(turn, where, lost)]
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    messages = [result_json(result, where, lost) for result in results]
    rest = [part for part in turn.parts if not isinstance(part, ToolResult)]
    if rest or not results:
        messages.append({"role": turn.role.value, "content": content_json(rest, where, lost)})
    return messages


def spoken_json(turn: Turn, where: str, lost: list[str]) -> dict[str, Any]:
    """What the model said."""
    calls = [part for part in turn.parts if isinstance(part, ToolUse)]
    refusal = "".join(part.text for part in turn.parts if isinstance(part, Refusal))
    for part in turn.parts:
        if isinstance(part, Media):
            lost.append(f"{where}: {part.kind}")
        elif isinstance(part, Thinking) and part.signature != ECHOED:
            lost.append(f"{where}: thinking")
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    for part in turn.parts:
        if isinstance(part, Thinking) and part.signature == ECHOED:
            message[REASONING] = part.text
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    elif not (turn.text or refusal):
        message["content"] = ""  # null is for calls alone
    return message


def result_json(result: ToolResult, where: str, lost: list[str]) -> dict[str, Any]:
    """What a tool gave back; this dialect takes text only and has no mark for a failure."""
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    if any(isinstance(part, Media) for part in result.parts):
        lost.append(f"{where}: media in a tool result")
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def content_json(parts: Sequence[Part], where: str, lost: list[str]) -> str | list[dict[str, Any]]:
    """The content of a message: a plain string where it is text only."""
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, Media) and (media := media_json(part)) is not None:
            found.append(media)
        else:
            lost.append(f"{where}: {part.kind if isinstance(part, Media) else 'a part'}")
    return found


def media_json(media: Media) -> dict[str, Any] | None:
    """An image, a sound or a file; None for an address of anything but an image."""
    if media.kind == "image":
        image = {"url": media.url or data_url(media.media_type, media.data)}
        if media.detail:
            image["detail"] = media.detail
        return {"type": "image_url", "image_url": image}
    if media.url:
        return None
    if media.kind == "audio":
        form = media.media_type.partition("/")[2]
        return {
            "type": "input_audio",
            "input_audio": {"data": media.data, "format": "mp3" if form == "mpeg" else form},
        }
    file = {
        "file_data": data_url(media.media_type, media.data),
        "filename": media.name or "document",
    }
    return {"type": "file", "file": file}


def tool_json(tool: Tool) -> dict[str, Any]:
    """A declared function."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = EMPTY_SCHEMA if tool.schema is None else tool.schema
    if tool.is_strict is not None:
        function["strict"] = tool.is_strict
    return {"type": "function", "function": function}


def put_choice(document: dict[str, Any], choice: ToolChoice) -> None:
    """Say which tools may or must be called; the vendor's default is not said."""
    if choice.how is Choosing.NAMED:
        document["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.how is not Choosing.AUTO:
        document["tool_choice"] = choice.how.value
    if choice.parallel is not None:
        document["parallel_tool_calls"] = choice.parallel


def format_json(wanted: AnswerFormat) -> dict[str, Any]:
    """`response_format`."""
    if wanted.schema is None:
        return {"type": "json_object"}
    spec: dict[str, Any] = {"name": wanted.name or "answer", "schema": wanted.schema}
    if wanted.description:
        spec["description"] = wanted.description
    if wanted.is_strict is not None:
        spec["strict"] = wanted.is_strict
    return {"type": "json_schema", "json_schema": spec}


def put_sampling(document: dict[str, Any], sampling: Sampling, lost: list[str]) -> None:
    """Say how the answer is drawn."""
    if sampling.max_tokens is not None:
        document["max_tokens"] = sampling.max_tokens
    for name in PASSED:
        value = getattr(sampling, name)
        if value is not None:
            document[name] = value
    if sampling.stop:
        document["stop"] = list(sampling.stop)
    if sampling.choices > 1:
        document["n"] = sampling.choices
    if sampling.effort is not None:
        document["reasoning_effort"] = sampling.effort
    if sampling.top_logprobs is not None:
        document["logprobs"] = True
        document["top_logprobs"] = sampling.top_logprobs
    if sampling.top_k is not None:
        lost.append("top_k")
    if sampling.thinking_tokens is not None and sampling.effort is None:
        lost.append("thinking budget")
