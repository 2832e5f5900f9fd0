"""Mends a whole answer: its text and calls take the way of a stream, then its JSON is looked at."""

from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import AnswerFormat, Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.gate import FORMAT_IGNORED, TRUNCATED_JSON
from cluster_gw.mending.json_output import healed
from cluster_gw.mending.stream import Mender

HEALED: Final = "text around the JSON left out"
FOLDED: Final = "reasoning given as the text"
LENGTH: Final = "length"
STOP: Final = "stop"


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """A mended answer.

    Attributes:
        answer: the very one that came in where nothing was mended.
        done: what was, in words.
    """

    answer: Answer
    done: tuple[str, ...] = ()


class Spoken(msgspec.Struct, kw_only=True):
    """What the events of one answer say together."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, ToolCallDelta] = {}
    finish_reason: str | None = None


def mend(
    answer: Answer,
    mender: Callable[[], Mender],
    *,
    wanted: AnswerFormat | None = None,
    folds: bool = False,
) -> Mended | Fault:
    """Mend an answer.

    Args:
        answer: all of it.
        mender: makes one for each choice.
        wanted: the JSON that was asked for; None to leave text alone.
        folds: whether reasoning alone is the answer.

    Returns:
        The answer as it should be, or the fault of one that must be tried elsewhere.
    """
    done: dict[str, None] = {}
    choices: list[Choice] = []
    for choice in answer.choices:
        mended = mended_choice(choice, mender(), done)
        if folds and isinstance(mended, Choice):
            mended = folded(mended, done)
        if wanted is not None and isinstance(mended, Choice):
            mended = formatted(mended, wanted, done)
        if isinstance(mended, Fault):
            return mended
        choices.append(mended)
    if all(new is old for new, old in zip(choices, answer.choices, strict=True)):
        return Mended(answer=answer)
    changed = msgspec.structs.replace(answer, choices=tuple(choices))
    return Mended(answer=changed, done=tuple(done))


def mended_choice(choice: Choice, mender: Mender, done: dict[str, None]) -> Choice | Fault:
    """One choice after its text and calls were looked at."""
    events = events_of(choice)
    told: list[StreamEvent] = []
    for event in events:
        told += mender.take(event)
    told += mender.end()
    fault = next((event.fault for event in told if event.fault is not None), None)
    if fault is not None:
        return fault
    if not mender.is_changed:
        return choice
    done.update(mender.done)
    spoken = spoken_in(told)
    kept = [part for part in choice.parts if isinstance(part, Thinking)]
    if spoken.reasoning:
        kept.append(Thinking(text=spoken.reasoning))
    before = "".join(part.text for part in choice.parts if isinstance(part, Text))
    parts: list[Part] = [*kept]
    if spoken.text == before:
        parts += [part for part in choice.parts if isinstance(part, Text)]
    elif spoken.text:
        parts.append(Text(text=spoken.text))
    parts += [part for part in choice.parts if not isinstance(part, Thinking | Text | ToolUse)]
    parts += [
        ToolUse(
            id=call.id or "",
            name=call.name or "",
            arguments=call.arguments,
            signature=call.signature,
        )
        for call in spoken.calls.values()
    ]
    reason = spoken.finish_reason or choice.finish_reason
    return msgspec.structs.replace(choice, parts=tuple(parts), finish_reason=reason)


def events_of(choice: Choice) -> list[StreamEvent]:
    """A choice told as a stream: its texts, its calls, its end."""
    events = [
        StreamEvent(text=part.text, is_plain=True)
        for part in choice.parts
        if isinstance(part, Text) and part.text
    ]
    calls = [part for part in choice.parts if isinstance(part, ToolUse)]
    events += [
        StreamEvent(
            tool_calls=(
                ToolCallDelta(
                    index=place,
                    id=call.id,
                    name=call.name,
                    arguments=call.arguments,
                    signature=call.signature,
                ),
            )
        )
        for place, call in enumerate(calls)
    ]
    return [*events, StreamEvent(finish_reason=choice.finish_reason, ended_choices=(0,))]


def spoken_in(events: list[StreamEvent]) -> Spoken:
    """What some events say together; every call of them is whole."""
    calls = {call.index: call for event in events for call in event.tool_calls}
    reasons = [event.finish_reason for event in events if event.finish_reason]
    return Spoken(
        text="".join(event.text for event in events),
        reasoning="".join(event.reasoning for event in events),
        calls=calls,
        finish_reason=reasons[-1] if reasons else None,
    )


def folded(choice: Choice, done: dict[str, None]) -> Choice:
    """The choice with its reasoning as its text, where there is nothing else and it has ended.

    A thought that was cut by its bound is no answer.
    """
    thoughts = "".join(part.text for part in choice.parts if isinstance(part, Thinking))
    is_lone = all(
        isinstance(part, Thinking) or (isinstance(part, Text) and not part.text.strip())
        for part in choice.parts
    )
    if not is_lone or not thoughts.strip() or choice.finish_reason != STOP:
        return choice
    done[FOLDED] = None
    return msgspec.structs.replace(choice, parts=(Text(text=thoughts),))


def formatted(choice: Choice, wanted: AnswerFormat, done: dict[str, None]) -> Choice | Fault:
    """The choice with nothing but the JSON that was asked for, or the fault of one without."""
    if any(isinstance(part, ToolUse | Refusal) for part in choice.parts):
        return choice
    text = "".join(part.text for part in choice.parts if isinstance(part, Text))
    if choice.finish_reason not in {STOP, LENGTH} or not text.strip():
        return choice
    found = healed(text, wanted)
    if found == text:
        return choice
    if found is None:
        is_cut = choice.finish_reason == LENGTH
        return Fault(
            kind=FaultKind.GATE,
            reason=TRUNCATED_JSON if is_cut else FORMAT_IGNORED,
            message="the JSON is cut" if is_cut else "the answer is not the JSON asked for",
        )
    done[HEALED] = None
    parts = [part for part in choice.parts if not isinstance(part, Text)]
    return msgspec.structs.replace(choice, parts=(*parts, Text(text=found)))
