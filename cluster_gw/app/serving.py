"""From checked settings to what requests see: catalogue, targets, clients."""

from types import MappingProxyType
from typing import Final

from cluster_gw.core.limits.allowance import MICRO_PER_USD, Allowance
from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.core.limits.guardrails import AUTO_OUTPUT_TOKENS, Guardrails
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.pipeline.runtime import (
    CachePolicy,
    IdempotencyPolicy,
    QueuePolicy,
    RecordPolicy,
    RoutingPolicy,
    Runtime,
    SessionPolicy,
)
from cluster_gw.pipeline.targets import NO_TARGETS, Targets, build_targets
from cluster_gw.providers import provider_for
from cluster_gw.server.auth import EVERYTHING, Client, Clients
from cluster_gw.server.origin import read_network
from cluster_gw.server.serving import Serving
from cluster_gw.server.stranger_guard import StrangerPolicy
from cluster_gw.settings import ClientLimits, ClientSettings, Settings, build_catalog, secrets
from cluster_gw.settings.key_secrets import Unsealed
from cluster_gw.settings.sections import (
    AuthSettings,
    CacheSettings,
    GuardrailSettings,
    SessionSettings,
    UpstreamSettings,
)
from cluster_gw.settings.telemetry import RequestRecordSettings
from cluster_gw.settings.ways import proxy_secrets, ways_of
from cluster_gw.units import BYTES_PER_KB, BYTES_PER_MB, MS_PER_S, ClientId, ComboId, KeyId
from cluster_gw.upstream.pool import Reuse

OUTPUT_BOUNDS: Final = MappingProxyType({"off": None, "auto": AUTO_OUTPUT_TOKENS})


def build_serving(
    settings: Settings,
    version: int,
    before: Targets = NO_TARGETS,
    file_version: int = 1,
    unsealed: Unsealed | None = None,
) -> Serving:
    """Build everything of one configuration version that requests see.

    Args:
        settings: checked.
        version: of the overlay over the file, from 1.
        before: targets of the version before; what has not changed is taken from there.
        file_version: of the file since its group started, from 1.
        unsealed: tells which secrets of keys were set at run time; None where that is no matter.
    """
    routes = build_catalog(settings, version)
    credentials = secrets(settings)

    def reveal(key: KeyId) -> str | None:
        secret = credentials.get(key)
        return secret.reveal() if secret else None

    routing = settings.routing
    return Serving(
        runtime=Runtime(
            catalog=routes,
            targets=build_targets(routes, reveal, provider_for, before, ways_of(settings)),
            policy=RoutingPolicy(
                peek=routing.peek,
                attempts=routing.attempts,
                breaker=routing.breaker,
                estimates=routing.estimates,
                headroom=routing.headroom,
                first_byte_share=routing.first_byte_share,
                roomiest_key_first=routing.key_selection == "least-remaining",
                cooldown=routing.cooldown,
                penalty=routing.penalty,
                bench=routing.bench,
                key_checks=routing.key_checks,
                degraded=routing.degraded,
                guardrails=_guardrails(routing.guardrails),
                mending=routing.mending,
                probe=routing.probe,
                queue=QueuePolicy(
                    max_wait_ms=routing.queue.max_wait_ms, max_depth=routing.queue.max_depth
                ),
            ),
            secrets=(
                *(secret.reveal() for secret in credentials.values() if secret),
                *proxy_secrets(settings),
            ),
            reuse=_reuse(settings.upstream),
            fallback_detail=settings.telemetry.fallback_detail,
            records=_records(settings.telemetry.request_records),
            sessions=_sessions(settings.sessions),
            idempotency=_idempotency(settings.cache),
            cache=_cache(settings.cache),
        ),
        clients=Clients(
            [_client(c, routes) for c in settings.clients],
            is_open=settings.auth.mode == "none",
        ),
        max_body_bytes=settings.server.max_body_mb * BYTES_PER_MB,
        strangers=_stranger_policy(settings.auth),
        file_version=file_version,
        master_keys=() if unsealed is None else unsealed.vault.names,
        unread_secrets=() if unsealed is None else tuple(unsealed.unread),
    )


def _reuse(settings: UpstreamSettings) -> Reuse:
    return Reuse(
        keepalive_s=settings.keepalive_s,
        max_requests=settings.max_requests,
        max_age_s=settings.max_age_s,
    )


def _records(settings: RequestRecordSettings) -> RecordPolicy:
    return RecordPolicy(
        per_s=settings.per_s,
        notable_per_s=settings.notable_per_s,
        kept=settings.kept,
        ttl_s=settings.ttl_s,
    )


def _sessions(settings: SessionSettings) -> SessionPolicy:
    return SessionPolicy(
        reasoning=settings.reasoning,
        reasoning_ttl_ms=round(settings.reasoning_ttl_s * MS_PER_S),
        hands_over=settings.context_handoff == "on_model_switch",
        handoff_ttl_ms=round(settings.handoff_ttl_s * MS_PER_S),
        most_bytes=settings.max_record_kb * BYTES_PER_KB,
        budget_bytes=settings.max_mb * BYTES_PER_MB,
    )


def _idempotency(settings: CacheSettings) -> IdempotencyPolicy:
    return IdempotencyPolicy(
        enabled=settings.idempotency.enabled,
        ttl_s=settings.idempotency.ttl_s,
        most_bytes=round(settings.max_entry_mb * BYTES_PER_MB),
        budget_bytes=settings.idempotency.max_mb * BYTES_PER_MB,
    )


def _cache(settings: CacheSettings) -> CachePolicy:
    return CachePolicy(
        enabled=settings.enabled,
        ttl_s=settings.ttl_s,
        max_temperature=settings.max_temperature,
        max_entries=settings.max_entries,
        most_entry_bytes=round(settings.max_entry_mb * BYTES_PER_MB),
        most_bytes=round(settings.max_mb * BYTES_PER_MB),
        is_shared=settings.scope == "shared",
    )


def _guardrails(settings: GuardrailSettings) -> Guardrails:
    most = settings.unified_max_tokens
    return Guardrails(
        budget_tokens=settings.request_max_tokens_budget,
        most_output_tokens=most if isinstance(most, int) else OUTPUT_BOUNDS[most],
        checks_tool_arguments=settings.validate_tool_arguments,
    )


def _stranger_policy(auth: AuthSettings) -> StrangerPolicy:
    proxies = [read_network(text) for text in auth.trusted_proxies]
    return StrangerPolicy(
        rpm=auth.strangers_rpm,
        ipv6_prefix=auth.ipv6_prefix,
        trusted_proxies=tuple([proxy for proxy in proxies if proxy is not None]),
    )


def _client(client: ClientSettings, routes: Catalog) -> Client:
    """A client may ask for its combos and for every route that is a member of one of them."""
    scope = None
    if EVERYTHING not in client.combos:
        scope = frozenset[str](name for named in client.combos for name in _scope(named, routes))
    return Client(
        id=ClientId(client.id),
        key_digest=bytes.fromhex(client.key_sha256),
        previous=tuple(
            [(bytes.fromhex(one.key_sha256), one.until_ms) for one in client.previous_keys]
        ),
        is_enabled=client.enabled,
        scope=scope,
        detail=client.detail,
        allowance=_allowance(client.limits),
        share=_share(client),
    )


def _scope(named: str, routes: Catalog) -> set[str]:
    """What a name of a combo, alias, group or family allows: itself and its members."""
    combo = routes.combos.get(ComboId(named))
    if combo is not None:
        return {named, *(member.route for member in combo.members)}
    resolved = routes.resolve(named) or routes.families.get(named)
    if resolved is None:
        return set()
    return {resolved.combo, *(route.id for route in (*resolved.routes, *resolved.disabled))}


def _share(client: ClientSettings) -> ClientShare | None:
    """The part of a key's limits a client may take, None for all of them."""
    ratio = client.limits.key_share
    if ratio is None or ratio == 1:
        return None
    return ClientShare(client=ClientId(client.id), ratio=ratio)


def _allowance(limits: ClientLimits) -> Allowance | None:
    """The limits of a client, None without any: such a client holds nothing."""
    usd = limits.monthly_usd
    allowance = Allowance(
        rpm=limits.rpm,
        tpm=limits.tpm,
        concurrency=limits.concurrency,
        monthly_tokens=limits.monthly_tokens,
        monthly_micro_usd=None if usd is None else round(usd * MICRO_PER_USD),
    )
    return None if allowance.is_unlimited() else allowance
