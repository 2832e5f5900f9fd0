"""What all requests of one configuration version share; replaced as a whole on reload."""

import msgspec

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.cooldown import CooldownPolicy
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.estimate import EstimatePolicy
from cluster_gw.core.limits.guardrails import Guardrails
from cluster_gw.core.limits.key_status import CheckPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.core.limits.probe import ProbePolicy
from cluster_gw.core.outcome.peek import PeekPolicy
from cluster_gw.core.outcome.retry import AttemptPolicy
from cluster_gw.core.routing.axes import FIRST_BYTE_SHARE
from cluster_gw.core.routing.headroom import HeadroomPolicy
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.pipeline.shares import Shares
from cluster_gw.pipeline.targets import Targets
from cluster_gw.units import BYTES_PER_MB
from cluster_gw.upstream.pool import Reuse


class QueuePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long and how many requests may wait for capacity; off by default.

    Attributes:
        max_wait_ms: longest wait for an admission; 0 refuses at once.
        max_depth: waiting requests per worker at most.
    """

    max_wait_ms: int = 0
    max_depth: int = 1000


class RoutingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the failover loop, and what failures lead to.

    Attributes:
        roomiest_key_first: of a route's keys the one goes first that has most left.
        first_byte_share: of speed, 0 to 1.
    """

    peek: PeekPolicy = PeekPolicy()
    attempts: AttemptPolicy = AttemptPolicy()
    queue: QueuePolicy = QueuePolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    cooldown: CooldownPolicy = CooldownPolicy()
    penalty: PenaltyPolicy = PenaltyPolicy()
    bench: BenchPolicy = BenchPolicy()
    guardrails: Guardrails = Guardrails()
    mending: MendingPolicy = MendingPolicy()
    key_checks: CheckPolicy = CheckPolicy()
    degraded: DegradedPolicy = DegradedPolicy()
    probe: ProbePolicy = ProbePolicy()
    estimates: EstimatePolicy = EstimatePolicy()
    headroom: HeadroomPolicy = HeadroomPolicy()
    roomiest_key_first: bool = False
    first_byte_share: float = FIRST_BYTE_SHARE


class RecordPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Of which requests records are kept; see `settings.telemetry.RequestRecordSettings`."""

    per_s: float = 10.0
    notable_per_s: float = 20.0
    kept: int = 4096
    ttl_s: float = 3600.0


class SessionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of conversations; see `settings.sections.SessionSettings`.

    Attributes:
        hands_over: a model is told that another one answered before.
        most_bytes: of one record.
        budget_bytes: of all records of one kind, over all workers.
    """

    reasoning: bool = True
    reasoning_ttl_ms: int = 1_800_000
    hands_over: bool = False
    handoff_ttl_ms: int = 10_800_000
    most_bytes: int = 65_536
    budget_bytes: float = 256.0 * BYTES_PER_MB


class IdempotencyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests may be repeated; see `settings.sections.IdempotencySettings`.

    Attributes:
        most_bytes: of one answer.
        budget_bytes: of all of them, over all workers.
    """

    enabled: bool = True
    ttl_s: float = 86_400.0
    most_bytes: int = 2 * BYTES_PER_MB
    budget_bytes: float = 512.0 * BYTES_PER_MB


class CachePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Which answers are kept for others; see `settings.sections.CacheSettings`.

    Attributes:
        most_entry_bytes: of one answer, as its upstream sent it.
        most_bytes: of all of them, as they lie in Redis.
        is_shared: clients get each other's answers.
    """

    enabled: bool = False
    ttl_s: float = 3600.0
    max_temperature: float = 1.0
    max_entries: int = 5000
    most_entry_bytes: int = 2 * BYTES_PER_MB
    most_bytes: int = 256 * BYTES_PER_MB
    is_shared: bool = False


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration version, ready to serve.

    Attributes:
        secrets: every configured credential, struck out of whatever an upstream writes: a
            provider may quote a key that is not its own.
        reuse: how long connections to upstreams are used.
        shares: the targets as clients with a share of them may use them.
    """

    catalog: Catalog
    targets: Targets
    policy: RoutingPolicy
    secrets: tuple[str, ...] = ()
    fallback_detail: bool = False
    records: RecordPolicy = RecordPolicy()
    sessions: SessionPolicy = SessionPolicy()
    idempotency: IdempotencyPolicy = IdempotencyPolicy()
    cache: CachePolicy = CachePolicy()
    reuse: Reuse = Reuse()
    shares: Shares = msgspec.field(default_factory=Shares)

    def __repr__(self) -> str:
        """Name the version only: a repr may reach a log."""
        return f"Runtime(version={self.catalog.version})"
