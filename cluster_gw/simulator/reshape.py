"""Builds the reply to a chat request, with those faults that change its content."""

from collections.abc import Sequence
from typing import Any

import msgspec

from cluster_gw.simulator.answer import Answer, distort_answer
from cluster_gw.simulator.chat_request import ChatRequest
from cluster_gw.simulator.chat_response import (
    DONE_FRAME,
    Blank,
    Envelope,
    buffered_body,
    event_frame,
    stream_frames,
)
from cluster_gw.simulator.faults import (
    BlankChunks,
    DuplicateFrame,
    Fault,
    InBandError,
    MalformedJson,
    MissingUsage,
    NoDone,
    Redirect,
    Status,
    WrongContentType,
)
from cluster_gw.simulator.reply import JSON_TYPE, STREAM_TYPE, Frame, Headers, Reply, json_reply


def replacement_reply(faults: Sequence[Fault]) -> Reply | None:
    """The reply that stands in for the answer, when a fault asks for one."""
    for fault in faults:
        match fault:
            case Status():
                return msgspec.structs.replace(_status_reply(fault), is_answer=False)
            case Redirect(location=location, code=code):
                moved = json_reply(b"{}", status=code, headers=(("location", location),))
                return msgspec.structs.replace(moved, is_answer=False)
            case _:
                continue
    return None


def chat_reply(
    envelope: Envelope, request: ChatRequest, answer: Answer, faults: Sequence[Fault]
) -> tuple[Reply, Answer]:
    """The reply and the answer it says; faults change both."""
    answer = distort_answer(answer, faults)
    blank = next(
        (
            Blank(count=fault.count, content=fault.content)
            for fault in faults
            if isinstance(fault, BlankChunks)
        ),
        None,
    )
    hides_usage = any(isinstance(fault, MissingUsage) for fault in faults)
    if request.stream:
        has_usage = request.wants_usage and not hides_usage
        frames = stream_frames(envelope, answer, has_usage=has_usage, blank=blank)
        content_type = STREAM_TYPE
    else:
        body = buffered_body(envelope, answer, has_usage=not hides_usage, blank=blank)
        frames = [Frame(body, answer.completion_tokens)]
        content_type = JSON_TYPE
    reply = Reply(
        status=200,
        content_type=content_type,
        frames=tuple(frames),
        is_stream=bool(request.stream),
    )
    for fault in faults:
        reply = _reshaped(reply, fault)
    return reply, answer


def _status_reply(fault: Status) -> Reply:
    """A status with the given body; without one, an error in the provider's shape."""
    headers: Headers = tuple(fault.headers.items())
    if fault.retry_after is not None:
        after = fault.retry_after
        text = f"{after:g}" if isinstance(after, float | int) else after
        headers = (*headers, ("retry-after", text))
    if isinstance(fault.body, str):
        return Reply(
            status=fault.code,
            content_type="text/plain; charset=utf-8",
            frames=(Frame(fault.body.encode()),),
            headers=headers,
        )
    document: Any = fault.body
    if document is None:
        kind = "server_error" if fault.code >= 500 else "invalid_request_error"  # noqa: PLR2004
        message = f"Scripted failure with status {fault.code}."
        document = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return json_reply(msgspec.json.encode(document), status=fault.code, headers=headers)


def _reshaped(reply: Reply, fault: Fault) -> Reply:
    match fault:
        case MalformedJson():
            return _with_malformed(reply, fault)
        case WrongContentType():
            return _with_wrong_type(reply, fault)
        case InBandError():
            return _with_error(reply, fault)
        case NoDone():
            frames = tuple(frame for frame in reply.frames if frame is not DONE_FRAME)
            return msgspec.structs.replace(reply, frames=frames)
        case DuplicateFrame(at_frame=at) if reply.is_stream:
            frames = (*reply.frames[: at + 1], *reply.frames[at : at + 1], *reply.frames[at + 1 :])
            return msgspec.structs.replace(reply, frames=frames)
        case _:
            return reply


def _with_malformed(reply: Reply, fault: MalformedJson) -> Reply:
    """Frame `at_frame` broken off in its JSON; the frames around it stay whole."""
    at = min(fault.at_frame, len(reply.frames) - 1) if reply.is_stream else 0
    good = reply.frames[at]
    if not reply.is_stream:
        data = good.data[: len(good.data) // 2] if fault.payload is None else fault.payload.encode()
    else:
        half = good.data[: len(good.data) // 2].removeprefix(b"data: ")
        text = half if fault.payload is None else fault.payload.encode()
        data = b"data: " + text + b"\n\n"
    broken = Frame(data, good.tokens)
    frames = (*reply.frames[:at], broken, *reply.frames[at + 1 :])
    return msgspec.structs.replace(reply, frames=frames)


def _with_wrong_type(reply: Reply, fault: WrongContentType) -> Reply:
    if fault.body is None:
        return msgspec.structs.replace(reply, content_type=fault.content_type)
    page = Frame(fault.body.encode())
    return Reply(status=200, content_type=fault.content_type, frames=(page,), is_answer=False)


def _with_error(reply: Reply, fault: InBandError) -> Reply:
    document = {"error": fault.error}
    if not reply.is_stream:
        return msgspec.structs.replace(json_reply(msgspec.json.encode(document)), is_answer=False)
    before, after = reply.frames[: fault.at_frame], reply.frames[fault.at_frame :]
    rest: tuple[Frame, ...] = ()
    if fault.then == "done":
        rest = (DONE_FRAME,)
    elif fault.then == "continue":
        rest = after
    frames = (*before, event_frame(document), *rest)
    is_answer = any(frame.tokens for frame in frames)
    return msgspec.structs.replace(reply, frames=frames, is_answer=is_answer)
