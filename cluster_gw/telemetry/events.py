"""Every log event, declared once: `noun.past_participle`, its level and its fields.

Numbers carry units in their names. Never a prompt, an answer, a header or a secret. Lines of one
trouble that come too fast are left out; the next one says how many, as `suppressed`.
"""

from typing import Final

import msgspec

from cluster_gw.telemetry.lines import AttemptLine, Event, HotLine, Level, RequestLine


def _event(name: str, level: Level, text: str, *fields: str) -> Event:
    return Event(name=name, level=level, help=text, fields=fields)


def _hot(name: str, text: str, line: type[HotLine]) -> Event:
    fields = msgspec.structs.fields(line)
    own = tuple(f.encode_name for f in fields if f.name not in HotLine.__struct_fields__)
    return Event(name=name, level=Level.INFO, help=text, fields=own)


REQUEST_FINISHED: Final = _hot("request.finished", "One line per request (hot line).", RequestLine)
ATTEMPT_FAILED: Final = _hot(
    "attempt.failed", "One line per failed upstream call (hot line).", AttemptLine
)
WORKER_STARTED: Final = _event(
    "worker.started",
    Level.INFO,
    "The worker accepts requests.",
    "worker",
    "config_version",
    "file_version",
)
WORKER_DRAINING: Final = _event(
    "worker.draining", Level.INFO, "No new requests; open ones finish.", "worker", "in_flight"
)
WORKER_DRAINED: Final = _event(
    "worker.drained", Level.INFO, "An operator wants it out of use.", "worker", "in_flight"
)
WORKER_REJOINED: Final = _event(
    "worker.rejoined", Level.INFO, "It is in use again.", "worker", "in_flight"
)
WORKER_STOPPED: Final = _event(
    "worker.stopped", Level.INFO, "The worker ends.", "worker", "in_flight", "unsettled"
)
PARENT_LOST: Final = _event(
    "parent.lost", Level.WARNING, "The supervisor is gone; the worker ends.", "worker"
)
ADMIN_CHANGED: Final = _event(
    *("admin.changed", Level.INFO, "An operator changed something; `stored`: also in Redis."),
    *("actor", "address", "method", "path", "about", "fields", "status", "stored"),
)
CONFIG_LOADED: Final = _event(
    "config.loaded", Level.INFO, "A configuration is in force.", "config_version", "file_version"
)
CONFIG_REFUSED: Final = _event(
    "config.refused", Level.ERROR, "A new file is invalid; the old one stays.", "faults"
)
CONFIG_PATCH_DROPPED: Final = _event(
    "config.patch_dropped",
    Level.WARNING,
    "A change made through the admin API does not fit the file of this worker; the rest holds.",
    "patch",
    "faults",
)
SECRET_UNREAD: Final = _event(
    "secret.unread",
    Level.ERROR,
    "The secret of a key that was set at run time cannot be read here; the file's is used.",
    *("key", "cause"),
)
SECRET_TAKEN: Final = _event(
    "secret.taken", Level.INFO, "Another secret of a key is in force, by source.", "key", "source"
)
CONFIG_UNREADABLE: Final = _event(
    "config.unreadable",
    Level.WARNING,
    "What stands in Redis of the configuration cannot be read; the last one stays in force.",
    "worker",
    "detail",
)
CONFIG_RESTORED: Final = _event(
    "config.restored",
    Level.WARNING,
    "Redis had lost changes of the configuration; this worker has put them back.",
    *("worker", "overlay_version"),
)
CONFIG_SUPERSEDED: Final = _event(
    "config.superseded",
    Level.WARNING,
    "Redis had lost a change of the configuration, and another took its version; that one holds.",
    *("worker", "overlay_version"),
)
CONFIG_WARNED: Final = _event(
    "config.warned", Level.WARNING, "A setting was ignored and its default used.", "detail"
)
REDIS_LOST: Final = _event(
    "redis.lost",
    Level.WARNING,
    "The connection to Redis is lost. What is done without it: redis.when_lost.",
    "worker",
    "cause",
)
REDIS_RETURNED: Final = _event("redis.returned", Level.INFO, "Redis answers again.", "worker")
USAGE_FULL: Final = _event(
    "usage.full", Level.WARNING, "New users of a key count as _other today.", "worker", "key"
)
USAGE_LOST: Final = _event(
    *("usage.lost", Level.WARNING, "The worker ends; nobody is told of answers its cache gave."),
    *("worker", "answers", "tokens"),
)
CACHE_REDIS_LOST: Final = _event(
    "cache_redis.lost",
    Level.WARNING,
    "The Redis of redis.cache_url does not answer: what would be kept there is missing.",
    "worker",
    "cause",
)
CACHE_REDIS_RETURNED: Final = _event(
    "cache_redis.returned", Level.INFO, "The Redis of redis.cache_url answers again.", "worker"
)
REDIS_UNSTEADY: Final = _event(
    "redis.unsteady",
    Level.WARNING,
    "Redis is lost again and again: so many losses were counted instead of logged, in a minute.",
    "worker",
    "what",
    "count",
)
ALONE_BEGUN: Final = _event(
    "alone.begun",
    Level.WARNING,
    "Redis does not work: this worker lets in its share, nothing or everything, by its mode.",
    "worker",
    "mode",
    "cause",
)
ALONE_CONTINUED: Final = _event(
    "alone.continued",
    Level.WARNING,
    "Once a minute while a worker decides without Redis: what it did since that began.",
    *("worker", "mode", "grants", "refusals", "journal"),
)
ALONE_ENDED: Final = _event(
    "alone.ended",
    Level.INFO,
    "Redis works again and was told what was done without it.",
    *("worker", "mode", "grants", "refusals", "replayed"),
)
SCHEMA_REFUSED: Final = _event(
    "schema.refused",
    Level.ERROR,
    "A newer version writes to this Redis what this one would misread; the worker ends.",
    "worker",
    "detail",
)
RECORD_UNREADABLE: Final = _event(
    "record.unreadable",
    Level.ERROR,
    "A record in Redis is not as we write it; what needs it is refused until it is mended.",
    "worker",
    "key",
    "remedy",
)
SETTLEMENT_LOST: Final = _event(
    "settlement.lost",
    Level.ERROR,
    "A settlement could not be written; its lease expires by itself.",
    "count",
)
LEASES_REAPED: Final = _event(
    "leases.reaped",
    Level.WARNING,
    "Workers fell silent; the concurrency slots of their leases were given back.",
    "workers",
    "count",
)
KEY_REJECTED: Final = _event(
    "key.rejected",
    Level.WARNING,
    "A provider refuses a key, also when asked again; it rests on all its models.",
    "provider",
    "key",
)
COOLDOWNS_LIFTED: Final = _event(
    "cooldowns.lifted",
    Level.INFO,
    "A resting key was found well; what was only guessed has ended.",
    "provider",
    "key",
    "count",
)
OUTSIDE_USE: Final = _event(
    "quota.shared",
    Level.WARNING,
    "A provider has less left than we count: others use the same key. Our limit was tightened.",
    *("provider", "key", "model", "window", "kind", "amount"),
)
LIMIT_LOWER: Final = _event(
    "quota.lower",
    Level.WARNING,
    "A provider's limit is lower than the configured one; its own is kept to.",
    *("provider", "key", "model", "window", "kind", "limit", "configured"),
)
PROVIDER_OPENED: Final = _event(
    "provider.opened",
    Level.WARNING,
    "Several keys or models of a provider failed at once; nothing of it is called for a while.",
    "provider",
    "rest_ms",
)
MODEL_BENCHED: Final = _event(
    "model.benched",
    Level.WARNING,
    "A model failed several times, on whichever keys, and rests on all of them.",
    *("provider", "model", "code", "rest_ms"),
)
KEY_BARRED: Final = _event(
    "key.barred",
    Level.WARNING,
    "A provider rejected a key in a check: no worker uses it until a check goes well.",
    *("provider", "key", "status", "rejections", "reason"),
)
KEY_HEALTHY: Final = _event(
    "key.healthy",
    Level.INFO,
    "A key that was barred was found well; it is used again.",
    "provider",
    "key",
)
CHECK_ORDERED: Final = _event(
    "check.ordered",
    Level.INFO,
    "An operator wants keys checked now: all (*), those of a provider, or one.",
    "scope",
    "keys",
)
KEYS_CHECKED: Final = _event(
    "keys.checked",
    Level.INFO,
    "What an operator ordered is done; unknown are keys whose provider did not say.",
    "scopes",
    "valid",
    "rejected",
    "unknown",
)
MODEL_RETIRED: Final = _event(
    "model.retired",
    Level.WARNING,
    "A provider says that it has a model no more: no worker calls it, but for a try each day.",
    "provider",
    "model",
    "reason",
)
MODEL_RESTORED: Final = _event(
    "model.restored", Level.INFO, "A model has answered after all.", "provider", "model"
)
MODEL_TOOLS_REFUSED: Final = _event(
    "model.tools_refused",
    Level.WARNING,
    "A model refuses tools though it is declared to take them: for an hour it is the last choice "
    "for requests with tools.",
    "provider",
    "model",
)
MODEL_TOOLS_TAKEN: Final = _event(
    "model.tools_taken",
    Level.INFO,
    "A model that refused tools has answered a request with some.",
    "provider",
    "model",
)
POOL_DEGRADED: Final = _event(
    "pool.degraded",
    Level.WARNING,
    "Too few providers have had a key that may be used, for too long.",
    "usable",
    "providers",
)
POOL_RECOVERED: Final = _event(
    "pool.recovered",
    Level.INFO,
    "Enough providers have had a key again, for long enough.",
    "usable",
    "providers",
)
STRANGERS_BARRED: Final = _event(
    "strangers.barred",
    Level.WARNING,
    "Addresses sent more requests without a valid key than they may; some of them.",
    "networks",
    "count",
)
EVENTS_LOST: Final = _event(
    "events.lost",
    Level.WARNING,
    "For 5 s nothing is heard of what other workers tell: changes are seen some seconds later.",
    "worker",
    "cause",
)
SNAPSHOT_UNREADABLE: Final = _event(
    "snapshot.unreadable",
    Level.WARNING,
    "The snapshot in Redis cannot be read; the last one is ranked by until another comes.",
    "worker",
    "detail",
)
LOG_INTERRUPTED: Final = _event(
    "log.interrupted",
    Level.WARNING,
    "Whoever reads the log did not keep up: so many lines are missing here.",
    "count",
)
LOG_THINNED: Final = _event(
    "log.thinned",
    Level.INFO,
    "A trouble is over, or the worker ends: so many of its last lines were left out of the log.",
    "of",
    "reason",
    "suppressed",
)
LIBRARY_WARNED: Final = _event(
    "library.warned",
    Level.WARNING,
    "A library logged a warning or an error: which, and where; its text may hold anything.",
    "library",
    "where",
    "exception",
)
TELEMETRY_DROPPED: Final = _event(
    "telemetry.dropped",
    Level.WARNING,
    "The collector of telemetry.otlp_endpoint took no spans, which are lost, or no measurements, "
    "which go along with the next ones.",
    *("spans", "unsent", "cause"),
)
REQUEST_CRASHED: Final = _event(
    "request.crashed", Level.ERROR, "A bug ended a request.", "request_id", "exception"
)
TASK_CRASHED: Final = _event(
    "task.crashed", Level.ERROR, "A background job failed and runs again.", "task", "exception"
)

EVENTS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Event))
