"""An answer of chat completions in its other form: a whole one as a stream, a stream as a whole.

Nothing of it may be lost on the way: where that cannot be said for sure there is no other form.
"""

from typing import Any, Final

from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any, write
from cluster_gw.wire.openai_chat import DONE
from cluster_gw.wire.sse import SseFramer, encode_data

CHUNK: Final = "chat.completion.chunk"
WHOLE: Final = "chat.completion"
OWN: Final = frozenset({"choices", "usage", "object", "obfuscation"})
TEXTS: Final = frozenset({"content", "reasoning_content", "reasoning", "refusal", "arguments"})
"""What comes piece by piece; any other text comes once."""

Json = dict[str, Any]


class TwoFoldError(ValueError):
    """Two frames say different things of one member."""


def as_stream(body: bytes) -> bytes | None:
    """The stream of a whole answer; None where there is none."""
    try:
        document = read_any(body)
    except (InvalidJsonError, UnexpectedShapeError):
        return None
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        return None
    common = {name: one for name, one in document.items() if name not in OWN}
    common["object"] = CHUNK
    said = [spoken(place, choice) for place, choice in enumerate(choices)]
    frames = [{**common, "choices": [one]} for one in said]
    frames += [
        {
            **common,
            "choices": [
                {"index": one["index"], "delta": {}, "finish_reason": choice.get("finish_reason")}
            ],
        }
        for one, choice in zip(said, choices, strict=True)
    ]
    if document.get("usage") is not None:
        frames.append({**common, "choices": [], "usage": document["usage"]})
    return b"".join([*(encode_data(write(one)) for one in frames), encode_data(DONE)])


def spoken(place: int, choice: Json) -> Json:
    """A choice of the first frame; its end comes later."""
    message = choice.get("message")
    delta = dict(message) if isinstance(message, dict) else {}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [
            {"index": index, **call} for index, call in enumerate(calls) if isinstance(call, dict)
        ]
    rest = {name: one for name, one in choice.items() if name != "message"}
    return {"index": place, **rest, "delta": delta, "finish_reason": None}


def as_whole(stream: bytes) -> bytes | None:
    """The whole answer that a stream tells; None where it does not tell all of one."""
    framer = SseFramer()
    frames = [frame.data for frame in (*framer.feed(stream), *framer.flush())]
    if DONE in frames:
        frames = frames[: frames.index(DONE)]
    try:
        return whole_of([read_any(frame) for frame in frames])
    except (InvalidJsonError, UnexpectedShapeError, TwoFoldError):
        return None


def whole_of(frames: list[Any]) -> bytes | None:
    """The whole answer of some frames.

    Raises:
        TwoFoldError: they contradict each other.
    """
    document: Json = {}
    usage: Any = None
    choices: dict[int, Json] = {}
    for frame in frames:
        if not isinstance(frame, dict) or frame.get("error"):
            return None
        document |= {
            name: one
            for name, one in frame.items()
            if name not in OWN and (one is not None or name not in document)
        }
        usage = frame.get("usage") or usage
        for place, said in enumerate(frame.get("choices") or ()):
            if not isinstance(said, dict):
                return None
            take_choice(choices.setdefault(said.get("index", place), {}), said)
    told = [choice_of(index, choices[index]) for index in sorted(choices)]
    if not told or not all(one["finish_reason"] for one in told):
        return None
    document = {**document, "object": WHOLE, "choices": told}
    return write(document if usage is None else {**document, "usage": usage})


def take_choice(choice: Json, said: Json) -> None:
    """Add to a choice what a frame says of it."""
    message = choice.setdefault("delta", {})
    for name, one in (said.get("delta") or {}).items():
        add(message, name, one)
    for name, one in said.items():
        if name == "logprobs" and isinstance(one, dict):
            kept = choice.get(name) or {}
            for kind, tokens in one.items():
                add(kept, kind, tokens)
            choice[name] = kept
        elif name not in {"delta", "index"} and (one is not None or name not in choice):
            choice[name] = one


def add(kept: Json, name: str, one: Any) -> None:
    """Add one member of a frame to what is known of it."""
    before = kept.get(name)
    if one is None or before is None:
        if one is not None or name not in kept:
            kept[name] = calls_with([], one) if name == "tool_calls" and one else one
    elif name == "tool_calls":
        kept[name] = calls_with(before, one)
    elif grows(name, before, one):
        kept[name] = before + one
    elif name == "function_call" and isinstance(before, dict) and isinstance(one, dict):
        for inner, value in one.items():
            add(before, inner, value)
    elif before != one and one not in ("", {}):
        if before not in ("", {}):
            raise TwoFoldError(name)
        kept[name] = one


def grows(name: str, before: Any, one: Any) -> bool:
    """Whether a member comes piece by piece."""
    if isinstance(before, list):
        return isinstance(one, list)
    return name in TEXTS and isinstance(before, str) and isinstance(one, str)


def calls_with(calls: list[Json], said: Any) -> list[Json]:
    """Calls of tools with fragments of a frame; a fresh id is a fresh call.

    Raises:
        TwoFoldError: they contradict each other.
    """
    if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
        raise TwoFoldError("tool_calls")
    for place, fragment in enumerate(said):
        index, name = fragment.get("index", place), fragment.get("id")
        known = next(
            (
                call
                for call in reversed(calls)
                if call["index"] == index and (not name or call.get("id") in (None, "", name))
            ),
            None,
        )
        if known is None:
            known = {"index": index}
            calls.append(known)
        for member, one in fragment.items():
            if member == "function" and isinstance(one, dict):
                function = known.setdefault("function", {})
                for inner, value in one.items():
                    add(function, inner, value)
            elif member != "index":
                add(known, member, one)
    return calls


def choice_of(index: int, choice: Json) -> Json:
    """A choice of a whole answer."""
    delta = choice.pop("delta", {})
    calls = delta.get("tool_calls")
    if calls:
        told = [{name: one for name, one in call.items() if name != "index"} for call in calls]
        delta = {**delta, "tool_calls": told, "content": delta.get("content") or None}
    message = {"role": "assistant", "content": None, **delta}
    message["role"] = message["role"] or "assistant"
    return {"index": index, "finish_reason": None, **choice, "message": message}
