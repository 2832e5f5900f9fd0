"""A buffered answer of another dialect as a message of Anthropic's."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Usage
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.wire.anthropic_messages import FOREIGN, FOREIGN_CALL
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any

STOP_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "content_filter": "refusal",
    }
)
MALFORMED: Final = "malformed_arguments"
NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")


def message_json(answer: Answer, head: StreamHead) -> dict[str, Any]:
    """The document of an answer; this dialect has one choice."""
    choice = answer.choices[0]
    return {
        **opening_json(head),
        "content": [block for part in choice.parts for block in blocks_of(part)],
        "stop_reason": stop_reason_of(choice),
        "stop_sequence": choice.stop_sequence,
        "usage": usage_json(answer.usage or Usage(prompt_tokens=head.input_tokens)),
    }


def opening_json(head: StreamHead) -> dict[str, Any]:
    """What a message says of itself."""
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
    }


def stop_reason_of(choice: Choice) -> str:
    """Why an answer ended."""
    parts = choice.parts
    return vendor_reason(
        choice.finish_reason,
        choice.stop_sequence,
        has_calls=any(isinstance(part, ToolUse) for part in parts),
        is_refusal=any(isinstance(part, Refusal) for part in parts),
    )


def vendor_reason(
    reason: str | None, stop_sequence: str | None, *, has_calls: bool, is_refusal: bool
) -> str:
    """The vendor's word for an end; calls win over a plain stop, as the vendor has it."""
    word = STOP_REASONS.get(reason or "", "end_turn")
    if word != "end_turn":
        return word
    if has_calls:
        return "tool_use"
    if is_refusal:
        return "refusal"
    return word if stop_sequence is None else "stop_sequence"


def says(part: Part) -> bool:
    """Whether this format has words for a part of an answer."""
    return isinstance(part, Text | Refusal | Thinking | ToolUse)


def blocks_of(part: Part) -> list[dict[str, Any]]:
    """The blocks of one part; none for what has no words."""
    match part:
        case Text(text=text) | Refusal(text=text):
            return [{"type": "text", "text": text}] if text else []
        case Thinking(is_redacted=True, signature=signature):
            return [{"type": "redacted_thinking", "data": FOREIGN + signature}]
        case Thinking(text=text, signature=signature):
            return [thinking_json(text, FOREIGN + signature)]
        case ToolUse():
            call = {
                "type": "tool_use",
                "id": clean_id(part.id),
                "name": part.name,
                "input": input_of(part.arguments),
            }
            proof = thinking_json("", FOREIGN_CALL + part.signature)
            return [proof, call] if part.signature else [call]
        case _:
            return []


def thinking_json(text: str, signature: str) -> dict[str, Any]:
    """One thought."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def clean_id(call_id: str) -> str:
    """The id of a call in the characters that this vendor takes when it comes back."""
    return NO_ID.sub("_", call_id)


def input_of(arguments: str) -> dict[str, Any]:
    """The arguments of a call as the object this dialect wants; what is none is shown as text."""
    found = object_of(arguments)
    if found is not None:
        return found
    return {MALFORMED: arguments} if arguments.strip() else {}


def object_of(arguments: str) -> dict[str, Any] | None:
    """The object that arguments spell, None when they do not."""
    try:
        found = read_any(arguments.encode("utf-8", "surrogatepass"))
    except (InvalidJsonError, UnexpectedShapeError):
        return None
    return found if isinstance(found, dict) else None


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token counts; in this dialect input that came from a cache is counted apart."""
    document: dict[str, Any] = {
        "input_tokens": max(0, usage.prompt_tokens - usage.cached_prompt_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_prompt_tokens,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens:
        document["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return document
