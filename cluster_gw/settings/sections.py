"""The sections of the configuration that describe the gateway itself.

Ranges stand in the annotations and are read by the checker; `bounds.py` holds those of the value
types that belong to lower floors.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.cooldown import CooldownPolicy
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.estimate import EstimatePolicy
from cluster_gw.core.limits.key_status import CheckPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.core.limits.probe import ProbePolicy
from cluster_gw.core.outcome.peek import PeekPolicy
from cluster_gw.core.outcome.retry import AttemptPolicy
from cluster_gw.core.routing.axes import FIRST_BYTE_SHARE
from cluster_gw.core.routing.headroom import HeadroomPolicy
from cluster_gw.core.routing.presets import PeakHours
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.settings.secret import Secret

Port = Annotated[int, Meta(ge=1, le=65_535)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
PositiveCount = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=31_536_000.0)]
PositiveSeconds = Annotated[float, Meta(gt=0.0, le=31_536_000.0)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Score = Annotated[float, Meta(ge=0.0, le=1e9)]
MAX_ENTRIES: Final = 4096  # of a list that a call of the admin API may replace


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the configuration; unknown fields are refused."""


class ServerSettings(Section, frozen=True, kw_only=True):
    """Listening addresses and bounds of the data plane and the operations plane.

    Attributes:
        host: address of the data plane; beyond loopback it needs `auth.mode: keys`.
        port: port of the data plane.
        admin_host: address of the operations plane.
        admin_port: port of the operations plane; must differ from `port` on the same address.
        workers: worker processes; they share the port.
        max_body_mb: largest request body, in MB of 1024 KB; larger ones get 413.
        max_head_kb: largest request head, in KB; larger ones get 431.
        drain_s: how long open answers may run on when the group ends.
        ui_hosts: names under which browsers are shown the dashboard `/ui`, beside IP addresses and
            `localhost`; without scheme and port.
    """

    host: Name = "127.0.0.1"
    port: Port = 8080
    admin_host: Name = "127.0.0.1"
    admin_port: Port = 8081
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    max_body_mb: Annotated[int, Meta(ge=1, le=1024)] = 25
    max_head_kb: Annotated[int, Meta(ge=1, le=1024)] = 32
    drain_s: Annotated[float, Meta(ge=0.0, le=3600.0)] = 120.0
    ui_hosts: tuple[Name, ...] = ()


class RedisSettings(Section, frozen=True, kw_only=True):
    """Where the shared state lives.

    Attributes:
        url: `embedded:`, `redis://`, `rediss://`, `unix://`, `redis+sentinel://` or
            `redis+cluster://`; see docs/redis.md. It may hold a password.
        data_dir: folder of the embedded server; unset means `./cluster-gw-data`.
        cache_url: another Redis for what may be lost, such as records of requests; it may evict.
        prefix: start of every key name.
        when_lost: what a worker lets in while it cannot reach Redis: `share`, its part of what was
            left; `closed`, nothing; `open`, its part of whole limits, whatever was used.
    """

    url: Secret = Secret("embedded:")
    data_dir: Name | None = None
    cache_url: Secret | None = None
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,32}$")] = "gw1"
    when_lost: Literal["share", "closed", "open"] = "share"


class UnifyMerge(Section, frozen=True, kw_only=True):
    """Models that count as one group although their names differ.

    Attributes:
        into: name of the group.
        keys: names that count as this group.
    """

    into: Name
    keys: tuple[Name, ...]


class UnifySplit(Section, frozen=True, kw_only=True):
    """A model that leaves the group its name would put it in.

    Attributes:
        member: route that leaves its group.
        group_key: group it gets instead; unset means one of its own.
    """

    member: Name
    group_key: Name | None = None


class UnifySettings(Section, frozen=True, kw_only=True):
    """Which routes are the same model under several names.

    Attributes:
        enabled: whether the same model under several providers counts as one.
        merges: groups that are joined.
        splits: routes that are taken out of their group.
    """

    enabled: bool = True
    merges: tuple[UnifyMerge, ...] = ()
    splits: tuple[UnifySplit, ...] = ()


class PriorCounts(Section, frozen=True, kw_only=True):
    """Successes and failures somebody else saw.

    Attributes:
        successes: calls that went well.
        failures: calls that failed.
    """

    successes: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0
    failures: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0


class QueueSettings(Section, frozen=True, kw_only=True):
    """How long a request may wait for capacity; 0 means it never waits.

    Attributes:
        max_wait_ms: longest wait; a client's own `X-Gw-Max-Wait` wins.
        max_depth: requests that may wait at the same time in one worker.
    """

    max_wait_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    max_depth: PositiveCount = 1000


class GuardrailSettings(Section, frozen=True, kw_only=True):
    """Bounds of what one request may cost, over all combos.

    Attributes:
        request_max_tokens_budget: tokens of input (by estimate) and output together; above it a
            request gets 413, and one that names no `max_tokens` gets what is left, at most 4096.
            0 sets no bound.
        unified_max_tokens: a client's `max_tokens` above it is lowered to it; `auto` is 32768.
        validate_tool_arguments: whether an answer whose tool calls break the client's schemas is
            tried elsewhere, as long as nothing of it was sent.
    """

    request_max_tokens_budget: Count = 0
    unified_max_tokens: Literal["off", "auto"] | PositiveCount = "off"
    validate_tool_arguments: bool = False


class ClaudeNames(Section, frozen=True, kw_only=True):
    """What stands for a model of the Claude family that nothing here has the name of.

    Attributes:
        opus: for names with this word in them; a combo, an alias or a route, null for `default`.
        sonnet: likewise.
        haiku: likewise.
        default: for all other names of the family; null leaves them unknown.
    """

    opus: Name | None = None
    sonnet: Name | None = None
    haiku: Name | None = None
    default: Name | None = None


class RoutingSettings(Section, frozen=True, kw_only=True):
    """Everything that tunes the choice of a target and the loop over targets.

    Attributes:
        key_selection: which key of a route goes first: `auto` draws by what was learned of them
            once two were used, and takes them in turn before; `least-remaining` takes the one with
            most of its limits left (of keys of one account none has), else as `auto`.
        headroom: how scarce quota lowers a score.
        first_byte_share: how much of the speed of a route is its time to the first byte; the rest
            is its output speed, which counts whole answers. 0 where clients wait for these.
        explore_unmeasured: share of requests that try a route without statistics.
        affinity_hash: how prefix affinity maps prompts to routes.
        task_weight_share: how much the kind of task moves the weights.
        peak_hours: hours in which speed counts less.
        community_prior: statistics others collected, by route.
        attempts: bounds of the loop over candidates.
        queue: waiting for capacity.
        peek: what is looked at before an answer is committed.
        estimates: how estimates of tokens follow what was used.
        breaker: when a target is cut off.
        cooldown: rests after failures.
        penalty: points that lower a model's place.
        bench: when a model rests on all its keys.
        guardrails: bounds of what one request may cost.
        mending: what is put right in answers of models that say things in the wrong place.
        key_checks: checks of all keys, which need no quota.
        degraded: when too few providers are usable.
        probe: checks of keys that rest.
        claude_names: what serves clients that ask for a Claude model by its vendor's name.
    """

    key_selection: Literal["auto", "least-remaining"] = "auto"
    headroom: HeadroomPolicy = HeadroomPolicy()
    first_byte_share: Ratio = FIRST_BYTE_SHARE
    explore_unmeasured: Ratio = 0.0
    affinity_hash: Literal["rendezvous", "fnv-modulo"] = "rendezvous"
    task_weight_share: Ratio = 0.3
    peak_hours: PeakHours = PeakHours()
    community_prior: dict[Name, PriorCounts] | None = None
    attempts: AttemptPolicy = AttemptPolicy()
    queue: QueueSettings = QueueSettings()
    peek: PeekPolicy = PeekPolicy()
    estimates: EstimatePolicy = EstimatePolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    cooldown: CooldownPolicy = CooldownPolicy()
    penalty: PenaltyPolicy = PenaltyPolicy()
    bench: BenchPolicy = BenchPolicy()
    guardrails: GuardrailSettings = GuardrailSettings()
    mending: MendingPolicy = MendingPolicy()
    key_checks: CheckPolicy = CheckPolicy()
    degraded: DegradedPolicy = DegradedPolicy()
    probe: ProbePolicy = ProbePolicy()
    claude_names: ClaudeNames = ClaudeNames()


class UpstreamSettings(Section, frozen=True, kw_only=True):
    """How providers are reached; see docs/upstreams.md.

    Attributes:
        proxy: of all calls and checks, `http://user:password@host:port`, or with `https`, `socks5`
            (names are resolved here) or `socks5h` (there); unset means none. Variables such as
            `HTTPS_PROXY` are not looked at.
        no_proxy: what is reached without it: hosts, domains with all below them (`.example.com`),
            addresses, networks (`10.0.0.0/8`), each but a network also with a port; `*` is all.
        private_addresses: whether a provider may be on a loopback or private address; where cloud
            metadata is, and on link-local addresses, none ever may.
        keepalive_s: how long a connection waits for its next call.
        max_requests: calls a connection carries before another is opened.
        max_age_s: how old a connection gets before another is opened; each is given up to a tenth
            less, by chance, and what is under way on it is not cut.
    """

    proxy: Secret | None = None
    no_proxy: tuple[Name, ...] = ("localhost", "127.0.0.0/8", "::1")
    private_addresses: Literal["allow", "refuse"] = "allow"
    keepalive_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 30.0
    max_requests: PositiveCount = 1000
    max_age_s: PositiveSeconds = 600.0


class IdempotencySettings(Section, frozen=True, kw_only=True):
    """Requests with an `Idempotency-Key`; the cache need not be enabled for them.

    Attributes:
        enabled: whether they may be repeated without another call; else the header says nothing.
        ttl_s: how long an answer is kept for that.
        max_mb: of all that are kept, by estimate; above it nothing new is, and a repetition makes a
            call of its own.
    """

    enabled: bool = True
    ttl_s: Annotated[float, Meta(ge=60.0, le=604_800.0)] = 86_400.0
    max_mb: Annotated[float, Meta(gt=0.0, le=1_048_576.0)] = 512.0


class CacheSettings(Section, frozen=True, kw_only=True):
    """The response cache; off unless asked for.

    Attributes:
        enabled: whether answers are stored; a request's own `X-Gw-Cache` wins.
        ttl_s: how long an answer is valid, more or less a tenth.
        max_temperature: requests above it are not cached.
        max_entries: answers stored at most; of those that are too many the one goes that was asked
            for longest ago.
        max_entry_mb: largest answer stored.
        max_mb: of all answers stored, as they lie in Redis.
        scope: whether clients share answers.
        idempotency: requests that clients may repeat; their answers have the bound of one, too.
    """

    enabled: bool = False
    ttl_s: Annotated[float, Meta(ge=1.0, le=2_592_000.0)] = 3600.0
    max_temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    max_entries: Annotated[int, Meta(ge=1, le=10_000_000)] = 5000
    max_entry_mb: Annotated[float, Meta(gt=0.0, le=64.0)] = 2.0
    max_mb: Annotated[float, Meta(gt=0.0, le=1_048_576.0)] = 256.0
    scope: Literal["client", "shared"] = "client"
    idempotency: IdempotencySettings = IdempotencySettings()


class AuthSettings(Section, frozen=True, kw_only=True):
    """Whether clients need a key; `none` is refused on a host others can reach.

    Attributes:
        mode: `keys` asks every client for one; `none` is for loopback only.
        strangers_rpm: requests a minute without a valid key that one address may send before it
            gets 429; 0 sets no bound. Requests with a valid key are never counted or refused.
        ipv6_prefix: bits of an IPv6 address that are counted as one address.
        trusted_proxies: addresses or networks such as `10.0.0.0/8` of proxies whose
            `X-Forwarded-For` is believed.
    """

    mode: Literal["keys", "none"] = "keys"
    strangers_rpm: Count = 120
    ipv6_prefix: Annotated[int, Meta(ge=16, le=128)] = 64
    trusted_proxies: tuple[Name, ...] = ()


class SessionSettings(Section, frozen=True, kw_only=True):
    """What is kept of conversations for their next requests, in the Redis of `redis.cache_url`.

    Encrypted (AES-256-GCM) where the environment has a `GW_MASTER_KEY`: 32 bytes, as 64 hexadecimal
    digits or in base64.

    Attributes:
        reasoning: whether it is kept what a model thought beside its calls of tools, and how its
            vendor signed them, for clients that do not send it back.
        reasoning_ttl_s: how long after it was last needed.
        context_handoff: `on_model_switch` tells a model that another one answered before, with the
            last messages cut short; only where the client leaves the choice to a combo.
        handoff_ttl_s: how long after a session's last answer that is known.
        max_record_kb: a longer thought is not kept.
        max_mb: of all that is kept of one kind, by estimate; above it nothing new is.
    """

    reasoning: bool = True
    reasoning_ttl_s: Annotated[float, Meta(ge=1.0, le=604_800.0)] = 1800.0
    context_handoff: Literal["off", "on_model_switch"] = "off"
    handoff_ttl_s: Annotated[float, Meta(ge=1.0, le=604_800.0)] = 10_800.0
    max_record_kb: Annotated[int, Meta(ge=1, le=4096)] = 64
    max_mb: Annotated[float, Meta(gt=0.0, le=1_048_576.0)] = 256.0
