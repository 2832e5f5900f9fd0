"""What travels with one request: who asks, what for, how long, and what happened so far."""

import msgspec

from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.cache_rules import Wish
from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.outcome.charge import TokenSource
from cluster_gw.core.outcome.trace import AttemptRecord, KeyOrdinals, Skipped
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.backlog import IN_TURN, KeyOrder, KeyTurns
from cluster_gw.pipeline.cached import CACHE_OFF, Cached
from cluster_gw.pipeline.memory import NOTHING_LEFT, Recalled
from cluster_gw.pipeline.pair import Pair
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.session_records import Handoff, model_of
from cluster_gw.pipeline.tap import Tap
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.trace import Trace
from cluster_gw.store.admission import Refusal, TargetLimits
from cluster_gw.store.clients import Claim, Standing, Used
from cluster_gw.store.session_memory import Record
from cluster_gw.surfaces.base import Surface
from cluster_gw.units import ClientId


class Hints(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the client asked for in headers.

    Attributes:
        label: the client's own `x-request-id`, echoed; our id when absent or unusable.
        timeout_s: the client's deadline from the head of the request, None when unset.
        max_wait_ms: longest wait for capacity, None for the configured one.
        detail: the client may and wants to see how its request was routed.
        task: the kind of work; `auto` when unset.
        vendor: headers `anthropic-beta` and `anthropic-version`, for upstreams of that vendor's
            dialect; empty for most requests.
        adds_headers: its calls may carry more headers than their targets' own.
        repeat_key: `Idempotency-Key`, None when unset.
        cache: what the client says of the response cache.
    """

    label: str
    timeout_s: float | None = None
    max_wait_ms: int | None = None
    detail: bool = False
    run_label: str | None = None
    session_label: str | None = None
    task: Task = Task.AUTO
    vendor: tuple[tuple[str, str], ...] = ()
    adds_headers: bool = False
    repeat_key: bytes | None = None
    cache: Wish = Wish.UNSAID


class Spent(msgspec.Struct, gc=False):
    """Where the time before the answer went, seconds."""

    redis_s: float = 0.0
    upstream_s: float = 0.0
    waiting_s: float = 0.0
    first_byte_s: float | None = None


class Hold(msgspec.Struct, kw_only=True, gc=False):
    """What a request claims of its client's allowance, from asking to settlement.

    Attributes:
        is_sent: it may be held: Redis was asked at least once.
        is_granted: it is held.
    """

    claim: Claim
    is_sent: bool = False
    is_granted: bool = False


class Session(msgspec.Struct, kw_only=True, gc=False):
    """A session of which models are told who answered before.

    Attributes:
        record: where that is kept.
        prior: who it was; None when nobody knows, or nobody has yet.
        waited_s: for that.
    """

    record: Record
    prior: Handoff | None = None
    waited_s: float = 0.0

    def concerns(self, target: Target) -> bool:
        """Whether a target is another model than the one that answered before."""
        return self.prior is not None and self.prior.model != model_of(target.route)


class Exchange(msgspec.Struct, kw_only=True):
    """One request from head to last byte; the only mutable thing the loop passes on.

    Attributes:
        id: UUIDv7, 32 hex characters; the root of its lease ids.
        started_s: loop time of the request head.
        deadline_s: loop time after which the client no longer waits; infinite when it set none.
        turns: of this worker, among the keys of each route.
        inputs: what the ranking was made by.
        keys: in which order the keys of its routes are tried.
        refused: targets that were asked for and not granted, since they last might have been.
        recalled: what earlier requests left for it.
        asks: admissions asked for so far; each gets a lease id of its own.
        reserved: the estimate of the last of them.
        pair: what is known of this client on the route of the last of them, if it is to be learned.
        records: failed attempts, and the successful one once it has ended.
        skipped: targets and routes that were not called, and why.
        allowance: bounds of the client, None when it has none.
        share: the part of a key's limits it may take, None for all of them.
        hold: its claim while that is not settled.
        standing: what the client had left when this request was held or refused.
        used: what the attempts were charged, for the hold.
        is_degraded: Redis was away, and this worker decided by itself.
        conversation: the request read for another dialect, once one was needed.
        warnings: what the last upstream that was called could not be told as it was asked.
        client_gone: set by the disconnect watcher just before it cancels the task.
        is_repeated: another request with its idempotency key made the call.
        tap: copies its answer for whoever asks the same again; None for most.
        session: None for most: only where models are told who answered before.
        memory_s: how long it waited for what is kept of its conversation.
        cached: its place in the response cache; None for most.
        cache_header: what became of that.
        trace: where it stands in one; None where traces are off.
    """

    id: str
    client: ClientId
    request: ChatRequest
    surface: Surface
    hints: Hints
    runtime: Runtime
    context: RouteContext
    ranking: Ranking
    started_s: float
    deadline_s: float
    turns: KeyTurns = msgspec.field(default_factory=KeyTurns)
    inputs: StrategyInputs = StrategyInputs()
    keys: KeyOrder = IN_TURN
    refused: list[tuple[Target, Refusal]] = []
    recalled: Recalled = NOTHING_LEFT
    records: list[AttemptRecord] = []
    skipped: list[Skipped] = []
    key_ordinals: KeyOrdinals = msgspec.field(default_factory=KeyOrdinals)
    spent: Spent = msgspec.field(default_factory=Spent)
    asks: int = 0
    reserved: Demand | None = None
    pair: Pair | None = None
    allowance: Allowance | None = None
    share: ClientShare | None = None
    hold: Hold | None = None
    standing: Standing | None = None
    used: Used = msgspec.field(default_factory=Used)
    served_by: Target | None = None
    tokens: int = 0
    tokens_source: TokenSource = TokenSource.NONE
    is_degraded: bool = False
    client_gone: bool = False
    conversation: Conversation | None = None
    warnings: tuple[str, ...] = ()
    session: Session | None = None
    tap: Tap | None = None
    is_repeated: bool = False
    memory_s: float = 0.0
    cached: Cached | None = None
    cache_header: tuple[bytes, bytes] = CACHE_OFF
    trace: Trace | None = None

    @property
    def demand(self) -> Demand:
        """The estimate under which the present attempt was admitted."""
        return self.reserved or self.context.demand

    def limits_of(self, target: Target) -> TargetLimits:
        """What its client is held to at a target."""
        share = self.share
        return target.limits if share is None else self.runtime.shares.of(target, share).limits

    def most_tokens_of(self, target: Target) -> int | None:
        """How far learning may raise its estimate at a target."""
        if self.share is None:
            return target.most_tokens
        return self.runtime.shares.of(target, self.share).most_tokens

    def key_ordinal(self, target: Target) -> int:
        """Number of a key in this request, from 1, by first use."""
        return self.key_ordinals.of(target.route.provider, target.key.id)
