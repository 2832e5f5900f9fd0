"""Where answers are mended on their way to the client (room 8), and which need it.

An answer within one dialect whose codec can rewrite keeps all of its frames but those that change.
Any other is written anew as a whole, as if it had come in another dialect.
"""

from functools import cache
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import AnswerFormat, Media, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import Dialect
from cluster_gw.mending.answer import mend
from cluster_gw.mending.choices import ChoicesMender
from cluster_gw.mending.inline_calls import read_calls
from cluster_gw.mending.json_text import is_json
from cluster_gw.mending.policy import NOTHING, MendingPolicy
from cluster_gw.mending.stream import (
    CALLS,
    RESCUED,
    EventMender,
    Mender,
    MendingDecoder,
    Tools,
    minted,
)
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.tool_check import tools_of
from cluster_gw.pipeline.translation import UNREADABLE, foreign_answer, to_be_written
from cluster_gw.providers.base import RewritingProvider, StreamDecoder
from cluster_gw.providers.quirks import AS_WRITTEN

ODD_STARTS: Final = "< \n\r\t"
"""What a text begins with that may hold a thought; an empty one begins with any of them."""

CALL_STARTS: Final = ("<", "{", "`", "functions.")
FAILED_GENERATION: Final = b'"failed_generation"'
NO_TOOL_MAY_BE_CALLED: Final = frozenset({b'"none"', b'{"type":"none"}', b'{"type": "none"}'})


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that was committed.

    Attributes:
        decoder: what reads the rest.
        held: what is to be sent first.
        anew: no frame of it may be passed on; all are written.
    """

    decoder: StreamDecoder
    held: list[StreamEvent]
    anew: bool = False


def mending_decoder(
    exchange: Exchange, target: Target, decoder: StreamDecoder
) -> MendingDecoder | None:
    """The decoder of a stream that is mended from its start; None where nothing is to be mended."""
    policy, tools = policy_of(exchange, target), declared(exchange, target)
    if tools is None and not policy.think_tags:
        return None
    return MendingDecoder(
        decoder, stream_mender(exchange, target), keeps=keeps_frames(exchange, target)
    )


def with_thoughts(
    exchange: Exchange, target: Target, decoder: StreamDecoder, text: str
) -> MendingDecoder | None:
    """The decoder of a stream that begins with this text, if that may be a thought; else None."""
    is_meant = policy_of(exchange, target).think_tags
    if not is_meant or not text.lstrip().startswith("<"):
        return None
    return MendingDecoder(
        decoder, stream_mender(exchange, target), keeps=keeps_frames(exchange, target)
    )


def committed(
    exchange: Exchange, target: Target, mending: MendingDecoder, held: list[StreamEvent]
) -> Told:
    """Go on with a stream whose first events are about to be sent; says what was mended."""
    mender, may_pass = mending.mender, keeps_frames(exchange, target)
    if may_pass and mender.is_changed and any(is_signed(event) for event in mending.kept):
        # Written anew, what the vendor signed would not be known to it again.
        return Told(decoder=mending.decoder, held=mending.kept)
    exchange.warnings = (*exchange.warnings, *mender.done)
    if may_pass and not mender.is_changed:
        # Its frames travel on as they are, so nothing behind them may change any more.
        return Told(decoder=mending.decoder, held=mending.kept)
    mender.is_committed = True
    mending.kept = []
    return Told(decoder=mending, held=held, anew=may_pass)


def keeps_frames(exchange: Exchange, target: Target) -> bool:
    """Whether a stream either keeps all of its frames or is written anew."""
    return exchange.request.dialect is target.dialect and rewriting_of(exchange, target) is None


def is_signed(event: StreamEvent) -> bool:
    """Whether an event says what only its vendor can say again."""
    is_proof = bool(event.signature or event.lost) or event.is_redacted or event.has_media
    return is_proof or any(call.signature for call in event.tool_calls)


def mend_whole(
    exchange: Exchange, target: Target, completion: Completion
) -> tuple[Completion, Answer | Fault | None]:
    """A buffered answer, mended where it needs it, or what is wrong with it.

    Returns:
        Its facts, and all of it where its body is not the client's.
    """
    if not needs_mending(exchange, target, completion):
        return completion, foreign_answer(exchange, target, completion)
    try:
        before = target.codec.read_answer(completion)
    except UNREADABLE:
        return completion, foreign_answer(exchange, target, completion)  # a fault, if it matters
    is_native, policy = exchange.request.dialect is target.dialect, policy_of(exchange, target)
    mended = mend(
        before,
        lambda: mender_of(exchange, target),
        wanted=format_of(exchange) if policy.json_output else None,
        folds=policy.lone_reasoning and target.dialect is Dialect.OPENAI,
    )
    if isinstance(mended, Fault):
        return completion, mended
    after = mended.answer
    rewriting = rewriting_of(exchange, target)
    if after is before or (keeps_frames(exchange, target) and is_the_vendors_own(before)):
        return completion, None if is_native else to_be_written(exchange, before)
    exchange.warnings = (*exchange.warnings, *mended.done)
    completion = retold(completion, after)
    if rewriting is None:
        return completion, to_be_written(exchange, after)
    return rewriting.rebodied(completion, before, after), None


def is_the_vendors_own(answer: Answer) -> bool:
    """Whether an answer says what only its vendor can say again, or what has no words here."""
    parts = [part for choice in answer.choices for part in choice.parts]
    return bool(answer.lost) or any(
        isinstance(part, Media) or (isinstance(part, Thinking | ToolUse) and bool(part.signature))
        for part in parts
    )


def needs_mending(exchange: Exchange, target: Target, completion: Completion) -> bool:
    """Whether anything in a buffered answer may be in the wrong place; looks at little."""
    request, policy = exchange.request, policy_of(exchange, target)
    text, has_calls = completion.text, bool(completion.tool_calls)
    if request.wants_format and policy.json_output and not has_calls and not is_json(text):
        return True
    if request.wants_tools and (has_calls or text.lstrip().startswith(CALL_STARTS)):
        return True
    if text.lstrip().startswith("<"):
        return policy.think_tags
    is_silent = not text.strip() and not has_calls and completion.characters > len(text)
    return is_silent and policy.lone_reasoning and target.dialect is Dialect.OPENAI


def rescued_events(exchange: Exchange, target: Target, body: bytes) -> list[StreamEvent]:
    """The events of an answer whose call the provider could not read; none if nobody can."""
    calls = rescued_calls(exchange, target, body)
    if not calls:
        return []
    return [
        StreamEvent(tool_calls=calls),
        StreamEvent(finish_reason=CALLS, ended_choices=(0,)),
        StreamEvent(done=True),
    ]


def rescued_whole(
    exchange: Exchange, target: Target, body: bytes
) -> tuple[Completion, Answer | None]:
    """The buffered answer whose call the provider could not read; None if nobody can."""
    calls = rescued_calls(exchange, target, body)
    characters = sum(len(call.arguments) + len(call.name or "") for call in calls)
    completion = Completion(raw=b"", characters=characters)
    if not calls:
        return completion, None
    parts = tuple(
        ToolUse(id=call.id or "", name=call.name or "", arguments=call.arguments) for call in calls
    )
    answer = Answer(choices=(Choice(parts=parts, finish_reason=CALLS),))
    return retold(completion, answer), answer


def rescued_calls(exchange: Exchange, target: Target, body: bytes) -> tuple[ToolCallDelta, ...]:
    """The calls in an error that says what a model wrote; none where it says no such thing."""
    codec, tools = target.codec, declared(exchange, target)
    if not policy_of(exchange, target).inline_calls or tools is None:
        return ()
    written = codec.failed_generation(body) if isinstance(codec, RewritingProvider) else ""
    calls = minted(read_calls(written, tools()), call_id(exchange)) if written else ()
    if calls:
        exchange.warnings = (*exchange.warnings, RESCUED)
    return calls


def stream_mender(exchange: Exchange, target: Target) -> EventMender:
    """What mends a stream of a target, of one answer or of several."""
    count = exchange.request.choices
    if count == 1:
        return mender_of(exchange, target)
    return ChoicesMender(
        lambda index: mender_of(exchange, target, index), count, rewriting_of(exchange, target)
    )


def mender_of(exchange: Exchange, target: Target, index: int = 0) -> Mender:
    """What mends one answer of a target."""
    return Mender(
        policy_of(exchange, target),
        tools=declared(exchange, target),
        call_id=call_id(exchange),
        rewriting=rewriting_of(exchange, target),
        index=index,
    )


def policy_of(exchange: Exchange, target: Target) -> MendingPolicy:
    """What is mended of the answers of a target."""
    return NOTHING if AS_WRITTEN in target.route.quirks else exchange.runtime.policy.mending


def call_id(exchange: Exchange) -> str:
    """The start of ids of calls: of this request, and with a number at most as long as allowed."""
    return f"call_{exchange.id}"


def declared(exchange: Exchange, target: Target) -> Any:
    """Gives the declared tools, read once; None where calls of tools have no place in the answer.

    Clients of the old `functions` know one call under another name, and nothing of ids.
    """
    request, policy = exchange.request, policy_of(exchange, target)
    if not (policy.inline_calls or policy.tool_arguments):
        return None
    if not request.wants_tools or ("functions" in request.fields and "tools" not in request.fields):
        return None
    choice = request.fields.get("tool_choice")
    if choice is not None and bytes(choice) in NO_TOOL_MAY_BE_CALLED:
        return None

    @cache
    def tools() -> Tools:
        return tools_of(exchange)

    return tools


def rewriting_of(exchange: Exchange, target: Target) -> RewritingProvider | None:
    """The codec where frames travel on and it can change single ones."""
    if exchange.request.dialect is not target.dialect:
        return None
    codec = target.codec
    return codec if isinstance(codec, RewritingProvider) else None


def format_of(exchange: Exchange) -> AnswerFormat | None:
    """The JSON that the client asked for; None for free text."""
    if not exchange.request.wants_format:
        return None
    try:
        conversation = exchange.conversation or exchange.surface.read_conversation(exchange.request)
    except UNREADABLE:
        return None
    return conversation.format


def retold(completion: Completion, answer: Answer) -> Completion:
    """The facts of a completion after its answer was mended."""
    parts = [part for choice in answer.choices for part in choice.parts]
    calls = [part for part in parts if isinstance(part, ToolUse)]
    return msgspec.structs.replace(
        completion,
        text="".join(part.text for part in parts if isinstance(part, Text)),
        tool_calls=tuple(
            ToolCallDelta(index=place, id=call.id, name=call.name, arguments=call.arguments)
            for place, call in enumerate(calls)
        ),
        finish_reason=answer.choices[0].finish_reason if answer.choices else None,
    )
