"""What must be true of a case once it is over, told without looking at the gateway's code.

A case allows a set of endings: mostly one, several where it is not known how many bytes arrived.
What happened must be one of them in every respect at once: whose answer, how many frames, how it
ended, how often each provider was called, and what each window holds.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tests.faults.cases import Case, Upstream
from tests.faults.client import Heard, payloads_of
from tests.faults.reference import (
    MAX_TOKENS,
    REPORTED_TOKENS,
    estimate,
    follow,
    message_shape,
    read_frame,
    visible_shape,
)

PROVIDERS: Final = ("a", "b")
ENDED, BROKEN = "ended", "broken"


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """One way for a case to end.

    Attributes:
        source: whose answer the client got, "" when none.
        frames: how many frames of a stream it got.
        how: `ended`, `broken`, or status and code of the error.
        calls: how often each provider was called.
        tokens: what each provider's window was charged.
    """

    source: str
    frames: int
    how: str
    calls: tuple[int, ...]
    tokens: tuple[int, ...]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One way for one attempt to end; `how` is empty when the client saw nothing of it."""

    how: str
    frames: int
    tokens: int


def allowed(case: Case, prompt_characters: int) -> set[Ending]:
    """Every ending that is right for a case whose prompt has so many characters."""
    prompt = estimate(prompt_characters)
    reserved = prompt + MAX_TOKENS * case.dish.choices
    endings: set[Ending] = set()

    def walk(place: int, tokens: tuple[int, ...]) -> None:
        if place == len(case.upstreams):
            status, code = case.faulty.told
            endings.add(_ending("", 0, f"{status} {code}", tokens))
            return
        upstream = case.upstreams[place]
        steps = (
            stream_steps(case, upstream, prompt, reserved)
            if case.stream
            else body_steps(upstream, prompt, reserved)
        )
        for step in steps:
            spent = (*tokens, step.tokens)
            if step.how:
                endings.add(_ending(PROVIDERS[place], step.frames, step.how, spent))
            else:
                walk(place + 1, spent)

    walk(0, ())
    return endings


def _ending(source: str, frames: int, how: str, tokens: tuple[int, ...]) -> Ending:
    unused = (0,) * (len(PROVIDERS) - len(tokens))
    return Ending(
        source=source,
        frames=frames,
        how=how,
        calls=((1,) * len(tokens)) + unused,
        tokens=tokens + unused,
    )


def stream_steps(case: Case, upstream: Upstream, prompt: int, reserved: int) -> Iterator[Step]:
    """The ways one streamed attempt may end."""
    if upstream.is_free:
        yield Step(how="", frames=0, tokens=0)
        return
    if upstream.may_lack_head:
        yield Step(how="", frames=0, tokens=reserved)
    if not upstream.has_head:
        return
    for count in range(upstream.least, upstream.most + 1):
        course = follow(upstream.frames[:count], case.dish.choices, wants_usage=case.wants_usage)
        tokens = REPORTED_TOKENS if course.has_usage else prompt + estimate(course.characters)
        if course.is_free:
            tokens = 0
        how = (ENDED if course.is_whole else BROKEN) if course.is_committed else ""
        yield Step(how=how, frames=course.delivered, tokens=tokens)


def body_steps(upstream: Upstream, prompt: int, reserved: int) -> Iterator[Step]:
    """The ways one buffered attempt may end."""
    if upstream.is_free:
        yield Step(how="", frames=0, tokens=0)
        return
    if upstream.body is None or upstream.may_break:
        yield Step(how="", frames=0, tokens=reserved)
    if upstream.body is not None:
        tokens = (
            REPORTED_TOKENS if upstream.has_usage else prompt + estimate(upstream.text_characters)
        )
        yield Step(how="" if upstream.is_rejected else ENDED, frames=0, tokens=tokens)


class Complaint(msgspec.Struct, frozen=True):
    """What is wrong with a case."""

    case: str
    what: str


def heard_ending(
    case: Case, heard: Heard, calls: tuple[int, ...], tokens: tuple[int, ...]
) -> Ending | str:
    """What the client heard as an ending, or why it is none at all."""
    broken_rule = _protocol_fault(heard)
    if broken_rule is not None:
        return broken_rule
    if heard.status != 200:
        return _error_ending(heard, calls, tokens)
    source = heard.headers.get("x-routed-via", "/").partition("/")[0]
    if source not in PROVIDERS:
        return f"an answer of nobody: {source}"
    if int(heard.headers.get("x-fallback-attempts", "0")) != PROVIDERS.index(source):
        return f"fallback attempts are {heard.headers.get('x-fallback-attempts')}"
    upstream = case.upstreams[PROVIDERS.index(source)]
    if not case.stream:
        if message_shape(heard.body) != upstream.body:
            return "the buffered answer is not the provider's"
        return Ending(source=source, frames=0, how=ENDED, calls=calls, tokens=tokens)
    return _stream_ending(case, heard, source, upstream, (calls, tokens))


def _protocol_fault(heard: Heard) -> str | None:
    if heard.is_hung:
        return f"no end within {heard.elapsed_s:.2f} s"
    if not heard.status:
        return f"no status line: {heard.extra[:80]!r}"
    if heard.extra:
        return f"bytes after the end: {heard.extra[:80]!r}"
    if not heard.is_whole:
        return "the body does not end by its own framing"
    return None


def _error_ending(heard: Heard, calls: tuple[int, ...], tokens: tuple[int, ...]) -> Ending | str:
    try:
        error = msgspec.json.decode(heard.body)["error"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"status {heard.status} without an error object"
    if len(error["attempts"]) != sum(calls):
        return f"{len(error['attempts'])} attempts told, {sum(calls)} made"
    if heard.status in {429, 503} and int(heard.headers.get("retry-after", "0")) < 1:
        return f"status {heard.status} without retry-after"
    how = f"{heard.status} {error['code']}"
    return Ending(source="", frames=0, how=how, calls=calls, tokens=tokens)


def _stream_ending(
    case: Case,
    heard: Heard,
    source: str,
    upstream: Upstream,
    books: tuple[tuple[int, ...], tuple[int, ...]],
) -> Ending | str:
    payloads = payloads_of(heard.body)
    if payloads is None:
        return "the stream is no clean sequence of events"
    if not payloads:
        return "an empty stream under status 200"
    *payloads, last = payloads
    end = read_frame(last)
    if not (end.is_done or end.is_in_band):
        return f"the stream ends with neither marker nor error: {last[:80]!r}"
    if end.is_in_band:
        error = msgspec.json.decode(last)["error"]
        if error["code"] != "stream_interrupted" or len(error["attempts"]) != sum(books[0]):
            return f"in-band error {error['code']} with {len(error['attempts'])} attempts"
    mixed = _not_of(payloads, source)
    if mixed is not None:
        return mixed
    got = [visible_shape(read_frame(p), wants_usage=True) for p in payloads]
    shapes = (visible_shape(f, wants_usage=case.wants_usage) for f in upstream.frames)
    wanted = [shape for shape in shapes if shape is not None]
    if got != wanted[: len(got)]:
        return "the frames are not a prefix of what the provider said"
    how = ENDED if end.is_done else BROKEN
    calls, tokens = books
    return Ending(source=source, frames=len(got), how=how, calls=calls, tokens=tokens)


def _not_of(payloads: list[bytes], source: str) -> str | None:
    """Whether every frame is of the one provider that is named."""
    mark = f"fp_{PROVIDERS.index(source) + 1:010x}"
    for payload in payloads:
        document: dict[str, Any] | None = None
        try:
            document = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"a frame is no JSON: {payload[:80]!r}"
        if not isinstance(document, dict) or document.get("system_fingerprint") != mark:
            return f"a frame of another provider: {payload[:80]!r}"
    return None
