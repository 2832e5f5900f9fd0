"""What a simulated provider says to a request, frame by frame, read without the gateway's codecs.

The provider's own composer gives the bytes; everything the oracle knows of them is read here from
the JSON, so that a mistake of the gateway's decoder cannot hide itself.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cluster_gw.simulator.answer import compose_answer
from cluster_gw.simulator.chat_request import decode_chat_request
from cluster_gw.simulator.chat_response import Envelope
from cluster_gw.simulator.directive import Directive
from cluster_gw.simulator.faults import Fault
from cluster_gw.simulator.reply import Reply
from cluster_gw.simulator.reshape import chat_reply, replacement_reply

MAX_TOKENS: Final = 100
REPORTED_TOKENS: Final = 70
USAGE: Final = {"prompt_tokens": 50, "completion_tokens": 20}
CHANGING: Final = ("id", "created", "model", "system_fingerprint")
MAX_BLANK: Final = 8
DONE: Final = b"[DONE]"


class Dish(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of answer: what to ask the provider for."""

    name: str
    fields: dict[str, Any]
    choices: int = 1


DISHES: Final = (
    Dish(name="text", fields={"text": "héllo 東京 and a 🌊 of größe, naïve señal end"}),
    Dish(
        name="tools",
        fields={
            "tool_calls": [
                {
                    "id": "call_1",
                    "name": "look_up",
                    "arguments": {"city": "東京", "day": "to morrow"},
                },
                {
                    "id": "call_2",
                    "name": "weigh",
                    "arguments": {"grams": [1, 2], "unit": "größe 🌊"},
                },
            ]
        },
    ),
    Dish(name="two", fields={"texts": ["first of two 🌊", "zweite Größe ist länger"]}, choices=2),
    Dish(name="thoughts", fields={"reasoning": "let me 思考 a while", "text": "so: 42 🌊 it is"}),
)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What one event of a stream says.

    Attributes:
        shape: its JSON without what differs between calls; None when it is no JSON object.
        characters: of text, reasoning, names and arguments.
        calls: indices of the tool calls it speaks of.
        is_error: it carries an error object or is no JSON.
        index: of the answer that speaks; of several the first.
    """

    shape: dict[str, Any] | None = None
    characters: int = 0
    has_text: bool = False
    has_reasoning: bool = False
    calls: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    has_usage: bool = False
    is_usage_only: bool = False
    is_done: bool = False
    is_error: bool = False
    is_in_band: bool = False
    index: int = 0


def read_frame(payload: bytes) -> Frame:
    """Read one payload."""
    if payload == DONE:
        return Frame(is_done=True)
    try:
        document = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Frame(is_error=True)
    if not isinstance(document, dict) or "error" in document:
        return Frame(is_error=True, is_in_band=isinstance(document, dict))
    choices = document.get("choices", [])
    deltas = [choice["delta"] for choice in choices]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    text = "".join(delta.get("content") or "" for delta in deltas)
    thoughts = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    functions = [call["function"] for call in calls]
    spoken = "".join(f.get("name", "") + f.get("arguments", "") for f in functions)
    return Frame(
        shape={k: v for k, v in document.items() if k not in CHANGING},
        characters=len(text) + len(thoughts) + len(spoken),
        has_text=bool(text.strip()),
        has_reasoning=bool(thoughts.strip()),
        calls=tuple(call["index"] for call in calls),
        finished=tuple(c["index"] for c in choices if c["finish_reason"] is not None),
        has_usage=bool(document.get("usage")),
        is_usage_only=not choices,
        index=choices[0]["index"] if choices else 0,
    )


def visible_shape(frame: Frame, *, wants_usage: bool) -> dict[str, Any] | None:
    """The frame as the client must see it; None when it must not."""
    if frame.shape is None or frame.is_done or (frame.is_usage_only and not wants_usage):
        return None
    if wants_usage:
        return frame.shape
    return {name: value for name, value in frame.shape.items() if name != "usage"}


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What follows when exactly the first `k` frames of a stream arrive and then nothing.

    Attributes:
        is_committed: something of it reached the client.
        is_whole: the client got a complete answer.
        delivered: how many frames the client saw.
        characters: seen by the gateway.
        has_usage: the provider's own count was seen.
        is_free: the provider said that it failed before it said anything else.
    """

    is_committed: bool
    is_whole: bool
    delivered: int
    characters: int
    has_usage: bool
    is_free: bool


def follow(frames: Sequence[Frame], choices: int, *, wants_usage: bool) -> Course:
    """Tell what the arrival of these frames leads to (the rules of peek and relay, in short)."""
    committed = whole = done = False
    blank = characters = delivered = 0
    waiting: dict[int, list[int]] = {}
    calls: set[int] = set()
    finished: set[int] = set()
    usage = False
    for frame in frames:
        if frame.is_error:
            free = frame.is_in_band and not characters and not usage
            return _course(committed, False, delivered, characters, usage, free)
        began = bool(set(frame.calls) - calls) and bool(calls)
        calls |= set(frame.calls)
        characters += frame.characters
        finished |= set(frame.finished)
        usage = usage or frame.has_usage
        done = frame.is_done
        whole = done or len(finished) >= choices
        delivered += visible_shape(frame, wants_usage=wants_usage) is not None
        if not committed:
            # Blank text of one of several answers waits for more of it: a thought may begin.
            says = frame.has_text or frame.has_reasoning or frame.calls
            if choices > 1 and frame.characters > 0 and not says:
                waiting.setdefault(frame.index, []).append(frame.characters)
                characters -= frame.characters  # not known of yet
                continue
            own = 0 if says or whole else 1
            # What waited of this answer comes first, and is as blank as any.
            for size in (*waiting.pop(frame.index, ()), *[0] * own):
                blank, characters = blank + 1, characters + size
                if blank >= MAX_BLANK:
                    spoken = 0 if own else frame.characters
                    return _course(False, False, 0, characters - spoken, usage, False)
            committed = frame.has_text or began or (whole and bool(calls))
            if not committed and whole:
                return _course(False, False, 0, characters, usage, False)
        if done:
            break
    return _course(committed, whole, delivered, characters, usage, False)


def _course(
    committed: bool, whole: bool, delivered: int, characters: int, usage: bool, free: bool
) -> Course:
    return Course(
        is_committed=committed,
        is_whole=committed and whole,
        delivered=delivered if committed else 0,
        characters=characters,
        has_usage=usage,
        is_free=free,
    )


def compose(dish: Dish, faults: Sequence[Fault], *, stream: bool) -> Reply:
    """The reply of a provider to a request for this dish, with faults that change its content."""
    document: dict[str, Any] = {
        "model": "m00",
        "messages": [{"role": "user", "content": "x"}],
        "stream": stream,
        "max_tokens": MAX_TOKENS,
    }
    if dish.choices > 1:
        document["n"] = dish.choices
    if stream:
        document["stream_options"] = {"include_usage": True}
    request = decode_chat_request(msgspec.json.encode(document))
    assert not isinstance(request, Exception)
    stand_in = replacement_reply(faults)
    if stand_in is not None:
        return stand_in
    directive = msgspec.convert({**dish.fields, "usage": USAGE}, Directive)
    answer = compose_answer(request, directive, seed=1, output_tokens=8)  # type: ignore[arg-type]
    envelope = Envelope(
        id="chatcmpl-" + "0" * 24,
        created_s=1_700_000_000,
        model="m00",
        system_fingerprint=f"fp_{1:010x}",
    )
    return chat_reply(envelope, request, answer, faults)[0]  # type: ignore[arg-type]


def frames_of(reply: Reply) -> tuple[Frame, ...]:
    """The frames of a streamed reply."""
    return tuple(read_frame(each.data.removeprefix(b"data: ").strip()) for each in reply.frames)


def message_shape(body: bytes) -> dict[str, Any] | None:
    """A buffered answer without what differs between calls; None when it is no JSON object."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(document, dict) or "error" in document:
        return None
    return {name: value for name, value in document.items() if name not in CHANGING}


def estimate(characters: int) -> int:
    """Tokens of text that nobody counted: a quarter of its characters, rounded up."""
    return math.ceil(characters / 4)
