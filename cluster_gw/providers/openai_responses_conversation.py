"""A conversation as a Responses request."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

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
from cluster_gw.providers.openai_conversation import EMPTY_SCHEMA
from cluster_gw.wire.data_url import data_url
from cluster_gw.wire.openai_responses import SIGNED_BY_VENDOR

ENCRYPTED: Final = "reasoning.encrypted_content"
UNSPOKEN: Final = ("top_k", "seed", "presence_penalty", "frequency_penalty")
NO_EFFORT: Final = "none"


def request_json(conversation: Conversation, model: str, lost: list[str]) -> dict[str, Any]:
    """The document of a request; what it has no words for goes into `lost`."""
    turns = conversation.turns
    document: dict[str, Any] = {"model": model}
    if turns and turns[0].role is Role.SYSTEM:
        document["instructions"] = turns[0].text
        lost += [
            f"turn 1: {name_of(part)}" for part in turns[0].parts if not isinstance(part, Text)
        ]
    first = 1 if "instructions" in document else 0
    document["input"] = [
        item
        for place, turn in enumerate(turns[first:], first + 1)
        for item in items_of(turn, f"turn {place}", lost)
    ]
    document["store"] = False  # its id would name state of one key, which nobody asks for
    if conversation.stream:
        document["stream"] = True
    put_sampling(document, conversation.sampling, lost)
    if wants_proof(conversation):
        document["include"] = [ENCRYPTED]
    if conversation.tools:
        document["tools"] = [tool_json(tool) for tool in conversation.tools]
        put_choice(document, conversation.tool_choice)
    if conversation.format is not None:
        document["text"] = {"format": format_json(conversation.format)}
    if conversation.user is not None:
        document["user"] = conversation.user
    return document


def wants_proof(conversation: Conversation) -> bool:
    """Whether thoughts are to be expected: models that have none refuse to encrypt them."""
    sampling = conversation.sampling
    if sampling.effort is not None:
        return sampling.effort != NO_EFFORT
    return bool(sampling.shows_thinking) or any(
        isinstance(part, Thinking) and part.signature.startswith(SIGNED_BY_VENDOR)
        for turn in conversation.turns
        for part in turn.parts
    )


def items_of(turn: Turn, where: str, lost: list[str]) -> Iterator[dict[str, Any]]:
    """One turn: parts of a message that follow each other are one item."""
    spoken: list[dict[str, Any]] = []
    is_empty = True
    for part in turn.parts:
        item = item_json(part, where, lost)
        said = part_json(part, turn.role) if item is None else None
        if said is not None:
            spoken.append(said)
            continue
        if item is None:
            if not is_left_out(part):
                lost.append(f"{where}: {name_of(part)}")
            continue
        if spoken:
            yield message_json(turn.role, spoken)
            spoken = []
        is_empty = False
        yield item
    if spoken or (is_empty and turn.role is not Role.ASSISTANT):
        yield message_json(turn.role, spoken)


def item_json(part: Part, where: str, lost: list[str]) -> dict[str, Any] | None:
    """The item that a part is by itself; None for what belongs into a message, or nowhere."""
    if isinstance(part, ToolUse):
        return {
            "type": "function_call",
            "call_id": part.id,
            "name": part.name,
            "arguments": part.arguments,
        }
    if isinstance(part, ToolResult):
        return result_json(part, where, lost)
    if isinstance(part, Thinking) and part.signature.startswith(SIGNED_BY_VENDOR):
        return {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": part.text}] if part.text else [],
            "encrypted_content": part.signature.removeprefix(SIGNED_BY_VENDOR),
        }
    return None


def is_left_out(part: Part) -> bool:
    """Whether nobody misses it."""
    return isinstance(part, Thinking) and not (part.text or part.signature)


def name_of(part: Part) -> str:
    """What a part that is lost is called."""
    if isinstance(part, Media):
        return part.kind
    return "thinking" if isinstance(part, Thinking) else "a part"


def message_json(role: Role, content: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A message; plain text of a user or an operator is a string."""
    given: str | Sequence[dict[str, Any]] = content
    if role is not Role.ASSISTANT and len(content) <= 1:
        text = content[0].get("text") if content else ""
        given = content if text is None else text
    return {
        "type": "message",
        "role": "developer" if role is Role.SYSTEM else role.value,
        "content": given,
    }


def part_json(part: Part, role: Role) -> dict[str, Any] | None:
    """A part of a message; None where it can be none."""
    if isinstance(part, Text):
        return {
            "type": "output_text" if role is Role.ASSISTANT else "input_text",
            "text": part.text,
        }
    if role is Role.ASSISTANT:
        if isinstance(part, Refusal):
            return {"type": "refusal", "refusal": part.text}
        return None
    return media_json(part) if isinstance(part, Media) else None


def media_json(media: Media) -> dict[str, Any]:
    """An image, a sound or a document."""
    if media.kind == "image":
        url = media.url or data_url(media.media_type, media.data)
        return {"type": "input_image", "image_url": url, "detail": media.detail or "auto"}
    if media.kind == "audio" and media.data:
        form = media.media_type.partition("/")[2]
        sound = {"data": media.data, "format": "mp3" if form == "mpeg" else form}
        return {"type": "input_audio", "input_audio": sound}
    if media.url:
        return {"type": "input_file", "file_url": media.url}
    return {
        "type": "input_file",
        "filename": media.name or "document",
        "file_data": data_url(media.media_type, media.data),
    }


def result_json(result: ToolResult, where: str, lost: list[str]) -> dict[str, Any]:
    """What a tool gave back; this dialect has no mark for a failure."""
    if result.is_error:
        lost.append(f"{where}: the mark of a failed tool")
    parts = [part_json(part, Role.USER) for part in result.parts]
    output: Any = parts
    if all(isinstance(part, Text) for part in result.parts) and len(parts) <= 1:
        output = parts[0]["text"] if parts and parts[0] is not None else ""
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def tool_json(tool: Tool) -> dict[str, Any]:
    """A declared function; this dialect takes one as strict unless it says otherwise."""
    document: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        document["description"] = tool.description
    document["parameters"] = EMPTY_SCHEMA if tool.schema is None else tool.schema
    document["strict"] = bool(tool.is_strict)
    return document


def put_choice(document: dict[str, Any], choice: ToolChoice) -> None:
    """Say which tools may or must be called; the vendor's default is not said."""
    if choice.how is Choosing.NAMED:
        document["tool_choice"] = {"type": "function", "name": choice.name}
    elif choice.how is not Choosing.AUTO:
        document["tool_choice"] = choice.how.value
    if choice.parallel is not None:
        document["parallel_tool_calls"] = choice.parallel


def format_json(wanted: AnswerFormat) -> dict[str, Any]:
    """`text.format`."""
    if wanted.schema is None:
        return {"type": "json_object"}
    document: dict[str, Any] = {
        "type": "json_schema",
        "name": wanted.name or "answer",
        "schema": wanted.schema,
    }
    if wanted.description:
        document["description"] = wanted.description
    if wanted.is_strict is not None:
        document["strict"] = wanted.is_strict
    return document


def put_sampling(document: dict[str, Any], sampling: Sampling, lost: list[str]) -> None:
    """Say how the answer is drawn."""
    wanted = {
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "reasoning": reasoning_json(sampling),
    }
    document.update((name, value) for name, value in wanted.items() if value is not None)
    unspoken = {
        **{name: getattr(sampling, name) is not None for name in UNSPOKEN},
        "stop": bool(sampling.stop),
        "n": sampling.choices > 1,
        "logprobs": sampling.top_logprobs is not None,
        "thinking budget": sampling.thinking_tokens is not None and sampling.effort is None,
    }
    lost += [name for name, is_lost in unspoken.items() if is_lost]


def reasoning_json(sampling: Sampling) -> dict[str, Any] | None:
    """How much to think, and whether to tell of it; None for what the model does by itself."""
    document: dict[str, Any] = {}
    if sampling.effort is not None:
        document["effort"] = sampling.effort
    if sampling.shows_thinking:
        document["summary"] = "auto"
    return document or None
