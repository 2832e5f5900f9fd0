"""A buffered answer of another dialect as a response, and the pieces that streams share."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Media, Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Usage
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.responses_signature import Kept, wrapped
from cluster_gw.surfaces.unsaid import is_image

COMPLETED: Final = "completed"
INCOMPLETE: Final = "incomplete"
IN_PROGRESS: Final = "in_progress"
CUT_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {"length": "max_output_tokens", "content_filter": "content_filter"}
)
"""Why an answer is incomplete, by finish reason; the others are whole."""
ECHOED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": None},
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "user": None,
    }
)
"""Members of the request that its answer says again, with what stands for an absent one."""
NULL: Final = b"null"


def answer_json(answer: Answer, head: StreamHead) -> dict[str, Any]:
    """The document of an answer; this format has one choice."""
    choice = answer.choices[0]
    cut = CUT_REASONS.get(choice.finish_reason)
    status = INCOMPLETE if cut else COMPLETED
    return response_json(
        head,
        status=status,
        output=output_json(choice.parts, head, status),
        usage=answer.usage,
        cut=cut,
    )


def response_json(
    head: StreamHead,
    *,
    status: str,
    output: Sequence[Any] = (),
    usage: Usage | None = None,
    cut: str | None = None,
) -> dict[str, Any]:
    """A response.

    Args:
        head: what it says of itself.
        status: how far it got.
        output: its items.
        usage: None when nobody said.
        cut: why it is incomplete.
    """
    return {
        "id": f"resp_{head.id}",
        "object": "response",
        "created_at": head.created_s,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "model": head.model,
        "output": list(output),
        "previous_response_id": None,
        "store": False,  # nothing is kept, whatever was asked
        **echo(head),
        "usage": None if usage is None else usage_json(usage),
    }


def echo(head: StreamHead) -> dict[str, Any]:
    """What the request said of the answer."""
    fields: Mapping[str, msgspec.Raw] = {} if head.request is None else head.request.fields
    return {
        name: value if (given := fields.get(name)) is None or bytes(given) == NULL else given
        for name, value in ECHOED.items()
    }


def output_json(parts: Sequence[Part], head: StreamHead, status: str) -> list[dict[str, Any]]:
    """The items of an answer, in the order in which they were said."""
    items: list[dict[str, Any]] = []
    for part in parts:
        item_id = f"{head.id}_{len(items)}"
        if isinstance(part, Thinking):
            kind = Kept.REDACTED if part.is_redacted else Kept.THOUGHT
            items.append(reasoning_json(item_id, part.text, part.signature, kind))
        elif isinstance(part, ToolUse):
            if part.signature:
                items.append(reasoning_json(item_id, "", part.signature, Kept.CALL))
                item_id = f"{head.id}_{len(items)}"
            items.append(call_json(item_id, part.id, part.name, part.arguments, COMPLETED))
        elif isinstance(part, Media) and says(part):
            items.append(image_json(item_id, part.data, COMPLETED))
        elif isinstance(part, Text | Refusal):
            spoken = refusal_json(part.text) if isinstance(part, Refusal) else text_json(part.text)
            if items and items[-1]["type"] == "message":
                items[-1]["content"].append(spoken)
            else:
                items.append(message_json(item_id, [spoken], COMPLETED))
    items = items or [message_json(f"{head.id}_0", [text_json("")], COMPLETED)]
    if items[-1]["type"] != "reasoning":
        items[-1]["status"] = status
    return items


def says(part: Part) -> bool:
    """Whether this format has words for a part: of images, it has their bytes only."""
    return not isinstance(part, Media) or (is_image(part) and bool(part.data))


def image_json(item_id: str, data: str | None, status: str) -> dict[str, Any]:
    """An image that the model made."""
    return {
        "id": f"ig_{item_id}",
        "type": "image_generation_call",
        "status": status,
        "result": data,
    }


def text_json(text: str) -> dict[str, Any]:
    """A part of text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_json(text: str) -> dict[str, Any]:
    """A part that says that the model will not."""
    return {"type": "refusal", "refusal": text}


def summary_json(text: str) -> dict[str, Any]:
    """A part of a thought's summary."""
    return {"type": "summary_text", "text": text}


def message_json(item_id: str, content: Sequence[Any], status: str) -> dict[str, Any]:
    """A message."""
    return {
        "id": f"msg_{item_id}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": list(content),
    }


def call_json(item_id: str, call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    """A call of a function."""
    return {
        "id": f"fc_{item_id}",
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def reasoning_json(
    item_id: str, text: str, signature: str, kind: Kept = Kept.THOUGHT
) -> dict[str, Any]:
    """A thought, with its proof where there is one."""
    return {
        "id": f"rs_{item_id}",
        "type": "reasoning",
        "summary": [summary_json(text)] if text else [],
        "encrypted_content": wrapped(signature, kind) if signature else None,
    }


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token counts; the details are always there because SDKs read them."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_prompt_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
