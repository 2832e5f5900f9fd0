"""The configuration of a LiteLLM proxy as one of ours, and every line that cannot be carried over.

Nothing is guessed in silence: whatever is read is in the result or in a note that begins with its
place. No secret that stands in the file is repeated; a variable is named in its place.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from cluster_gw.settings.litellm_names import NO_COUNTERPART, STRATEGIES
from cluster_gw.settings.litellm_pool import Pool
from cluster_gw.settings.litellm_reading import Reader

COMBO_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}")
REFERENCE: Final = "os.environ/"
PASSWORD: Final = "REDIS_PASSWORD"  # noqa: S105 - the name of its variable
MS_PER_S: Final = 1000


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        config: as our file would say it.
        notes: what is not carried over, or differently; each begins with its place.
        variables: of the environment that the result needs.
    """

    config: dict[str, Any]
    notes: tuple[str, ...]
    variables: tuple[str, ...]


def translate(document: Mapping[str, Any], environ: Mapping[str, str]) -> Imported:
    """Translate a document.

    Args:
        document: of a LiteLLM proxy (`config.yaml`).
        environ: where its references are looked up; only to know whether they are set.
    """
    reader = Reader(document, "")
    router, general = reader.section("router_settings"), reader.section("general_settings")
    common = reader.section("litellm_settings")
    pool = Pool(reader)
    strategy = _strategy(router)
    for item in reader.items("model_list"):
        pool.add(item)
    combos = _combos(pool, strategy, router, common, general)
    total_s = common.number("request_timeout") or router.number("timeout")
    timeouts = {"timeouts": {"total_s": total_s}} if total_s else {}
    config: dict[str, Any] = {
        "providers": {name: {**one, **timeouts} for name, one in pool.providers.items()},
        "keys": pool.shown_keys(),
        "models": pool.shown_models(),
        "combos": combos,
    }
    if combos:
        config["default_combo"] = combos[0]["id"]
    config |= _routing(router, common) | _cache(common)
    config |= _redis(router, common, reader) | _clients(general, environ)
    for name in reader.section("environment_variables").take_all():
        reader.note(f"environment_variables.{name}", "set it in the environment of the gateway")
    notes = [*reader.notes, *_left(reader)]
    return Imported(config=config, notes=tuple(notes), variables=tuple(sorted(reader.variables)))


def _left(reader: Reader) -> Iterator[str]:
    """Give a note for each field that nobody asked for."""
    for place, name in reader.left():
        last = place.rpartition(".")[0].rpartition(".")[2]
        why = NO_COUNTERPART.get(f"{last}.{name}", NO_COUNTERPART.get(name))
        yield f"{place}: not carried over{'' if why is None else f'; {why}'}"


def _strategy(router: Reader) -> str:
    name = router.text("routing_strategy") or "simple-shuffle"
    if name not in STRATEGIES:
        router.note("routing_strategy", f"'{name}' has no counterpart; 'weighted' is used")
    return STRATEGIES.get(name, "weighted")


def _combos(
    pool: Pool, strategy: str, router: Reader, common: Reader, general: Reader
) -> list[dict[str, Any]]:
    """Give a combo for each name that clients know, in order."""
    later = [*_fallbacks(router, pool), *_fallbacks(common, pool), *_fallbacks(general, pool)]
    defaults = [name for one in (common, router) for name in one.texts("default_fallbacks")]
    combos = []
    for name, own in pool.groups.items():
        if not COMBO_ID.fullmatch(name):
            pool.note_group(name, "clients cannot ask for this name here; it is left out")
            continue
        behind = [after for before, after in later if before == name] or defaults
        members = dict.fromkeys(own)
        for other in behind:
            members |= dict.fromkeys(pool.groups.get(other, ()))
        is_ordered = len(members) > len(dict.fromkeys(own)) or pool.is_ordered(name)
        if is_ordered and len(own) > 1 and strategy != "priority":
            pool.note_group(name, "tried in order, so that what comes after them stays behind")
        chosen = "priority" if is_ordered else strategy
        combos.append(
            {"id": name, "family": "classic", "strategy": chosen, "members": list(members)}
        )
    known = {combo["id"]: combo for combo in combos}
    for alias, target in router.mapping("model_group_alias").items():
        found = known.get(target if isinstance(target, str) else "")
        if found is None or not COMBO_ID.fullmatch(alias) or alias in known:
            router.note(f"model_group_alias.{alias}", "not carried over")
            continue
        known[alias] = {**found, "id": alias}
        combos.append(known[alias])
    return combos


def _fallbacks(section: Reader, pool: Pool) -> Iterator[tuple[str, str]]:
    for place, one in enumerate(section.entries("fallbacks")):
        for name, others in one.items() if isinstance(one, Mapping) else ():
            if name not in pool.groups:
                section.note(f"fallbacks[{place}].{name}", "there is no model of this name")
            for other in others if isinstance(others, list) else ():
                if not isinstance(other, str) or other not in pool.groups:
                    section.note(f"fallbacks[{place}].{name}", "names a model that is not there")
                else:
                    yield name, other


def _routing(router: Reader, common: Reader) -> dict[str, Any]:
    routing: dict[str, Any] = {}
    retries = [one.number("num_retries") for one in (router, common)]
    tried = [count for count in retries if count is not None]
    if tried:
        routing["attempts"] = {"max": int(max(tried)) + 1}
    fails = [one.number("allowed_fails") for one in (router, common)]
    rest = [one.number("cooldown_time") for one in (router, common)]
    breaker: dict[str, Any] = {}
    for name, values, factor in (("threshold", fails, 1), ("cooldown_ms", rest, MS_PER_S)):
        said = [value for value in values if value]
        if said:
            breaker[name] = max(1, round(said[0] * factor))
    if breaker:
        routing["breaker"] = breaker
    return {"routing": routing} if routing else {}


def _cache(common: Reader) -> dict[str, Any]:
    if not common.flag("cache"):
        return {}
    parameters = common.section("cache_params")
    kind = parameters.text("type") or "redis"
    if kind != "redis":
        parameters.note("type", f"answers are kept in Redis, not in '{kind}'")
    ttl_s = parameters.number("ttl")
    return {"cache": {"enabled": True, **({} if ttl_s is None else {"ttl_s": ttl_s})}}


def _redis(router: Reader, common: Reader, reader: Reader) -> dict[str, Any]:
    """Where the shared state is; a password only by the name of its variable."""
    cache = common.section("cache_params")
    for section, names in (
        (router, ("redis_url", "redis_host", "redis_port", "redis_password")),
        (cache, ("url", "host", "port", "password")),
    ):
        url, host, port, password = (section.reference(name) for name in names)
        if url is None and host is None:
            continue
        if url is not None and not url.startswith("${") and "@" in url:
            section.note(names[0], "holds a password; put it into GW_REDIS__URL")
            return {}
        if url is None:
            secret = "" if password is None else f":{password}@"
            if password is not None and not password.startswith("${"):
                section.note(names[3], f"stands in the file; set {PASSWORD} to it")
                reader.variables.add(PASSWORD)
                secret = f":${{{PASSWORD}}}@"
            url = f"redis://{secret}{host}:{port or 6379}"
        return {"redis": {"url": url}}
    return {}


def _clients(general: Reader, environ: Mapping[str, str]) -> dict[str, Any]:
    """The master key becomes a client, so that apps that have it go on."""
    text = general.text("master_key")
    if text is None:
        general.note("master_key", "is not set: clients need no key, on this machine alone")
        return {"auth": {"mode": "none"}}
    name = text.removeprefix(REFERENCE) if text.startswith(REFERENCE) else None
    value = environ.get(name, "") if name else text
    if not value:
        general.note("master_key", f"{name} is not set here; add clients[].key_sha256 by hand")
        return {}
    digest = sha256(value.encode()).hexdigest()
    general.note("master_key", "opens the APIs only; the admin API has GW_ADMIN_TOKEN")
    return {"clients": [{"id": "master", "key_sha256": digest}]}
