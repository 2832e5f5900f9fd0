"""Buffered answers of Gemini: as a completion, and as an answer for a client of another dialect."""

import itertools
from collections.abc import Iterator

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault
from cluster_gw.providers.gemini_facts import (
    BLOCKED,
    arguments_of,
    calls_of,
    failure_of,
    has_media,
    is_blocked,
    is_spoken,
    is_unknown,
    lost_of,
    medium_of,
    parts_of,
    read_body,
    reason_of,
    text_of,
    thoughts_of,
    usage_of,
)
from cluster_gw.providers.openai_errors import malformed_fault
from cluster_gw.wire.gemini import SIGNED, AnswerBody, Candidate, SpokenPart


def completion_of(raw: bytes, body: AnswerBody, secret: str | None) -> Completion | Fault:
    """The facts of an answer that is no error object."""
    usage = usage_of(body.usage_metadata)
    if is_blocked(body):
        return Completion(raw=raw, finish_reason=BLOCKED, usage=usage)
    candidates = body.candidates or []
    if not candidates:
        return malformed_fault("the answer holds no candidates")
    first = candidates[0]
    if not any(map(is_spoken, parts_of(first))):
        fault = failure_of(first, secret)
        if fault is not None:
            return fault
    parts = [part for candidate in candidates for part in parts_of(candidate)]
    calls = calls_of(parts, itertools.count(1))
    text = text_of(parts)
    return Completion(
        raw=raw,
        text=text,
        characters=len(text)
        + len(thoughts_of(parts))
        + sum([len(call.name or "") + len(call.arguments) for call in calls]),
        tool_calls=calls,
        finish_reason=end_of(first),
        usage=usage,
        has_media=has_media(parts) or any(map(is_unknown, parts)),
    )


def answer_of(completion: Completion) -> Answer:
    """The whole of a completion that this codec decoded."""
    body = read_body(completion.raw)
    if is_blocked(body):
        choices: tuple[Choice, ...] = (Choice(parts=(), finish_reason=BLOCKED),)
    else:
        numbers = itertools.count(1)
        choices = tuple([choice_of(one, numbers) for one in body.candidates or ()])
    return Answer(
        id=body.response_id or "",
        choices=choices,
        usage=completion.usage,
        lost=tuple(dict.fromkeys(name for one in body.candidates or () for name in lost_of(one))),
    )


def choice_of(candidate: Candidate, numbers: Iterator[int]) -> Choice:
    """One candidate, its parts in their order."""
    found = [part_of(part, numbers) for part in parts_of(candidate)]
    return Choice(
        parts=tuple([part for part in found if part is not None]),
        finish_reason=end_of(candidate) or "stop",
    )


def end_of(candidate: Candidate) -> str | None:
    """Why a whole candidate ended."""
    has_calls = any(part.function_call is not None for part in parts_of(candidate))
    return reason_of(candidate, has_calls=has_calls)


def part_of(part: SpokenPart, numbers: Iterator[int]) -> Part | None:
    """One part; None for what has no words here, such as code that the vendor ran."""
    call = part.function_call
    if call is not None:
        return ToolUse(
            id=call.id or f"call_{next(numbers)}",
            name=call.name or "",
            arguments=arguments_of(call),
            signature=part.thought_signature or "",
        )
    media = part.inline_data or part.file_data
    if media is not None:
        return medium_of(media)
    if not part.text:
        return None
    if part.thought:
        proof = part.thought_signature
        return Thinking(text=part.text, signature=SIGNED + proof if proof else "")
    return Text(text=part.text)
