"""Every metric, declared once. Names: `gw_<noun>_<unit>[_total]`; labels from a closed list.

Label values come from the configuration (combos, providers, models, hashed ids) or from closed
enumerations, never from a request.
"""

from typing import Final

from cluster_gw.telemetry.metric import Merge, Metric, MetricKind

LATENCY_BUCKETS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300
)  # fmt: skip
EVENT_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
OVERHEAD_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind=MetricKind.COUNTER, help=text, labels=labels)


def _gauge(name: str, text: str, *labels: str, merge: Merge = Merge.SUM) -> Metric:
    return Metric(name=name, kind=MetricKind.GAUGE, help=text, labels=labels, merge=merge)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name=name, kind=MetricKind.HISTOGRAM, help=text, labels=labels, buckets=buckets)


REQUESTS: Final = _counter(
    "gw_requests_total", "Finished requests by combo and status.", "combo", "status"
)
REQUEST_SECONDS: Final = _histogram(
    "gw_request_seconds", "From the request head to the last byte.", LATENCY_BUCKETS_S, "mode"
)
FIRST_BYTE_SECONDS: Final = _histogram(
    "gw_first_byte_seconds", "From the request head to commit.", LATENCY_BUCKETS_S, "mode"
)
OVERHEAD_SECONDS: Final = _histogram(
    "gw_overhead_seconds",
    "Time before the answer that was spent in the gateway and not upstream.",
    OVERHEAD_BUCKETS_S,
)
ATTEMPTS: Final = _counter(
    "gw_attempts_total", "Upstream calls by provider and outcome.", "provider", "outcome"
)
FALLBACKS: Final = _counter(
    "gw_fallbacks_total", "Requests served after at least one failed attempt.", "combo"
)
REFUSALS: Final = _counter(
    "gw_refusals_total", "Admissions refused by provider and gate.", "provider", "gate"
)
CLIENT_REFUSALS: Final = _counter(
    "gw_client_refusals_total", "Requests refused by a limit of their client, by limit.", "gate"
)
SHARE_REFUSALS: Final = _counter(
    "gw_client_share_refusals_total",
    "Admissions refused because the client had its share of a key, by limit; others may serve it.",
    "gate",
)
EXHAUSTED: Final = _counter(
    "gw_exhausted_total", "Requests that ended with an error of the pool, by code.", "code"
)
CRASHES: Final = _counter("gw_requests_crashed_total", "Requests that a bug of ours ended.")
CLIENT_FAULTS: Final = _counter(
    "gw_client_faults_total", "Requests refused for what the client sent, by code.", "code"
)
CLIENT_GONE: Final = _counter(
    "gw_client_gone_total", "Requests whose client left first, by phase.", "phase"
)
TOKENS: Final = _counter(
    "gw_tokens_total", "Tokens settled, by provider and source of the count.", "provider", "source"
)
SETTLE_DRIFT_TOKENS: Final = _counter(
    "gw_settle_drift_tokens_total",
    "Absolute difference between estimate and fact over all settlements.",
    "provider",
)
RANKING_MOVES: Final = _counter(
    "gw_ranking_moves_total",
    "Requests whose ranking was changed for them: pin_held (stayed on the route of their run or "
    "session), pin_yielded (could not), explored.",
    "kind",
)
IN_FLIGHT: Final = _gauge("gw_in_flight_count", "Requests being served now.")
SETTLEMENTS_PENDING: Final = _gauge(
    "gw_settlements_pending_count", "Settlements not yet written to Redis."
)
SETTLEMENTS_LOST: Final = _counter(
    "gw_settlements_lost_total", "Settlements given up; their leases expire by themselves."
)
SETTLEMENTS_LATE: Final = _counter(
    "gw_settlements_late_total", "Settlements whose lease had expired or was lost with its server."
)
ESTIMATE_PAIRS: Final = _gauge(
    "gw_estimate_pairs_count", "Clients on routes whose estimates of tokens follow what was used."
)
ESTIMATE_LESSONS_LOST: Final = _counter(
    "gw_estimate_lessons_lost_total", "What was learned about estimates while Redis was away."
)
BONDS_UNREAD: Final = _counter(
    "gw_bonds_unread_total", "Pins and last known good routes that Redis did not tell in time."
)
BONDS_UNWRITTEN: Final = _counter(
    "gw_bonds_unwritten_total", "The same that may not have been written."
)
REQUEST_RECORDS: Final = _counter(
    "gw_request_records_total",
    "Requests by what became of their record: kept, left_out, left_out_notable, lost.",
    "result",
)
SESSION_MEMORY: Final = _counter(
    "gw_session_memory_total",
    "What is kept of conversations, by kind (reasoning, handoff) and result: of a look found, "
    "missing, unreadable; of a write kept, too_large, over_budget; lost when Redis is in trouble.",
    "kind",
    "result",
)
IDEMPOTENCY: Final = _counter(
    "gw_idempotency_total",
    "Requests with an Idempotency-Key, by result: taken (a call of its own), replayed, followed "
    "(sent another's stream as it came), conflict, lost when Redis is in trouble. Calls: kept; "
    "or not, since failed, cut, too_large, over_budget, late (another has the key), unkept "
    "(Redis), ended.",
    "result",
)
REDIS_CALLS: Final = _counter("gw_redis_calls_total", "Calls sent to Redis.")
REDIS_FLUSHES: Final = _counter("gw_redis_flushes_total", "Writes to Redis; calls share a write.")
REDIS_LOST: Final = _counter("gw_redis_lost_total", "Calls whose outcome is unknown.")
REDIS_RECONNECTS: Final = _counter("gw_redis_reconnects_total", "Connections made after a loss.")
REDIS_UP: Final = _gauge("gw_redis_up_count", "Workers whose Redis connection is up.")
REDIS_WAIT_SECONDS: Final = _histogram(
    "gw_redis_wait_seconds",
    "What a request waited for Redis before its answer, all calls together.",
    EVENT_BUCKETS_S,
)
REDIS_SCRIPT_CALLS: Final = _counter(
    "gw_redis_script_calls_total",
    "Calls of scripts that a worker waited for one by one, by script; admissions and settlements "
    "are only among them where they could not travel with others.",
    "script",
)
REDIS_SCRIPT_SECONDS: Final = _counter(
    "gw_redis_script_seconds_total", "How long these took, there and back.", "script"
)
CLOCK_OFFSET: Final = _gauge(
    "gw_clock_offset_seconds",
    "How far the clock of a worker is from that of Redis, either way; of several the most.",
    merge=Merge.MAX,
)
CACHE_REQUESTS: Final = _counter(
    "gw_cache_requests_total",
    "Requests by what the response cache was to them: hit, miss, coalesced (got the answer that "
    "another one fetched), refresh (fetched anew before its end), unavailable; or why they had no "
    "place in it: bypass, temperature, state, no_key. Counted where the cache is on.",
    "result",
)
CACHE_STORE: Final = _counter(
    "gw_cache_store_total",
    "Looks into the response cache and ends of leads, by one word for what came of them.",
    "result",
)
CACHE_REDIS_UP: Final = _gauge(
    "gw_cache_redis_up_count", "Workers whose connection to redis.cache_url is up."
)
ALONE: Final = _gauge(
    "gw_alone_workers_count", "Workers that decide without Redis now, by redis.when_lost.", "mode"
)
ALONE_GRANTS: Final = _counter(
    "gw_alone_grants_total", "Requests and holds of clients let in without Redis."
)
ALONE_REFUSALS: Final = _counter(
    "gw_alone_refusals_total", "Requests and holds of clients refused without Redis."
)
JOURNAL: Final = _gauge(
    "gw_journal_entries_count", "Requests let in without Redis that it does not know yet."
)
JOURNAL_REPLAYED: Final = _counter(
    "gw_journal_replayed_total", "Settlements of such requests that were sent when Redis was back."
)
RECORDS_UNREADABLE: Final = _counter(
    "gw_records_unreadable_total", "Times a record in Redis was met that cannot be read."
)
CONFIG_RELOADS: Final = _counter(
    "gw_config_reloads_total", "Configuration reloads by result.", "result"
)
CONFIG_VERSION: Final = _gauge(
    "gw_config_version_count",
    "Version of what was changed of the configuration; the same in all groups.",
    merge=Merge.MAX,
)
CONFIG_FILE_VERSION: Final = _gauge(
    "gw_config_file_version_count",
    "Version of the configuration file in force since its group started.",
    merge=Merge.MAX,
)
CONFIG_PATCHES_DROPPED: Final = _gauge(
    "gw_config_patches_dropped_count",
    "Changes made through the admin API that do not fit the file of a worker; the most of any.",
    merge=Merge.MAX,
)
SECRETS_UNREAD: Final = _gauge(
    "gw_secrets_unread_count", "Secrets of keys, set at run time, not readable.", merge=Merge.MAX
)
KEYS_BARRED: Final = _gauge(
    "gw_keys_barred_count", "Provider keys that checks found to be rejected.", merge=Merge.MAX
)
MODELS_RETIRED: Final = _gauge(
    "gw_models_retired_count", "Models that their providers have no more.", merge=Merge.MAX
)
MODELS_TOOLLESS: Final = _gauge(
    "gw_models_toolless_count", "Models that have refused tools in the last hour.", merge=Merge.MAX
)
POOL_DEGRADED: Final = _gauge(
    "gw_pool_degraded_count", "1 while too few providers have a usable key.", merge=Merge.MAX
)
ALIVE_WORKERS: Final = _gauge(
    "gw_alive_workers_count", "Workers of all groups that were alive lately.", merge=Merge.MAX
)
LEASES_REAPED: Final = _counter(
    "gw_leases_reaped_total", "Leases of dead workers whose concurrency slots were given back."
)
LEASES: Final = _gauge(
    "gw_leases_count",
    "Leases of all workers that hold a slot, by provider, as the snapshot says.",
    "provider",
    merge=Merge.MAX,
)
KEY_ROUTES: Final = _gauge(
    "gw_key_routes_count",
    "Routes of a key (label: 12 hex digits of SHA-256 of its id) by state: ok, half_open (has to "
    "prove itself), or the gate that is closed.",
    *("provider", "key", "state"),
    merge=Merge.MAX,
)
KEY_USE: Final = _gauge(
    "gw_key_use_ratio",
    "Share of a limit that is used on a key: of several windows (models, key, account) the "
    "fullest, by limit. As the snapshot says.",
    *("provider", "key", "limit"),
    merge=Merge.MAX,
)
WINDOWS_OVER: Final = _gauge(
    "gw_windows_over_limit_count",
    "Windows that count more requests than their limit: over-admission, or a limit that was "
    "lowered lately, or use that was told later.",
    "limit",
    merge=Merge.MAX,
)
ROUTE_SUCCESS: Final = _gauge(
    "gw_route_success_ratio",
    "Mean of what is believed of a route's reliability, over all its keys.",
    "provider",
    "model",
    merge=Merge.MAX,
)
ROUTE_SAMPLES: Final = _gauge(
    "gw_route_samples_count",
    "Attempts this rests on, by weight: one counts half after two days.",
    "provider",
    "model",
    merge=Merge.MAX,
)
ROUTE_PENALTY: Final = _gauge(
    "gw_route_penalty_count",
    "Penalty points of a route's model.",
    "provider",
    "model",
    merge=Merge.MAX,
)
ROUTE_TOKEN_SECONDS: Final = _gauge(
    "gw_route_token_seconds",
    "Mean time of an answer per output token, by the same weights.",
    "provider",
    "model",
    merge=Merge.MAX,
)
HEALTH_CHANGES: Final = _counter(
    "gw_health_changes_total",
    "Changes of the health of keys and of models on them, by the gate that closed, or well. "
    "Counted by the one worker of all that builds snapshots.",
    "gate",
)
SNAPSHOT_VERSION: Final = _gauge(
    "gw_snapshot_version_count", "Version of the snapshot requests are ranked by.", merge=Merge.MAX
)
SNAPSHOT_AGE: Final = _gauge(
    "gw_snapshot_age_seconds", "Age of that snapshot; of several workers the most.", merge=Merge.MAX
)
SNAPSHOTS_BUILT: Final = _counter(
    "gw_snapshots_built_total", "Snapshots this worker has published for all."
)
SNAPSHOTS_REFUSED: Final = _counter(
    "gw_snapshots_refused_total", "Snapshots that came when another worker had the role."
)
EVENTS: Final = _counter(
    "gw_events_total", "Messages heard from other workers through Redis, by kind.", "kind"
)
EVENT_SECONDS: Final = _histogram(
    "gw_event_seconds",
    "From a change in Redis until this worker acted on it, by the server's clock.",
    EVENT_BUCKETS_S,
)
EVENTS_UP: Final = _gauge("gw_events_up_count", "Workers that hear such messages now.")
EVENTS_RECONNECTS: Final = _counter(
    "gw_events_reconnects_total", "Subscriptions made anew; messages may have been missed."
)
KEY_CHECKS: Final = _counter(
    "gw_key_checks_total",
    "Calls that asked a provider whether a key is valid, by what they found.",
    "provider",
    "result",
)
ORDERED_PASSES: Final = _counter(
    "gw_ordered_passes_total", "Checks of keys that an operator ordered and this worker has done."
)
COOLDOWNS_LIFTED: Final = _counter(
    "gw_cooldowns_lifted_total",
    "Cooldowns that ended early because their key was found well.",
    "provider",
)
OUTSIDE_USE: Final = _counter(
    "gw_outside_use_total",
    "Requests and tokens of our limits that others used, as providers tell.",
    "provider",
    "kind",
)
PROVIDER_OPENINGS: Final = _counter(
    "gw_provider_openings_total",
    "Times a provider was cut off because several of its targets failed at once.",
    "provider",
)
MODEL_BENCHES: Final = _counter(
    "gw_model_benches_total", "Models sent to rest on all their keys, by provider.", "provider"
)
USAGE_FULL: Final = _gauge(
    "gw_usage_full_keys_count",
    "Keys whose usage of today is full (new names count as _other); the cache counts as one.",
    merge=Merge.MAX,
)
USAGE_DROPPED: Final = _counter(
    "gw_usage_dropped_total", "Batches of cache savings that Redis called wrong, or did not hear."
)
LOG_LINES_DROPPED: Final = _counter(
    "gw_log_lines_dropped_total", "Log lines given up: nobody read the log, or not fast enough."
)
LOG_LINES_SUPPRESSED: Final = _counter(
    "gw_log_lines_suppressed_total",
    "Log lines of a trouble that came too fast and were left out, by event.",
    "event",
)
SPANS_EXPORTED: Final = _counter("gw_spans_exported_total", "Spans that a collector took.")
SPANS_DROPPED: Final = _counter(
    "gw_spans_dropped_total", "Spans that are lost: no room for them, or no collector took them."
)
DRAINING: Final = _gauge(
    "gw_draining_workers_count", "Workers that take no new requests and end open ones."
)
WORKERS: Final = _gauge("gw_workers_count", "Worker processes that answered this scrape.")

GROUP_WORKERS: Final = _gauge("gw_group_workers_count", "Worker processes of this group that live.")
GROUP_WORKERS_WANTED: Final = _gauge(
    "gw_group_workers_wanted_count", "Worker processes that this group should have."
)
CHILD_RESTARTS: Final = _counter(
    "gw_child_restarts_total", "Processes that ended by themselves and were started again.", "child"
)
CONFIG_READS: Final = _counter(
    "gw_config_reads_total",
    "Changed configuration files by what became of them: changed, or kept (the file is invalid).",
    "result",
)
CONFIG_FILE_KEPT: Final = _gauge(
    "gw_config_file_kept_count", "1 while the file as it stands is invalid, and an older one holds."
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
