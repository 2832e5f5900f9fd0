"""A chat completion as an answer of the internal language, for a client of another dialect."""

from typing import Final

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion
from cluster_gw.providers.openai_facts import calls_of, images_of, reasoning_of
from cluster_gw.providers.openai_tolerant import bend_answer
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    read_any,
)
from cluster_gw.wire.openai_chat import ANNOTATED_READER, ANSWER_READER, AnswerBody, AnswerChoice

ANNOTATIONS: Final = "annotations"
NAME: Final = b'"annotations"'
NONE: Final = frozenset({b"", b"null", b"[]"})


def answer_of(completion: Completion) -> Answer:
    """The whole of a completion that this codec decoded."""
    body = body_of(completion.raw)
    return Answer(
        choices=tuple(choice_of(choice) for choice in body.choices or ()),
        usage=completion.usage,
        lost=(ANNOTATIONS,) if is_annotated(completion.raw) else (),
    )


def is_annotated(raw: bytes) -> bool:
    """Whether a message says where its words were found, which no other dialect is told."""
    if NAME not in raw:
        return False
    try:
        choices = ANNOTATED_READER.read(raw).choices or ()
    except (InvalidJsonError, UnexpectedShapeError):
        return False
    messages = [choice.message for choice in choices if choice.message is not None]
    return any(bytes(message.annotations) not in NONE for message in messages)


def body_of(raw: bytes) -> AnswerBody:
    """The body of an answer; it was read once, so nothing but bends is to be expected."""
    try:
        return ANSWER_READER.read(raw)
    except (UnexpectedShapeError, UnpairedSurrogateError):
        return bend_answer(read_any(raw))


def choice_of(choice: AnswerChoice) -> Choice:
    """One choice: thoughts first, then words, then calls."""
    message = choice.message
    if message is None:
        return Choice(parts=(), finish_reason=choice.finish_reason or "stop")
    parts: list[Part] = []
    if thoughts := reasoning_of(message):
        parts.append(Thinking(text=thoughts))
    text = message.content or (message.audio.transcript if message.audio else None)
    if text:
        parts.append(Text(text=text))
    if message.refusal:
        parts.append(Refusal(text=message.refusal))
    parts += images_of(message)
    for place, call in enumerate(calls_of(message)):
        parts.append(
            ToolUse(
                id=call.id or f"call_{place}",
                name=call.name or "",
                arguments=call.arguments or "{}",
            )
        )
    return Choice(parts=tuple(parts), finish_reason=choice.finish_reason or "stop")
