"""What a conversation needs of its earlier answers, put into the outbound copy of a request alone.

Three things, all hints that Redis may lose: what the model thought beside its calls, how its vendor
signed them, and that another model answered before. Requests that need none pay one test.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

import msgspec

from cluster_gw.canonical.conversation import Conversation, Role
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.outcome.heard import MOST_ARGUMENTS, FirstCall, Heard, first_of, words_of
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange, Session
from cluster_gw.pipeline.runtime import Runtime, SessionPolicy
from cluster_gw.pipeline.session_records import (
    HANDOFF_READER,
    MARK,
    MESSAGE_CHARACTERS,
    THOUGHT_READER,
    Handoff,
    Said,
    Thought,
    is_counted,
    last_messages,
    model_of,
    note_of,
    record_json,
    turn_digest,
    turns_before,
    with_room,
)
from cluster_gw.pipeline.session_turns import newest_words, openings, with_blank, with_thought
from cluster_gw.pipeline.targets import Recalls, Target
from cluster_gw.pipeline.translation import UNREADABLE, Amended, conversation_of
from cluster_gw.providers.quirks import REASONING_BLANK
from cluster_gw.providers.reasoning_echo import (
    CALLS,
    message_count,
    messages_before,
    thoughtless,
    with_thoughts,
)
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.session_memory import Record, SessionMemory
from cluster_gw.surfaces.system_note import with_note, with_noted_turn

MOST_TURNS: Final = 16
"""Turns with calls, the newest ones, of which thoughts are looked for; each is a read."""
HANDOFF_BYTES: Final = 65_536  # more than its characters can be, however they are written
THOUGHTS: Final = "reasoning"
HANDOFFS: Final = "handoff"


Before = Callable[[Collection[int]], Mapping[int, bytes]]
"""Gives what stands for all that was said before some places of a conversation."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question on its way: who answered a session last."""

    record: Record
    future: "asyncio.Future[Reply] | None"


class Sessions:
    """Gives requests what they need of earlier answers, and keeps what later ones will.

    Args:
        memory: of the worker.
        keys: builds key names.
        workers: how many share the budget.
        clock: of the worker.
    """

    def __init__(
        self, memory: SessionMemory, keys: Keys, workers: Callable[[], int], clock: Clock
    ) -> None:
        self._memory = memory
        self._keys = keys
        self._workers = workers
        self._clock = clock

    def ask(self, context: RouteContext, runtime: Runtime) -> Question | None:
        """Ask who answered a session last; None where no model will be told.

        A request that names a route chose its model itself, and one without history begins anew.
        """
        request, catalog, combo = context.request, runtime.catalog, context.resolved.combo
        is_auto = combo in catalog.combos or combo in catalog.aliases
        has_session = bool(context.session_label or request.first_user_text)
        if not (is_auto and has_session) or request.embedding is not None or request.continues:
            return None
        record = Record(
            name=self._keys.handoff(context.client, context.session_key),
            client=context.client,
            kind=HANDOFFS,
            ttl_ms=runtime.sessions.handoff_ttl_ms,
        )
        if not request.has_history:
            return Question(record=record, future=None)
        if self._memory.is_resting:
            self._memory.count_lost([record])
            return Question(record=record, future=None)
        return Question(record=record, future=self._memory.ask(record))

    async def open(self, question: Question, context: RouteContext) -> tuple[Session, RouteContext]:
        """Wait for the answer.

        Returns:
            The session, and the request as it is to be ranked: where an earlier model is known its
            estimate has room for a note, which any other than that would get.
        """
        session = Session(record=question.record)
        if question.future is None:
            return session, context
        asked_s = self._clock.monotonic_s()
        found = await self._memory.told(question.record, question.future)
        session.waited_s = self._clock.monotonic_s() - asked_s
        if found is None:
            return session, context
        try:
            session.prior = HANDOFF_READER.read(found)
        except ValueError:
            self._memory.unread(question.record)
            return session, context
        return session, msgspec.structs.replace(context, demand=with_room(context.demand))

    def listen(self, exchange: Exchange, attempt: Attempt) -> Recalls | None:
        """Listen to an attempt's answer, if later requests may need some of it.

        Returns:
            What its target wants to see again of earlier ones.
        """
        target, request, session = attempt.target, exchange.request, exchange.session
        policy = exchange.runtime.sessions
        recalls = wanted(target, request, policy)
        wants_all = recalls is not None and wants_every_turn(target)
        is_listening = recalls is not None and (request.wants_tools or wants_all)
        is_listening = is_listening and request.choices == 1
        if is_listening or session is not None:
            thoughts = policy.most_bytes if is_listening and recalls is Recalls.REASONING else 0
            words = MESSAGE_CHARACTERS if session is not None else 0
            if wants_all:
                words = MOST_ARGUMENTS
            attempt.heard = Heard(most_thoughts=thoughts, most_words=words)
        return recalls

    async def prepare(self, exchange: Exchange, attempt: Attempt) -> None:
        """Put into an attempt's request what its target wants to see, and listen to its answer."""
        target, request, session = attempt.target, exchange.request, exchange.session
        recalls = self.listen(exchange, attempt)
        note = None
        if session is not None and session.prior is not None and session.concerns(target):
            note = note_of(session.prior)
        if note is None and (recalls is None or not request.has_history):
            return
        if request.dialect is target.dialect:
            await self._amend_request(exchange, attempt, note)
        else:
            await self._amend_conversation(exchange, attempt, recalls, note)

    def keep(self, exchange: Exchange, attempt: Attempt, completion: Completion | None) -> None:
        """A listened to attempt answered: keep what the next requests will need of it.

        Args:
            exchange: the request.
            attempt: was prepared.
            completion: a buffered answer; None for a stream, of which everything was heard.
        """
        heard, target, session = attempt.heard, attempt.target, exchange.session
        if heard is None:
            return
        if completion is not None and (completion.tool_calls or heard.wants_words):
            try:
                heard.add_answer(attempt.answer or target.codec.read_answer(completion))
            except UNREADABLE:
                return
        policy = exchange.runtime.sessions
        recalls = wanted(target, exchange.request, policy)
        if recalls is not None:
            self._keep_thoughts(exchange, target, heard, recalls)
        if session is not None:
            # Reading a long conversation takes a while, and the end of the answer waits to leave.
            loop = asyncio.get_running_loop()
            loop.call_soon(self._hand_over, exchange, session, model_of(target.route), heard)

    def _keep_thoughts(
        self, exchange: Exchange, target: Target, heard: Heard, recalls: Recalls
    ) -> None:
        first, model = heard.first_call, model_of(target.route)
        if heard.is_too_long:
            self._memory.pass_by(THOUGHTS)
        if first is None and wants_every_turn(target):
            first = heard.last_words
        if first is None:
            return
        reasoning = heard.thoughts if recalls is Recalls.REASONING else ""
        signatures = heard.signatures if recalls is Recalls.SIGNATURES else ()
        if reasoning or any(signatures):
            thought = Thought(model=model, reasoning=reasoning, signatures=signatures)
            if is_counted(first):
                # Reading a long conversation takes a while, and the end of the answer waits.
                loop = asyncio.get_running_loop()
                loop.call_soon(self._keep_counted, exchange, target, thought, first)
            else:
                self._keep_thought(exchange, thought, turn_digest(model, first))

    def _keep_counted(
        self, exchange: Exchange, target: Target, thought: Thought, first: FirstCall
    ) -> None:
        before = end_of(exchange, target)
        if before is not None:  # what cannot be read is not known again
            self._keep_thought(exchange, thought, turn_digest(thought.model, first, before))

    def _keep_thought(self, exchange: Exchange, thought: Thought, digest: str) -> None:
        policy = exchange.runtime.sessions
        self._memory.keep(
            self._thoughts(exchange, exchange.context.session_key, digest),
            record_json(thought),
            most_bytes=policy.most_bytes,
            budget_bytes=policy.budget_bytes / max(1, self._workers()),
        )

    def _hand_over(self, exchange: Exchange, session: Session, model: str, heard: Heard) -> None:
        policy = exchange.runtime.sessions
        conversation = conversation_of(exchange)
        messages: tuple[Said, ...] = ()
        if isinstance(conversation, Conversation):
            first = heard.first_call
            said = heard.words.strip() or (f"[calls {first.name}]" if first is not None else "")
            answer = [Said(Role.ASSISTANT.value, said[:MESSAGE_CHARACTERS])] if said else []
            messages = last_messages(conversation, answer)
        # What takes the place of an earlier record of its session was counted with that.
        is_new = session.prior is None
        self._memory.keep(
            session.record,
            record_json(Handoff(model=model, messages=messages)),
            most_bytes=HANDOFF_BYTES,
            budget_bytes=policy.budget_bytes / max(1, self._workers()) if is_new else math.inf,
        )

    async def _amend_request(self, exchange: Exchange, attempt: Attempt, note: str | None) -> None:
        request, target = exchange.request, attempt.target
        amended = request
        if target.recalls is Recalls.REASONING and exchange.runtime.sessions.reasoning:
            amended = await self._with_thoughts(exchange, target, request)
        if note is not None:
            amended = with_note(amended, note, MARK)
        if amended is not request:
            attempt.amended = Amended(request=amended)

    async def _with_thoughts(
        self, exchange: Exchange, target: Target, request: ChatRequest
    ) -> ChatRequest:
        messages = request.fields["messages"]
        wants_all = wants_every_turn(target)
        if not wants_all and CALLS not in bytes(messages):
            return request
        lacking = thoughtless(messages)
        calls = {one.place: first_of(one.calls) for one in lacking}
        if wants_all and lacking and not lacking[-1].calls:
            calls[lacking[-1].place] = words_of(lacking[-1].text)
        found = await self._find(exchange, target, calls, partial(messages_before, messages))
        thoughts = {place: thought.reasoning for place, thought in found.items()}
        if wants_all:
            thoughts = {one.place: thoughts.get(one.place, "") for one in lacking}
        if not thoughts:
            return request
        fields = {**request.fields, "messages": with_thoughts(messages, thoughts)}
        return msgspec.structs.replace(request, fields=fields)

    async def _amend_conversation(
        self, exchange: Exchange, attempt: Attempt, recalls: Recalls | None, note: str | None
    ) -> None:
        conversation, target = conversation_of(exchange), attempt.target
        if not isinstance(conversation, Conversation):  # the attempt will say so
            return
        amended = conversation
        if recalls is not None:
            calls = {place: first_of([use]) for place, use in openings(conversation.turns, recalls)}
            wants_all = wants_every_turn(target)
            if wants_all:
                calls |= newest_words(conversation.turns)
            before = partial(turns_before, conversation.turns)
            found = await self._find(exchange, target, calls, before)
            turns = list(conversation.turns)
            for place, thought in found.items():
                turns[place] = with_thought(turns[place], thought)
            if wants_all:
                turns = [with_blank(turn) for turn in turns]
            if found or turns != list(conversation.turns):
                amended = msgspec.structs.replace(conversation, turns=tuple(turns))
        if note is not None:
            amended = with_noted_turn(amended, note, MARK)
        if amended is not conversation:
            attempt.amended = Amended(request=exchange.request, conversation=amended)

    async def _find(
        self,
        exchange: Exchange,
        target: Target,
        calls: Mapping[int, FirstCall | None],
        before: Before,
    ) -> dict[int, Thought]:
        """What the very model of a target thought at some places; the newest of them."""
        model = model_of(target.route)
        known = known_by(model, calls, before)
        if not known:
            return {}
        session = exchange.context.session_key
        asked = [(place, self._thoughts(exchange, session, digest)) for place, digest in known]
        started_s = self._clock.monotonic_s()
        records = [record for _, record in asked]
        values = await self._memory.find(records, self._memory.read_s - exchange.memory_s)
        exchange.memory_s += self._clock.monotonic_s() - started_s
        found: dict[int, Thought] = {}
        for (place, record), value in zip(asked, values, strict=True):
            if value is not None:
                try:
                    thought = THOUGHT_READER.read(value)
                except ValueError:
                    self._memory.unread(record)
                    continue
                if thought.model == model:
                    found[place] = thought
        return found

    def _thoughts(self, exchange: Exchange, session: str, digest: str) -> Record:
        return Record(
            name=self._keys.thoughts(exchange.client, session, digest),
            client=exchange.client,
            kind=THOUGHTS,
            ttl_ms=exchange.runtime.sessions.reasoning_ttl_ms,
        )


def wanted(target: Target, request: ChatRequest, policy: SessionPolicy) -> Recalls | None:
    """What a target wants to see again that this client cannot be relied on to send.

    Other surfaces than chat completions have a place for proofs, and their clients send them back.
    """
    recalls = target.recalls if policy.reasoning else None
    if recalls is Recalls.SIGNATURES and request.dialect is not Dialect.OPENAI:
        return None
    return recalls


def known_by(
    model: str, calls: Mapping[int, FirstCall | None], before: Before
) -> list[tuple[int, str]]:
    """What the newest of some turns are known by, by their places; not all of very many."""
    wanted: list[tuple[int, FirstCall]] = []
    left = MOST_ARGUMENTS
    for place, call in list(calls.items())[::-1]:
        left -= 0 if call is None else len(call.arguments)
        if left < 0 or len(wanted) == MOST_TURNS:
            break
        if call is not None:
            wanted.append((place, call))
    counted = [place for place, call in wanted if is_counted(call)]
    said = before(counted) if counted else {}
    return [
        (place, turn_digest(model, call, said.get(place, b"")))
        for place, call in wanted
        if place in said or place not in counted
    ]


def end_of(exchange: Exchange, target: Target) -> bytes | None:
    """What stands for all of a request's conversation, as the next one is told it again.

    None where it cannot be read.
    """
    if exchange.request.dialect is target.dialect:
        messages = exchange.request.fields["messages"]
        end = message_count(messages)
        return messages_before(messages, [end]).get(end)
    conversation = conversation_of(exchange)
    if not isinstance(conversation, Conversation):
        return None
    end = len(conversation.turns)
    return turns_before(conversation.turns, [end])[end]


def wants_every_turn(target: Target) -> bool:
    """Whether a target wants a thought with each turn of its model, be it empty."""
    return target.recalls is Recalls.REASONING and REASONING_BLANK in target.route.quirks
