"""Judges answers by the gate of their combo and the tools of their request (room 8)."""

from collections.abc import Sequence

import msgspec

from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.gate import judge
from cluster_gw.core.outcome.peek import REFUSED
from cluster_gw.core.outcome.tool_calls import join_calls
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.tool_check import find_violation


def gated(exchange: Exchange, completion: Completion) -> Completion | Broken:
    """A buffered answer, if it may be given to the client."""
    violation = violation_of(exchange, completion.tool_calls)
    if violation is not None:
        return Broken(fault=violation, completion=completion)
    gate = exchange.context.resolved.gate
    if gate.is_open or not gate.applies(stream=False):
        return completion
    rejection = judge(
        gate,
        text=completion.text,
        # What is shown is as little nothing as a call is.
        tool_call_count=completion.tool_call_count + completion.has_media,
        saw_terminal=completion.finish_reason is not None,
        is_refused=completion.finish_reason == REFUSED,
    )
    if rejection is None:
        return completion
    return Broken(
        fault=Fault(kind=FaultKind.GATE, reason=rejection, message="rejected by the gate"),
        completion=completion,
    )


def rejection_of(exchange: Exchange, held: list[StreamEvent]) -> Fault | None:
    """Why a stream that begins so may not be given to the client; None when it may.

    The rest of a stream cannot be taken back once it is sent. With several answers nobody tells
    whose the calls are.
    """
    forbidden = forbidden_in(exchange, held)
    if forbidden is not None or not checks_calls(exchange) or exchange.request.choices > 1:
        return forbidden
    return violation_of(exchange, join_calls(held))


def forbidden_in(exchange: Exchange, held: list[StreamEvent]) -> Fault | None:
    """Judge the text that was peeked."""
    gate = exchange.context.resolved.gate
    if not gate.applies(stream=True) or not gate.forbidden_substrings:
        return None
    rejection = judge(
        msgspec.structs.replace(gate, require_terminal=False, min_content_length=0),
        text="".join(event.text for event in held),
        tool_call_count=1,
        saw_terminal=True,
    )
    if rejection is None:
        return None
    return Fault(kind=FaultKind.GATE, reason=rejection, message="rejected by the gate")


def violation_of(exchange: Exchange, calls: Sequence[ToolCallDelta]) -> Fault | None:
    """The fault of calls that break the client's schemas, where the operator wants to know."""
    return find_violation(exchange, calls) if checks_calls(exchange) else None


def checks_calls(exchange: Exchange) -> bool:
    """Whether calls are held against the client's schemas."""
    rails = exchange.runtime.policy.guardrails
    return rails.checks_tool_arguments and exchange.request.wants_tools
