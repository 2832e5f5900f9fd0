"""Frames and answers of the chat completions API with other words in them, all else kept."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_answer_fields,
    read_any,
    write,
)

REASONING: Final = "reasoning_content"
OTHER_REASONING: Final = "reasoning"
WRITTEN: Final = frozenset({"content", REASONING, OTHER_REASONING, "tool_calls", "function_call"})


def reframed(frame: bytes, event: StreamEvent) -> bytes:
    """A frame that says what an event says; members nobody read stay.

    Args:
        frame: a frame of the same stream, best the one the event was read from.
        event: of one choice.
    """
    fields = fields_of(frame)
    if event.usage is None:
        fields.pop("usage", None)
    choices = listed(fields.get("choices"))
    choice: dict[str, Any] = choices[0] if choices else {"index": 0}
    spoken = choice.pop("delta", None) or choice.pop("message", None)
    spoken = spoken if isinstance(spoken, dict) else {}
    delta = {name: value for name, value in spoken.items() if name not in WRITTEN}
    if event.reasoning:
        delta[reasoning_name(spoken)] = event.reasoning
    if event.text or ("role" in delta and not event.tool_calls):
        delta["content"] = event.text
    if event.tool_calls:
        before = mappings(spoken.get("tool_calls"))
        delta["tool_calls"] = [fragment_json(call, before) for call in event.tool_calls]
    choice = {**choice, "delta": delta, "finish_reason": event.finish_reason}
    return write({**fields, "choices": [choice]})


def narrowed(frame: bytes, place: int, index: int, *, has_usage: bool) -> bytes:
    """A frame of several choices with one of them alone; see `providers.base.RewritingProvider`."""
    fields = fields_of(frame)
    if not has_usage:
        fields.pop("usage", None)
    one = listed(fields.get("choices"))[place : place + 1]
    return write({**fields, "choices": [{**choice, "index": index} for choice in one]})


def fragment_json(call: ToolCallDelta, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One fragment of a call, out of the one that stood there before."""
    same = (one for one in before if one.get("index") == call.index)
    old = next((one for one in same if (one.get("id") or None) == call.id), {})
    function = {**(old.get("function") or {}), "arguments": call.arguments}
    if call.name is not None:
        function = {"name": call.name, **function}
    head: dict[str, Any] = {"index": call.index}
    if call.id is not None:
        head |= {"id": call.id, "type": "function"}
    return {**old, **head, "function": function}


def rebodied(completion: Completion, before: Answer, after: Answer) -> Completion:
    """A buffered answer that says what another does, where that differs from what it said."""
    fields = fields_of(completion.raw)
    documents = listed(fields.get("choices"))
    for document, old, new in zip(documents, before.choices, after.choices, strict=False):
        if new is not old:
            document["message"] = message_json(document.get("message"), new)
            document["finish_reason"] = new.finish_reason
    return msgspec.structs.replace(completion, raw=write({**fields, "choices": documents}))


def message_json(message: Any, choice: Choice) -> dict[str, Any]:
    """The message of a choice, with members nobody read."""
    spoken = message if isinstance(message, dict) else {}
    calls = [part for part in choice.parts if isinstance(part, ToolUse)]
    text = "".join(part.text for part in choice.parts if isinstance(part, Text))
    thoughts = "".join(part.text for part in choice.parts if isinstance(part, Thinking))
    written = {name: value for name, value in spoken.items() if name not in WRITTEN}
    written = {"role": "assistant", **written, "content": text if text or not calls else None}
    if thoughts:
        written[reasoning_name(spoken)] = thoughts
    if calls:
        before = mappings(spoken.get("tool_calls"))
        written["tool_calls"] = [call_json(call, before) for call in calls]
    return written


def call_json(call: ToolUse, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One call, out of the one that stood there before."""
    old = next((one for one in before if one.get("id") == call.id), {})
    function = {**(old.get("function") or {}), "name": call.name, "arguments": call.arguments}
    return {**old, "id": call.id, "type": "function", "function": function}


def reasoning_name(spoken: Mapping[str, Any]) -> str:
    """Under which name the vendor tells reasoning."""
    is_other = OTHER_REASONING in spoken and REASONING not in spoken
    return OTHER_REASONING if is_other else REASONING


def fields_of(document: bytes) -> Fields:
    """The members of a document; none where it cannot be read."""
    try:
        return read_answer_fields(document)
    except (InvalidJsonError, UnexpectedShapeError):
        return {}


def listed(choices: msgspec.Raw | None) -> list[dict[str, Any]]:
    """The choices of a document."""
    found = [] if choices is None else read_any(choices)
    return [dict(one) for one in mappings(found)]


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of an array."""
    items = value if isinstance(value, list) else [value]
    return [one for one in items if isinstance(one, Mapping)]
