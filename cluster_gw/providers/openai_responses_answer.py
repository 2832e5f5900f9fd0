"""A buffered answer of the Responses dialect: its facts, and the whole of it."""

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, ToolCallDelta
from cluster_gw.providers.openai_responses_facts import (
    FUNCTION_CALL,
    IMAGE,
    MESSAGE,
    REASONING,
    TOLD,
    call_id,
    call_name,
    image_of,
    kept_as,
    lost_of,
    reason_of_cut,
    reason_of_whole,
    signature_of,
    thought_of,
    usage_of,
)
from cluster_gw.wire.json_codec import UnpairedSurrogateError, read_any, write
from cluster_gw.wire.openai_responses import RESPONSE_READER, OutputItem, ResponseBody


def completion_of(body: bytes, answer: ResponseBody) -> Completion:
    """The facts of a sound answer."""
    output = answer.output or []
    calls = tuple(
        ToolCallDelta(index=place, id=call_id(item), name=call_name(item), arguments=arguments)
        for place, item in enumerate(item for item in output if item.type == FUNCTION_CALL)
        for arguments in (item.arguments or "",)
    )
    text = "".join([said_by(item) for item in output])
    thoughts = sum(len(thought_of(item)) for item in output if item.type == REASONING)
    own = [item for item in output if item.type and item.type not in TOLD]
    called = sum(len(call.name or "") + len(call.arguments) for call in calls)
    called += sum(len(item.input or "") for item in own)
    return Completion(
        raw=body,
        text=text,
        characters=len(text) + thoughts + called,
        tool_calls=calls,
        finish_reason=finish_of(answer),
        usage=usage_of(answer.usage),
        kept_as=kept_as(answer),
        has_media=bool(own) or any(map(image_of, output)),
    )


def finish_of(answer: ResponseBody) -> str | None:
    """Why it ended; None when it does not say that it did."""
    if answer.status == "completed":
        return reason_of_whole(
            has_calls=any(item.type == FUNCTION_CALL for item in answer.output or ())
        )
    return reason_of_cut(answer.incomplete_details) if answer.status == "incomplete" else None


def said_by(item: OutputItem) -> str:
    """Text of a message; a refusal is an answer as well."""
    if item.type != MESSAGE:
        return ""
    return "".join([part.text or part.refusal or "" for part in item.content or ()])


def read_response(body: bytes) -> ResponseBody:
    """An answer, even one with half an emoji in it.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is none.
    """
    try:
        return RESPONSE_READER.read(body)
    except UnpairedSurrogateError:
        return RESPONSE_READER.read(write(read_any(body)))


def answer_of(completion: Completion) -> Answer:
    """The whole of a completion that this codec decoded, so it can be read again."""
    answer = read_response(completion.raw)
    parts: list[Part] = []
    for item in answer.output or ():
        if item.type == REASONING:
            thought, signature = thought_of(item), signature_of(item)
            if thought or signature:
                parts.append(Thinking(text=thought, signature=signature, is_redacted=not thought))
        elif item.type == MESSAGE:
            parts += parts_of(item)
        elif item.type == IMAGE:
            parts += image_of(item)
        elif item.type == FUNCTION_CALL:
            parts.append(
                ToolUse(
                    id=call_id(item) or f"call_{len(parts)}",
                    name=call_name(item),
                    arguments=item.arguments or "{}",
                )
            )
    return Answer(
        id=answer.id or "",
        choices=(Choice(parts=tuple(parts), finish_reason=completion.finish_reason or "stop"),),
        usage=completion.usage,
        lost=tuple(dict.fromkeys(name for item in answer.output or () for name in lost_of(item))),
    )


def parts_of(item: OutputItem) -> list[Part]:
    """The parts of a message."""
    parts: list[Part] = []
    for given in item.content or ():
        if given.refusal:
            parts.append(Refusal(text=given.refusal))
        elif given.text:
            parts.append(Text(text=given.text))
    return parts
