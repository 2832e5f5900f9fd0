"""What of mending is fuzzed: a text in pieces, and a stream of bytes."""

import msgspec

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.core.outcome.tool_calls import join_calls
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.mending.stream import Mender, MendingDecoder
from cluster_gw.providers.base import Provider, RewritingProvider

TOOLS = {"look": {"type": "object", "properties": {"a": {"type": "array"}}}, "free": None}
END = StreamEvent(finish_reason="stop", ended_choices=(0,))


class Meant(msgspec.Struct, frozen=True):
    """What a text meant; a call that nobody can read has a fault instead."""

    text: str
    reasoning: str
    calls: tuple[tuple[str | None, str], ...]
    fault: str | None


def mender(rewriting: RewritingProvider | None = None) -> Mender:
    return Mender(MendingPolicy(), tools=lambda: TOOLS, call_id="call_x", rewriting=rewriting)


def mending(codec: Provider) -> MendingDecoder:
    rewriting = codec if isinstance(codec, RewritingProvider) else None
    return MendingDecoder(codec.stream_decoder(), mender(rewriting))


def mended_text(pieces: list[str]) -> Meant:
    one = mender()
    events = [StreamEvent(text=piece, is_plain=True) for piece in pieces]
    told = [after for event in [*events, END] for after in one.take(event)] + one.end()
    faults = [event.fault.reason for event in told if event.fault is not None]
    if faults:
        return Meant("", "", (), faults[0])
    return Meant(
        text="".join(event.text for event in told),
        reasoning="".join(event.reasoning for event in told),
        calls=tuple((call.name, call.arguments) for call in join_calls(told)),
        fault=None,
    )
