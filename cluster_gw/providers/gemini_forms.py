"""An answer of Gemini's API in its other form; see `openai_forms.py`.

A stream of this API is a run of answers, each with a part of what is said, so a whole answer is a
stream of one.
"""

from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any, write
from cluster_gw.wire.sse import SseFramer, encode_data

PLAIN: Final = frozenset({"text", "thought"})
"""Members of a part that is joined to the one before; signed ones and all others stand alone."""

LATEST: Final = frozenset(
    {"finishReason", "finishMessage", "index", "safetyRatings", "tokenCount", "avgLogprobs"}
)
"""Members of a candidate of which the last frame has the word; others are told once."""

Json = dict[str, Any]


def as_stream(body: bytes) -> bytes | None:
    """The stream of a whole answer; None where there is none."""
    try:
        document = read_any(body)
    except (InvalidJsonError, UnexpectedShapeError):
        return None
    return encode_data(write(document)) if isinstance(document, dict) else None


def as_whole(stream: bytes) -> bytes | None:
    """The whole answer that a stream tells; None where it does not tell all of one."""
    framer = SseFramer()
    document: Json = {}
    candidates: dict[int, Json] = {}
    try:
        for frame in (*framer.feed(stream), *framer.flush()):
            told = read_any(frame.data)
            if not isinstance(told, dict) or told.get("error"):
                return None
            document |= {name: one for name, one in told.items() if name != "candidates"}
            for place, said in enumerate(told.get("candidates") or ()):
                take(candidates.setdefault(said.get("index", place), {}), said)
    except (InvalidJsonError, UnexpectedShapeError, AttributeError, TypeError):
        return None
    if not candidates or not all(one.get("finishReason") for one in candidates.values()):
        return None
    return write({"candidates": [candidates[at] for at in sorted(candidates)], **document})


def take(candidate: Json, said: Json) -> None:
    """Add to a candidate what a frame says of it.

    Raises:
        TypeError: it says two things of one member, such as other sources each time.
    """
    content = candidate.setdefault("content", {"parts": []})
    for name, one in (said.get("content") or {}).items():
        if name != "parts":
            content[name] = one
    for part in (said.get("content") or {}).get("parts") or ():
        parts = content["parts"]
        before = parts[-1] if parts else {}
        is_joined = before.keys() <= PLAIN and part.keys() <= PLAIN and "text" in before
        if is_joined and before.get("thought") == part.get("thought"):
            parts[-1] = {**before, "text": before["text"] + part.get("text", "")}
        else:
            parts.append(part)
    for name, one in said.items():
        if name == "content":
            continue
        if name not in LATEST and candidate.get(name, one) != one:
            raise TypeError(name)  # nobody here knows how to tell both at once
        candidate[name] = one


def trimmed(frame: bytes, event: StreamEvent) -> bytes | None:
    """A frame of words with the rest of them; None for any other: calls are told whole."""
    if event.tool_calls or not event.is_plain:
        return None
    document: Json = read_any(frame)
    told = [
        *([{"text": event.reasoning, "thought": True}] if event.reasoning else []),
        *([{"text": event.text}] if event.text else []),
    ]
    candidate, *others = document["candidates"]
    content = {**candidate["content"], "parts": told}
    return write({**document, "candidates": [{**candidate, "content": content}, *others]})
