"""The loop of a request that fetches an answer for others too: what the upstream sends is copied.

Whoever follows gets nothing before this request's own client would; an attempt that failed before
is no part of the answer. What comes of the lead is decided once, at the end.
"""

from collections.abc import Callable
from typing import Final

from cluster_gw.canonical.events import Completion, StreamEvent, Usage
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.cache_rules import is_whole
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.pipeline.answer_bytes import Tape, TapedBytes
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.coalescing import NOT_SHARED
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.failover import Failover
from cluster_gw.pipeline.opened import AnswerBytes, Opened, OpenStream
from cluster_gw.pipeline.relay import Relay
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.translation import UNREADABLE
from cluster_gw.store.cache_codec import Entry, Head
from cluster_gw.store.cache_look import Lead
from cluster_gw.store.response_cache import ResponseCache

STOP: Final = "stop"
Settle = Callable[[Entry | None], None]


class TapedAttempt(Attempt):
    """An attempt whose good answer is copied.

    Attributes:
        tape: the copy; None while there is nothing to copy.
    """

    tape: Tape | None = None

    async def _peek_stream(self, response: AnswerBytes) -> Opened:
        return await super()._peek_stream(self._taped(response))

    async def _whole_answer(self, response: AnswerBytes) -> Opened:
        return await super()._whole_answer(self._taped(response))

    def _taped(self, response: AnswerBytes) -> TapedBytes:
        self.tape = Tape(self._exchange.runtime.cache.most_entry_bytes)
        return TapedBytes(response, self.tape)


class Led(Failover):
    """Serves one exchange, and others with its answer.

    Args:
        shell: what to act through.
        exchange: the request.
        reply: the client's end.
        store: takes what comes.
        lead: of this request.
        settle: called once with what is to be stored, or None for an answer that is whole and not
            to be stored; not at all where there is none.
    """

    attempt_of = TapedAttempt

    def __init__(
        self,
        shell: Shell,
        exchange: Exchange,
        reply: Reply,
        *,
        store: ResponseCache,
        lead: Lead,
        settle: Settle,
    ) -> None:
        super().__init__(shell, exchange, reply)
        self._store = store
        self._lead = lead
        self._settle = settle
        self._is_shared = False
        self._relayed: Attempt | None = None

    async def _relay(self, attempt: Attempt, stream: OpenStream) -> None:
        self._share(attempt)
        self._relayed = attempt
        await super()._relay(attempt, stream)

    async def _finish(self, relay: Relay, last: bytes) -> None:
        # All has come: nobody else waits for this client to read it.
        if self._stream_code is None and self._relayed is not None:
            self._keep(self._relayed, None)
        await super()._finish(relay, last)

    async def _answer(self, attempt: Attempt, completion: Completion, latency_ms: int) -> None:
        self._share(attempt)
        self._keep(attempt, completion)
        await super()._answer(attempt, completion, latency_ms)

    def _share(self, attempt: Attempt) -> None:
        """The answer is this one: whoever follows gets what has come of it, and what comes."""
        tape = attempt.tape if isinstance(attempt, TapedAttempt) else None
        if tape is None or tape.content_type is None or not may_share(self._exchange, attempt):
            self._store.give_up(self._lead, NOT_SHARED)
            return
        self._is_shared = True
        route, store, lead = attempt.target.route, self._store, self._lead
        head = Head(
            dialect=attempt.target.dialect,
            route=route.id,
            provider=route.provider,
            model=route.subject,
            content_type=tape.content_type,
            is_stream=self._exchange.request.stream,
        )
        store.feed(lead, head)
        tape.hand_to(lambda piece: store.feed(lead, piece))

    def _keep(self, attempt: Attempt, completion: Completion | None) -> None:
        """The answer is whole: store it if it may be."""
        if self._is_shared and isinstance(attempt, TapedAttempt) and attempt.tape is not None:
            now_ms = self._shell.clock.wall_ms()
            self._settle(entry_of(self._exchange, attempt, attempt.tape, completion, now_ms))


def may_share(exchange: Exchange, attempt: Attempt) -> bool:
    """Whether an attempt asks what the client asked, so that others may have the answer.

    One that was told what is kept of a conversation asks more; and one whose vendor keeps the
    answer makes something that belongs to its client.
    """
    request, target = exchange.request, attempt.target
    if attempt.amended is not None:
        return False
    return request.dialect is not target.dialect or not wants_kept(request)


def wants_kept(request: ChatRequest) -> bool:
    """Whether a vendor of the client's API keeps the answer for it: it does unless told not to."""
    is_asked = request.dialect is Dialect.OPENAI_RESPONSES
    return is_asked and bytes(request.fields.get("store", b"true")) != b"false"


def entry_of(
    exchange: Exchange, attempt: Attempt, tape: Tape, completion: Completion | None, now_ms: int
) -> Entry | None:
    """What is stored of a whole answer; None for one that must not be stored.

    Args:
        exchange: the request.
        attempt: that answered.
        tape: what its upstream sent.
        completion: a buffered answer; None for a stream.
        now_ms: ms since the epoch.
    """
    said: Completion | Tally = attempt.tally if completion is None else completion
    payload = tape.payload
    is_said = said.characters > 0 or (completion is not None and shows(completion))
    if not payload or not is_said:
        return None
    if not is_whole(reasons_of(exchange, attempt, payload, completion)):
        return None
    route = attempt.target.route
    prompt, output = tokens_of(exchange, said.usage)
    return Entry(
        dialect=attempt.target.dialect,
        route=route.id,
        provider=route.provider,
        model=route.subject,
        content_type=tape.content_type or "",
        is_stream=exchange.request.stream,
        payload=payload,
        prompt_tokens=prompt,
        completion_tokens=output,
        created_ms=now_ms,
        client=exchange.client,
        finish=said.finish_reason or "",
    )


def shows(completion: Completion) -> bool:
    """Whether an answer without words says something."""
    has_more = completion.tool_calls or completion.has_media
    return bool(has_more) or completion.vectors is not None


def reasons_of(
    exchange: Exchange, attempt: Attempt, payload: bytes, completion: Completion | None
) -> list[str | None]:
    """Why each choice of an answer ended."""
    codec, is_single = attempt.target.codec, exchange.request.choices == 1
    if completion is None:
        if is_single:
            return [attempt.tally.finish_reason]
        decoder = codec.stream_decoder(attempt.target.secret)
        return told_ends([*decoder.decode(payload), *decoder.flush()], exchange.request.choices)
    if completion.vectors is not None:
        return [STOP]
    if is_single:
        return [completion.finish_reason]
    try:
        return [choice.finish_reason for choice in codec.read_answer(completion).choices]
    except UNREADABLE:
        return []


def told_ends(events: list[StreamEvent], choices: int) -> list[str | None]:
    """Why each of several choices of a stream ended."""
    found: dict[int, str] = {}
    for event in events:
        for index, piece in event.pieces or ((0, event),):
            if piece.finish_reason:
                found[index] = piece.finish_reason
    return [found.get(index) for index in range(choices)]


def tokens_of(exchange: Exchange, usage: Usage | None) -> tuple[int, int]:
    """Tokens of prompt and answer, by estimate where nobody said."""
    if usage is not None:
        return usage.prompt_tokens, usage.completion_tokens
    prompt = exchange.demand.input_tokens
    return prompt, max(0, exchange.tokens - prompt)
