"""Every case of the sweep: a dish, a fault at a place, and which providers have it."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, Literal

import msgspec

from cluster_gw.simulator.faults import Fault
from cluster_gw.simulator.reply import Reply
from tests.faults.reference import DISHES, Dish, Frame, compose, frames_of, message_shape

Scene = Literal["only", "first", "all"]
SCENES: Final[tuple[Scene, ...]] = ("only", "first", "all")
RANDOM_OFFSETS: Final = 200
SEED: Final = 20_260
STREAM_HEAD: Final = (164, 168)  # least and most bytes of a provider's response head
BODY_HEAD: Final = (140, 148)
LONG_S: Final = 60.0  # a hang that outlives every budget
SHORT_S: Final = 0.03  # one that none of them minds

Status = tuple[int, str]
FAILED: Final[Status] = (502, "upstream_failed")
STATUSES: Final[dict[int, Status]] = {
    307: FAILED,
    400: (400, "provider_rejected_request"),
    401: (502, "provider_authentication_failed"),
    402: (429, "rate_limit_exceeded"),
    403: (429, "rate_limit_exceeded"),
    404: (404, "model_not_found"),
    408: FAILED,
    410: (404, "model_not_found"),
    413: (413, "context_length_exceeded"),
    422: (400, "provider_rejected_request"),
    429: (429, "rate_limit_exceeded"),
    500: FAILED,
    502: FAILED,
    503: FAILED,
    529: FAILED,
}


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """What one provider does to the call.

    Attributes:
        frames: of the stream it would send.
        least, most: how many of them surely and at most arrive.
        body: of a buffered answer that is good and whole; None when there is none.
        may_break: a buffered answer that may or may not be whole.
        may_lack_head, has_head: whether a status line may be missing, and whether it may come.
        is_free: it answers that it did no work, so nothing is charged for tokens.
        told: what the client is told when everybody fails like this.
        characters: of the buffered answer, whatever they say, for the charge without usage.
        has_usage: the buffered body tells tokens.
    """

    frames: tuple[Frame, ...] = ()
    least: int = 0
    most: int = 0
    body: dict[str, Any] | None = None
    may_break: bool = False
    may_lack_head: bool = False
    has_head: bool = True
    is_free: bool = False
    is_rejected: bool = False
    told: Status = FAILED
    characters: int = 0
    has_usage: bool = True


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One request and the faults that await it."""

    name: str
    dish: Dish
    stream: bool
    wants_usage: bool
    scene: Scene
    faults: tuple[dict[str, Any], ...]
    faulty: Upstream
    clean: Upstream

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """What the candidates do, in the order of the combo."""
        second = {"only": (), "first": (self.clean,), "all": (self.faulty,)}[self.scene]
        return (self.faulty, *second)


def parsed(faults: Sequence[dict[str, Any]]) -> list[Fault]:
    """The faults as the simulator's values."""
    return [msgspec.convert(fault, Fault) for fault in faults]


def ends_of(reply: Reply) -> list[int]:
    """Where each frame of a body ends."""
    return list(accumulate(len(frame.data) for frame in reply.frames))


def wire_ends_of(reply: Reply, head_bytes: int) -> list[int]:
    """Where each frame ends in a chunked response with a head of that length."""
    ends, at = [], head_bytes
    for frame in reply.frames:
        at += len(b"%x\r\n" % len(frame.data)) + len(frame.data)
        ends.append(at)
        at += 2
    return ends


def up_to(ends: Sequence[int], offset: int) -> int:
    """How many frames have arrived whole after `offset` bytes."""
    return sum(end <= offset for end in ends)


def stream_of(dish: Dish, faults: Sequence[dict[str, Any]]) -> Upstream:
    """What a provider with these faults sends to a streaming request."""
    kinds = {fault["kind"]: fault for fault in faults}
    reply = compose(dish, parsed(faults), stream=True)
    if not reply.is_answer and reply.status != 200:
        return Upstream(is_free=True, told=STATUSES[reply.status])
    if "wrong_content_type" in kinds:
        return Upstream(is_free=True)
    if _is_mute(kinds):
        return Upstream(has_head=False, may_lack_head=True)
    frames = frames_of(reply)
    least = most = len(frames)
    lacks_head, has_head = False, True
    cut, hang = kinds.get("cut"), kinds.get("hang_mid_stream")
    if cut is not None and cut.get("scope") == "response":
        late, early = (wire_ends_of(reply, head) for head in reversed(STREAM_HEAD))
        least, most = up_to(late, cut["at_byte"]), up_to(early, cut["at_byte"])
        lacks_head, has_head = cut["at_byte"] < STREAM_HEAD[1], cut["at_byte"] >= STREAM_HEAD[0]
    elif cut is not None:
        least = most = up_to(ends_of(reply), cut["at_byte"])
    elif hang is not None and hang.get("then") != "answer":
        frame = hang.get("at_frame", 1)
        least = most = (
            up_to(ends_of(reply), hang["at_byte"]) if "at_byte" in hang else min(frame, most)
        )
    if "encoded" in kinds and (cut is not None or hang is not None):
        least, most = 0, len(frames)  # places are those of the compressed bytes
    return Upstream(
        frames=frames, least=least, most=most, may_lack_head=lacks_head, has_head=has_head
    )


def body_of(dish: Dish, faults: Sequence[dict[str, Any]]) -> Upstream:
    """What a provider with these faults sends to a buffered request."""
    kinds = {fault["kind"]: fault for fault in faults}
    reply = compose(dish, parsed(faults), stream=False)
    if not reply.is_answer and reply.status != 200:
        return Upstream(is_free=True, told=STATUSES[reply.status])
    page = kinds.get("wrong_content_type")
    if "in_band_error" in kinds or (page is not None and page.get("body", "") is not None):
        return Upstream(is_free=True)
    if _is_mute(kinds):
        return Upstream(has_head=False)
    data = b"".join(frame.data for frame in reply.frames)
    shape = message_shape(data)
    if shape is None:
        return Upstream()
    messages = [choice["message"] for choice in map(_with_thoughts_told, shape["choices"])]
    text = "".join(message["content"] or "" for message in messages)
    is_rejected = shape["choices"][0]["finish_reason"] is None or not (
        text.strip() or any("tool_calls" in message for message in messages)
    )
    breaks, may_break = _breaks(kinds, len(data))
    return Upstream(
        body=None if breaks else shape,
        may_break=may_break,
        is_rejected=is_rejected,
        characters=len(text) + sum(map(_unspoken, messages)),
        has_usage="usage" in shape,
    )


def _with_thoughts_told(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice that ended and holds thoughts alone, with them as its text: decision 0055."""
    message = choice["message"]
    is_silent = not (message["content"] or "").strip() and "tool_calls" not in message
    if is_silent and message.get("reasoning_content") and choice["finish_reason"] == "stop":
        message["content"] = message.pop("reasoning_content")
    return choice


def _unspoken(message: dict[str, Any]) -> int:
    """Output characters of a message beside its text."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    calls = sum(len(f.get("name", "")) + len(f.get("arguments", "")) for f in functions)
    return len(message.get("reasoning_content") or "") + calls


def _is_mute(kinds: dict[str, dict[str, Any]]) -> bool:
    hang = kinds.get("hang_before_headers")
    waits = hang is not None and hang.get("then") != "answer"
    return waits or "close_without_reply" in kinds or "raw_reply" in kinds


def _breaks(kinds: dict[str, dict[str, Any]], length: int) -> tuple[bool, bool]:
    """Whether a buffered body surely, and whether it perhaps, does not arrive whole."""
    cut, hang = kinds.get("cut"), kinds.get("hang_mid_stream")
    if cut is not None and cut.get("scope") == "response":
        least, most = (head + length for head in BODY_HEAD)
        return cut["at_byte"] < least, least <= cut["at_byte"] < most
    if "encoded" in kinds and cut is not None:
        return False, True
    if cut is not None:
        return bool(cut["at_byte"] < length), False
    if hang is not None and hang.get("then") != "answer":
        return "at_byte" not in hang or hang["at_byte"] < length, False
    return False, False


def fault(kind: str, **fields: Any) -> tuple[dict[str, Any], ...]:
    """One fault as it is written in a directive."""
    return ({"kind": kind, **fields},)


def placeless() -> Iterator[tuple[dict[str, Any], ...]]:
    """Faults without a place in the body."""
    yield ()
    for code in STATUSES:
        yield fault("redirect") if code == 307 else fault("status", code=code)
    yield fault("status", code=503, body="<html>down</html>")
    yield fault("hang_before_headers", max_s=LONG_S)
    yield fault("hang_before_headers", max_s=SHORT_S, then="answer")
    for mode in ("fin", "rst"):
        yield fault("close_without_reply", mode=mode)
        yield fault("raw_reply", mode=mode)
    for count in (1, 3, 7, 20):
        yield fault("blank_chunks", count=count, content=" " * (count % 2))
    yield fault("blank_chunks", count=3, only=True)
    for kind in ("role_only", "reasoning_only", "missing_usage", "no_done", "no_finish"):
        yield fault(kind)
    yield (*fault("no_done"), *fault("no_finish"))
    yield (*fault("no_done"), *fault("missing_usage"))
    yield fault("wrong_content_type")
    yield fault("wrong_content_type", body=None)
    yield fault("slow_drip", bytes_per_chunk=64, delay_ms=1)
    for encoding in ("gzip", "deflate", "br", "zstd"):
        yield fault("encoded", encoding=encoding)
    yield fault("huge_answer", size_bytes=300_000)
    yield (*fault("status", code=503), *fault("hang_mid_stream", max_s=LONG_S))


def still_open() -> Iterator[tuple[dict[str, Any], ...]]:
    """Streams that are given up while the provider goes on: it must learn of it."""
    yield (*fault("blank_chunks", count=20), *fault("hang_mid_stream", at_frame=18, max_s=LONG_S))
    for frame in (0, 3, 5):
        hang = fault("hang_mid_stream", at_frame=frame + 1, max_s=LONG_S)
        yield (*fault("malformed_json", at_frame=frame), *hang)
        yield (*fault("in_band_error", at_frame=frame, then="continue"), *hang)


def placed_in_stream(dish: Dish) -> Iterator[tuple[dict[str, Any], ...]]:
    """Every fault with a place, at every frame boundary."""
    ends = [0, *ends_of(compose(dish, (), stream=True))]
    last = len(ends) - 1
    for frame in range(last + 1):
        yield fault("hang_mid_stream", at_frame=frame, max_s=LONG_S)
        yield fault("hang_mid_stream", at_frame=frame, max_s=SHORT_S, then="answer")
        for mode in ("fin", "rst"):
            yield fault("cut", at_byte=ends[frame], mode=mode)
        for short in (1, 2, 3):  # the line ends of a frame, and its last character
            yield fault("cut", at_byte=max(ends[frame] - short, 0), mode="fin")
    for frame in range(last):
        yield fault("malformed_json", at_frame=frame)
        yield fault("duplicate_frame", at_frame=frame)
        for then in ("end", "done", "continue"):
            yield fault("in_band_error", at_frame=frame, then=then)


def placed_in_body(dish: Dish) -> Iterator[tuple[dict[str, Any], ...]]:
    """The same for a buffered body, which has no frames: at its ends and in its middle."""
    length = len(compose(dish, (), stream=False).frames[0].data)
    for at in (0, 1, length // 2, length - 1, length):
        if at < length:  # a hang after the last byte is none: the answer is whole
            yield fault("hang_mid_stream", at_byte=at, max_s=LONG_S)
            yield fault("hang_mid_stream", at_byte=at, max_s=SHORT_S, then="answer")
        for mode in ("fin", "rst"):
            yield fault("cut", at_byte=at, mode=mode)
    yield fault("malformed_json")
    yield fault("malformed_json", payload="[1]")
    yield fault("in_band_error")


def make_case(
    dish: Dish, faults: tuple[dict[str, Any], ...], number: int, *, stream: bool, scene: Scene
) -> Case:
    """One case; every third of the streams asks for usage."""
    build = stream_of if stream else body_of
    kinds = "+".join(each["kind"] for each in faults) or "none"
    return Case(
        name=f"{dish.name}-{'s' if stream else 'b'}-{scene}-{number}-{kinds}",
        dish=dish,
        stream=stream,
        wants_usage=stream and number % 3 == 0,
        scene=scene,
        faults=faults,
        faulty=build(dish, faults),
        clean=build(dish, ()),
    )


def sweep(dish: Dish, *, stream: bool, scene: Scene) -> list[Case]:
    """Every fault at every place for one dish and one scene."""
    placed = placed_in_stream if stream else placed_in_body
    every = [*placeless(), *(still_open() if stream else ()), *placed(dish)]
    return [
        make_case(dish, faults, number, stream=stream, scene=scene)
        for number, faults in enumerate(every)
    ]


def scattered() -> list[Case]:
    """Faults at random byte offsets of the response, the same ones in every run."""
    dice = random.Random(SEED)
    cases = []
    for number in range(RANDOM_OFFSETS):
        dish = DISHES[number % len(DISHES)]
        stream = dice.random() < 0.75
        scene = SCENES[dice.randrange(len(SCENES))]
        reply = compose(dish, (), stream=stream)
        length = sum(len(frame.data) for frame in reply.frames)
        mode = dice.choice(("fin", "rst"))
        match dice.randrange(4):
            case 0:
                faults = fault("hang_mid_stream", at_byte=dice.randrange(length), max_s=LONG_S)
            case 1:
                faults = fault("cut", at_byte=dice.randrange(length), mode=mode)
            case 2:
                at = dice.randrange(length + STREAM_HEAD[1])
                faults = fault("cut", at_byte=at, mode=mode, scope="response")
            case _:
                encoding = dice.choice(("gzip", "deflate", "br", "zstd"))
                cut = fault("cut", at_byte=dice.randrange(length // 2), mode=mode)
                faults = (*fault("encoded", encoding=encoding), *cut)
        cases.append(make_case(dish, faults, number, stream=stream, scene=scene))
    return cases
