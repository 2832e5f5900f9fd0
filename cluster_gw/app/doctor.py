"""Looks at everything a gateway depends on, and says what is wrong with it before a client does."""

import time
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from cluster_gw.errors import ConfigInvalidError, ScriptContractError, StoreLostError
from cluster_gw.settings import Loaded
from cluster_gw.settings.key_secrets import unseal
from cluster_gw.settings.overlay import patches_of, read_table
from cluster_gw.store.checkup import ServerFacts, examine, lacking
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.meta import check_schema
from cluster_gw.store.overlays import NO_OVERLAY, Overlay, Overlays
from cluster_gw.store.scripts import load_scripts

Status = Literal["ok", "warn", "fail", "unknown"]
WITHIN_S: Final = 5.0
OLDEST: Final = (7, 0)
CLOCK_APART_S: Final = 1.0
SLOW_S: Final = 0.010
LAG_S: Final = 10
SHORTEST_TOKEN: Final = 32
TOKEN: Final = "GW_ADMIN_TOKEN"  # noqa: S105 - the name of a variable
TRIES: Final = 5


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    Attributes:
        name: of it.
        status: `unknown` where nobody may ask.
        detail: what was found; no secret.
    """

    name: str
    status: Status
    detail: str


async def examine_redis(loaded: Loaded, redis_url: str) -> list[Finding]:
    """Look at Redis: reachable, version, policies, replicas, clock, rights, scripts, schema.

    Args:
        loaded: the configuration.
        redis_url: where it is, with `embedded:` resolved.
    """
    prefix = loaded.settings.redis.prefix
    client = RedisClient(redis_url, prefix=prefix)
    try:
        await client.start(WITHIN_S)
        took_s = min([await _round_trip(client) for _ in range(TRIES)])
        servers = await examine(client)
        missing = await lacking(client, Keys(prefix).doctor())
        return [
            _reached(servers, took_s),
            *(one for server in servers for one in _server(server)),
            _rights(missing),
            *await _contents(client, loaded),
        ]
    except StoreLostError:
        return [Finding(name="redis", status="fail", detail=client.fault or "nobody answers")]
    finally:
        await client.close()


async def _round_trip(client: RedisClient) -> float:
    began_s = time.monotonic()
    await client.call("PING")
    return time.monotonic() - began_s


def _reached(servers: list[ServerFacts], took_s: float) -> Finding:
    many = "" if len(servers) == 1 else f", {len(servers)} servers"
    detail = f"answers in {took_s * 1000:.1f} ms{many}"
    return Finding(name="redis", status="warn" if took_s > SLOW_S else "ok", detail=detail)


def _server(server: ServerFacts) -> Iterator[Finding]:
    info = server.info
    if info is None:
        detail = "its user may not ask INFO: version, policies and replicas are not known"
        yield Finding(name="redis.info", status="unknown", detail=detail)
    else:
        yield _version(info)
        yield _eviction(info)
        yield _persistence(info)
        yield from _replicas(info)
    if server.clock_s is not None:
        apart_s = abs(server.clock_s - time.time())
        status: Status = "warn" if apart_s > CLOCK_APART_S else "ok"
        yield Finding(name="redis.clock", status=status, detail=f"{apart_s:.3f} s from ours")


def _version(info: Mapping[str, str]) -> Finding:
    text = info.get("redis_version", "")
    numbers = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
    name = "Valkey" if "valkey_version" in info else "Redis"
    shown = info.get("valkey_version", text)
    if numbers < OLDEST:
        detail = f"{name} {shown}; 7.0 or newer is needed"
        return Finding(name="redis.version", status="fail", detail=detail)
    return Finding(name="redis.version", status="ok", detail=f"{name} {shown}")


def _eviction(info: Mapping[str, str]) -> Finding:
    policy = info.get("maxmemory_policy", "unknown")
    status: Status = "ok" if policy == "noeviction" else "fail"
    why = "" if status == "ok" else ": counters would be thrown away; set noeviction"
    return Finding(name="redis.eviction", status=status, detail=f"{policy}{why}")


def _persistence(info: Mapping[str, str]) -> Finding:
    if info.get("aof_enabled") == "1":
        return Finding(name="redis.persistence", status="ok", detail="append-only file")
    detail = "no append-only file: what was counted since the last snapshot is lost with the server"
    return Finding(name="redis.persistence", status="warn", detail=detail)


def _replicas(info: Mapping[str, str]) -> Iterator[Finding]:
    if info.get("role") != "master":
        detail = f"this server is a {info.get('role', 'stranger')}, which takes no writes"
        yield Finding(name="redis.role", status="fail", detail=detail)
        return
    replicas = [value for name, value in info.items() if name.startswith("slave")]
    for one in replicas:
        fields = dict(part.partition("=")[::2] for part in one.split(","))
        is_behind = fields.get("state") != "online" or int(fields.get("lag", 0)) > LAG_S
        place = f"{fields.get('ip')}:{fields.get('port')}"
        detail = f"{place} is {fields.get('state')}, heard {fields.get('lag')} s ago"
        yield Finding(name="redis.replica", status="warn" if is_behind else "ok", detail=detail)


def _rights(missing: list[str]) -> Finding:
    if missing:
        detail = f"its user may not call {', '.join(missing)}: see docs/redis-acl.md"
        return Finding(name="redis.rights", status="fail", detail=detail)
    return Finding(
        name="redis.rights", status="ok", detail="the commands that were tried are granted"
    )


async def _contents(client: RedisClient, loaded: Loaded) -> list[Finding]:
    """Scripts as they were reviewed, run on the server; a schema that this version understands."""
    prefix = loaded.settings.redis.prefix
    try:
        scripts = load_scripts()
        await check_schema(client, Keys(prefix))
        overlay = await Overlays(client, scripts, Keys(prefix)).read(NO_OVERLAY)
    except ScriptContractError as fault:
        return [Finding(name="scripts", status="fail", detail=str(fault))]
    except StoreLostError as fault:
        return [Finding(name="scripts", status="fail", detail=f"cannot be run: {fault}")]
    changes = f"changes at run time: version {overlay.version + 1}"
    return [
        Finding(name="scripts", status="ok", detail=f"{len(scripts)}, as reviewed; they run"),
        Finding(name="configuration", status="ok", detail=changes),
        *_key_secrets(loaded, overlay),
    ]


def _key_secrets(loaded: Loaded, overlay: Overlay) -> Iterator[Finding]:
    """Secrets of keys that were set at run time: whether they can be read with what is set here."""
    try:
        table = read_table(overlay.patches)
    except ConfigInvalidError:
        return  # workers say so
    unsealed = unseal(loaded, patches_of(table))
    causes = [f"{key} ({cause.value})" for key, cause in unsealed.unread.items()]
    if causes:
        detail = f"set at run time and cannot be read here, the file's is used: {', '.join(causes)}"
        yield Finding(name="secrets.run_time", status="fail", detail=detail)
    elif unsealed.set_at_ms:
        detail = f"set at run time: {', '.join(unsealed.set_at_ms)}"
        yield Finding(name="secrets.run_time", status="ok", detail=detail)


def examine_settings(loaded: Loaded, environ: Mapping[str, str]) -> list[Finding]:
    """Look at the file and what it needs of the environment."""
    settings = loaded.settings
    found = [
        Finding(name="configuration", status="warn", detail=warning) for warning in loaded.warnings
    ]
    empty = [key.id for key in settings.keys if not key.secret.reveal()]
    if empty:
        detail = f"no secret for {', '.join(empty)}"
        found.append(Finding(name="secrets", status="fail", detail=detail))
    else:
        detail = f"one for each of {len(settings.keys)} keys"
        found.append(Finding(name="secrets", status="ok", detail=detail))
    token = environ.get(TOKEN, "")
    if len(token) < SHORTEST_TOKEN:
        detail = f"{TOKEN} is not set, or shorter than {SHORTEST_TOKEN} characters: /api is off"
        found.append(Finding(name="admin_token", status="warn", detail=detail))
    else:
        found.append(Finding(name="admin_token", status="ok", detail="set"))
    if loaded.master_key is None:
        detail = (
            "GW_MASTER_KEY is not set: conversations and answers lie in Redis as they are, and no"
            " secret of a key can be set at run time"
        )
        found.append(Finding(name="master_key", status="warn", detail=detail))
    return found
