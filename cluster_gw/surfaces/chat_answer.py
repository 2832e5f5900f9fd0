"""A buffered answer of another dialect as a chat completion."""

from collections.abc import Sequence
from typing import Any

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Media, Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Usage
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.unsaid import is_image
from cluster_gw.wire.data_url import data_url


def answer_json(answer: Answer, head: StreamHead) -> dict[str, Any]:
    """The document of an answer."""
    document: dict[str, Any] = {
        "id": f"chatcmpl-{head.id}",
        "object": "chat.completion",
        "created": head.created_s,
        "model": head.model,
        "choices": [choice_json(place, choice) for place, choice in enumerate(answer.choices)],
    }
    if answer.usage is not None:
        document["usage"] = usage_json(answer.usage)
    return document


def choice_json(index: int, choice: Choice) -> dict[str, Any]:
    """One choice; text is null where nothing but tools is called, as the vendor has it."""
    parts = choice.parts
    calls = [part for part in parts if isinstance(part, ToolUse)]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    refusal = "".join(part.text for part in parts if isinstance(part, Refusal))
    thoughts = "".join(part.text for part in parts if isinstance(part, Thinking))
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text if text or not (calls or refusal) else None,
        "refusal": refusal or None,
    }
    if thoughts:
        message["reasoning_content"] = thoughts
    if images := images_json(parts):
        message["images"] = images
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **signature_json(call.signature),
            }
            for call in calls
        ]
    return {"index": index, "message": message, "finish_reason": choice.finish_reason}


def says(part: Part) -> bool:
    """Whether this format has words for a part."""
    if isinstance(part, Thinking):
        return bool(part.text)
    return is_image(part) or not isinstance(part, Media)


def images_json(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Images that the model made, as OpenRouter and its like have them in a message."""
    return [
        {
            "type": "image_url",
            "index": place,
            "image_url": {"url": image.url or data_url(image.media_type, image.data)},
        }
        for place, image in enumerate(
            [part for part in parts if isinstance(part, Media) and is_image(part)]
        )
    ]


def signature_json(signature: str) -> dict[str, Any]:
    """The vendor's proof of a call, for clients that send calls back as they got them.

    It stands there twice: under the name that Google's own OpenAI API gives it, and under ours.
    """
    if not signature:
        return {}
    return {
        "gemini_thought_signature": signature,
        "extra_content": {"google": {"thought_signature": signature}},
    }


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token counts, the details only where there are any."""
    document: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    details = {
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_prompt_tokens,
            "audio_tokens": usage.audio_prompt_tokens,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": usage.audio_completion_tokens,
        },
    }
    for name, counts in details.items():
        if known := {kind: count for kind, count in counts.items() if count}:
            document[name] = known
    return document
