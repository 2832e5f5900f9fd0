"""A conversation as a messages request, for an upstream of Anthropic's dialect."""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.conversation import (
    Choosing,
    Conversation,
    Media,
    Refusal,
    Role,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.providers.anthropic_sampling import put_sampling
from cluster_gw.providers.notes import Notes
from cluster_gw.providers.openai_conversation import EMPTY_SCHEMA
from cluster_gw.wire.anthropic_messages import SIGNED
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_fields

NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF: Final = "application/pdf"
CHOICES: Final = MappingProxyType(
    {
        Choosing.AUTO: "auto",
        Choosing.REQUIRED: "any",
        Choosing.NAMED: "tool",
        Choosing.NONE: "none",
    }
)

Said = Text | Media | Thinking | ToolUse | Refusal


def request_json(conversation: Conversation, model: str, notes: Notes) -> dict[str, Any]:
    """The document of a request; what it has no words for is noted."""
    document: dict[str, Any] = {"model": model}
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for place, turn in enumerate(conversation.turns):
        where = f"turn {place + 1}"
        if turn.role is Role.SYSTEM:
            if messages:
                notes.changed.append(f"{where}: system -> before all others")
            system += text_blocks(turn)
            notes.lost += [f"{where}: {name}" for name in turn.shown_kinds]
            continue
        content = content_json(turn, where, notes)
        if content:
            messages.append({"role": turn.role.value, "content": content})
    if system:
        document["system"] = plain(system)
    document["messages"] = messages
    put_tools(document, conversation)
    put_sampling(document, conversation, notes)
    if conversation.user is not None:
        document["metadata"] = {"user_id": conversation.user}
    if conversation.stream:
        document["stream"] = True
    return document


def text_blocks(turn: Turn) -> list[dict[str, Any]]:
    """The texts of a turn that say something: blank ones are refused."""
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    return [{"type": "text", "text": text} for text in texts if text.strip()]


def plain(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A plain string where there is one text only."""
    is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
    return blocks[0]["text"] if is_text else blocks


def content_json(turn: Turn, where: str, notes: Notes) -> str | list[dict[str, Any]]:
    """The content of a message; empty when nothing of it is left."""
    blocks: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            results.append(result_json(part, where, notes))
        elif (block := block_json(part, where, notes)) is not None:
            blocks.append(block)
    return plain([*results, *blocks])  # results must come first


def block_json(part: Said, where: str, notes: Notes) -> dict[str, Any] | None:
    """One block; None for what is left out."""
    match part:
        case Text(text=text) | Refusal(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Media():
            return media_json(part, where, notes)
        case Thinking():
            return thinking_json(part, where, notes)
        case ToolUse():
            if part.signature:
                notes.lost.append(f"{where}: signature of a call")
            return {
                "type": "tool_use",
                "id": NO_ID.sub("_", part.id),
                "name": part.name,
                "input": input_json(part.arguments, where, notes),
            }


def thinking_json(part: Thinking, where: str, notes: Notes) -> dict[str, Any] | None:
    """A thought that this vendor's model had; others are refused for want of its signature."""
    if not part.signature.startswith(SIGNED):
        notes.lost.append(f"{where}: thinking")
        return None
    proof = part.signature.removeprefix(SIGNED)
    if part.is_redacted:
        return {"type": "redacted_thinking", "data": proof}
    return {"type": "thinking", "thinking": part.text, "signature": proof}


def input_json(arguments: str, where: str, notes: Notes) -> Any:
    """Arguments as the object this dialect wants."""
    if not arguments.strip():
        return {}
    try:
        return read_fields(arguments.encode("utf-8", "replace"))
    except (InvalidJsonError, UnexpectedShapeError):
        notes.changed.append(f"{where}: arguments that are no object -> {{}}")
        return {}


def result_json(result: ToolResult, where: str, notes: Notes) -> dict[str, Any]:
    """What a tool gave back."""
    content = inner_json(result.parts, where, notes)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": NO_ID.sub("_", result.call_id)}
    if content:
        block["content"] = plain(content)
    if result.is_error:
        block["is_error"] = True
    return block


def inner_json(parts: Sequence[Text | Media], where: str, notes: Notes) -> list[dict[str, Any]]:
    """The blocks inside a result."""
    found = [block_json(part, where, notes) for part in parts]
    return [block for block in found if block is not None]


def media_json(media: Media, where: str, notes: Notes) -> dict[str, Any] | None:
    """An image or a PDF; this vendor takes nothing else."""
    is_image, media_type = media.kind == "image", media.media_type
    if not is_image and media_type not in {PDF, ""}:
        notes.lost.append(f"{where}: {media.kind} ({media_type})")
        return None
    if is_image and media.data and media_type not in IMAGE_TYPES:
        notes.lost.append(f"{where}: image ({media_type})")
        return None
    source: dict[str, Any] = {"type": "url", "url": media.url}
    if not media.url:
        source = {"type": "base64", "media_type": media_type or PDF, "data": media.data}
    block: dict[str, Any] = {"type": "image" if is_image else "document", "source": source}
    if media.name and not is_image:
        block["title"] = media.name
    return block


def put_tools(document: dict[str, Any], conversation: Conversation) -> None:
    """Say which tools there are and which may or must be called; the default is not said."""
    if not conversation.tools:
        return
    document["tools"] = [tool_json(tool) for tool in conversation.tools]
    choice = choice_json(conversation.tool_choice)
    if choice is not None:
        document["tool_choice"] = choice


def tool_json(tool: Tool) -> dict[str, Any]:
    """A declared tool."""
    found: dict[str, Any] = {"name": tool.name}
    if tool.description:
        found["description"] = tool.description
    found["input_schema"] = EMPTY_SCHEMA if tool.schema is None else tool.schema
    if tool.is_strict is not None:
        found["strict"] = tool.is_strict
    return found


def choice_json(choice: ToolChoice) -> dict[str, Any] | None:
    """`tool_choice`; None for the default."""
    if choice.how is Choosing.AUTO and choice.parallel is None:
        return None
    found: dict[str, Any] = {"type": CHOICES[choice.how]}
    if choice.how is Choosing.NAMED:
        found["name"] = choice.name
    if choice.parallel is not None and choice.how is not Choosing.NONE:
        found["disable_parallel_tool_use"] = not choice.parallel
    return found
