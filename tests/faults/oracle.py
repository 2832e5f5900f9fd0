"""What must be true of a case once it is over, told without looking at the gateway's code.

A case allows a set of endings: mostly one, several where it is not known how many bytes arrived.
What happened must be one of them in every respect at once: whose answer, how many frames, how it
ended, how often each provider was called, and what each window holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tests.faults.cases import FAILED, Case, Upstream
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
GOOD: Final = 200
WAITS: Final = frozenset({429, 503})
UNTRIED: Final = {(429, "rate_limit_exceeded"), (503, "no_eligible_providers")}
"""What is told when nobody may be called: for now, or until an operator changes something."""


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


def allowed(
    case: Case,
    prompt_characters: int,
    *,
    was_late: bool,
    barred: frozenset[str] = frozenset(),
) -> set[Ending]:
    """Every ending that is right for a case.

    Args:
        case: the case.
        prompt_characters: of its prompt.
        was_late: the machine stood still for so long that any wait may have run out.
        barred: providers that may not be called, by what earlier cases showed of them.
    """
    prompt = estimate(prompt_characters)
    upstreams = [late(each) if was_late else each for each in case.upstreams]
    reserved = prompt + MAX_TOKENS * case.dish.choices
    endings: set[Ending] = set()

    def walk(place: int, tokens: tuple[int | None, ...]) -> None:
        if place == len(upstreams):
            told = {case.faulty.told, FAILED} if was_late else {case.faulty.told}
            for status, code in told if any(each is not None for each in tokens) else UNTRIED:
                endings.add(_ending("", 0, f"{status} {code}", tokens))
            return
        if PROVIDERS[place] in barred:
            walk(place + 1, (*tokens, None))
            return
        upstream = upstreams[place]
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


def late(upstream: Upstream) -> Upstream:
    """The same provider, given up at any place that it may have reached."""
    return msgspec.structs.replace(upstream, least=0, may_lack_head=True, may_break=True)


def _ending(source: str, frames: int, how: str, tokens: tuple[int | None, ...]) -> Ending:
    """An ending, given what each call cost that was made; None for one that was not."""
    unused = (None,) * (len(PROVIDERS) - len(tokens))
    return Ending(
        source=source,
        frames=frames,
        how=how,
        calls=tuple(int(each is not None) for each in (*tokens, *unused)),
        tokens=tuple(each or 0 for each in (*tokens, *unused)),
    )


def stream_steps(case: Case, upstream: Upstream, prompt: int, reserved: int) -> Iterator[Step]:
    """The ways one streamed attempt may end."""
    if upstream.may_lack_head:
        yield Step(how="", frames=0, tokens=reserved)
    if upstream.is_free:
        yield Step(how="", frames=0, tokens=0)
        return
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
    if upstream.may_break or (upstream.body is None and not upstream.is_free):
        yield Step(how="", frames=0, tokens=reserved)
    if upstream.body is not None:
        tokens = REPORTED_TOKENS if upstream.has_usage else prompt + estimate(upstream.characters)
        yield Step(how="" if upstream.is_rejected else ENDED, frames=0, tokens=tokens)


class WrongError(Exception):
    """What came back breaks a rule that holds for every case; the text says which."""


def heard_ending(
    case: Case, heard: Heard, calls: tuple[int, ...], tokens: tuple[int, ...]
) -> Ending:
    """What the client heard, as an ending.

    Raises:
        WrongError: it is none at all.
    """
    _check_protocol(heard)
    if heard.status != GOOD:
        source, frames, how = "", 0, _error_of(heard, sum(calls))
    else:
        source = heard.headers.get("x-routed-via", "/").partition("/")[0]
        _check_source(heard, source, calls)
        upstream = case.upstreams[PROVIDERS.index(source)]
        if case.stream:
            frames, how = _stream_end(case, heard, upstream, sum(calls))
            _check_frames_are_of(heard, source)
        else:
            frames, how = 0, ENDED
            if message_shape(heard.body) != upstream.body:
                raise WrongError("the buffered answer is not the provider's")
    return Ending(source=source, frames=frames, how=how, calls=calls, tokens=tokens)


def _check_protocol(heard: Heard) -> None:
    if heard.is_hung:
        raise WrongError(f"no end within {heard.elapsed_s:.2f} s")
    if not heard.status:
        raise WrongError(f"no status line: {heard.extra[:80]!r}")
    if heard.extra:
        raise WrongError(f"bytes after the end: {heard.extra[:80]!r}")
    if not heard.is_whole:
        raise WrongError("the body does not end by its own framing")


def _check_source(heard: Heard, source: str, calls: tuple[int, ...]) -> None:
    if source not in PROVIDERS:
        raise WrongError(f"an answer of nobody: {source}")
    told = int(heard.headers.get("x-fallback-attempts", "0"))
    if told != sum(calls[: PROVIDERS.index(source)]):
        raise WrongError(f"{told} failed attempts told under an answer of {source}")


def _error_of(heard: Heard, calls: int) -> str:
    """Status and code of an error answer."""
    try:
        error = msgspec.json.decode(heard.body)["error"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise WrongError(f"status {heard.status} without an error object") from None
    told = len(error.get("attempts", ()))
    if told != calls:
        raise WrongError(f"{told} attempts told, {calls} made")
    if heard.status in WAITS and int(heard.headers.get("retry-after", "0")) < 1:
        raise WrongError(f"status {heard.status} without retry-after")
    return f"{heard.status} {error['code']}"


Shape = Mapping[str, Any]


def _stream_end(case: Case, heard: Heard, upstream: Upstream, calls: int) -> tuple[int, str]:
    """How many frames a stream holds, all of them the provider's in order, and how it ends."""
    payloads = payloads_of(heard.body)
    if not payloads:
        raise WrongError("the stream is no clean sequence of events")
    *payloads, last = payloads
    end = read_frame(last)
    if not (end.is_done or end.is_in_band):
        raise WrongError(f"the stream ends with neither marker nor error: {last[:80]!r}")
    if end.is_in_band:
        error = msgspec.json.decode(last)["error"]
        if error["code"] != "stream_interrupted" or len(error["attempts"]) != calls:
            raise WrongError(f"in-band error {error['code']}, {len(error['attempts'])} attempts")
    seen = (visible_shape(read_frame(payload), wants_usage=True) for payload in payloads)
    got = [shape or {} for shape in seen]
    shapes = (visible_shape(f, wants_usage=case.wants_usage) for f in upstream.frames)
    wanted = [shape for shape in shapes if shape is not None]
    delivered = len(got) if got == wanted[: len(got)] else _told_by_answer(got, wanted)
    return delivered, ENDED if end.is_done else BROKEN


def _told_by_answer(got: Sequence[Shape], wanted: Sequence[Shape]) -> int:
    """How many of the provider's frames were told, each of several answers in its own order.

    A frame of several answers is taken apart where one of them waited: then its parts are frames.
    """
    told = _answers_of(got)
    for count in range(len(wanted) + 1):
        if _answers_of(wanted[:count]) == told and len(told) > 1:
            return count
    raise WrongError("the frames are not a prefix of what the provider said")


def _answers_of(shapes: Sequence[Shape]) -> dict[int | None, list[Shape]]:
    """What is said of each answer, in order; of none of them: under None."""
    told: dict[int | None, list[Shape]] = {}
    for shape in shapes:
        choices = shape.get("choices") or ()
        rest = {name: value for name, value in shape.items() if name != "usage"}
        for choice in choices[:-1]:
            told.setdefault(choice["index"], []).append({**rest, "choices": [choice]})
        last = choices[-1] if choices else None
        index = None if last is None else last["index"]
        told.setdefault(index, []).append({**shape, "choices": [last] if last else []})
    return told


def _check_frames_are_of(heard: Heard, source: str) -> None:
    """Every frame but the last one carries the mark of the provider that is named."""
    mark = f"fp_{PROVIDERS.index(source) + 1:010x}"
    for payload in (payloads_of(heard.body) or [])[:-1]:
        if msgspec.json.decode(payload).get("system_fingerprint") != mark:
            raise WrongError(f"a frame of another provider: {payload[:80]!r}")
