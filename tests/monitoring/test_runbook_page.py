"""The runbook has an entry for every alert and every error code, whole, and for nothing else."""

import re

import pytest

from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.store.keys import Keys
from cluster_gw.supervisor import events as of_groups
from cluster_gw.telemetry.catalog import METRICS
from cluster_gw.telemetry.events import EVENTS
from cluster_gw.telemetry.lines import Event
from tests.monitoring.promql import rules
from tests.monitoring.runbook import Entry, entries

ALERTS = [rule.name for rule in rules()]
READS = {
    "ACL WHOAMI", "CONFIG GET", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HVALS", "INFO",
    "LATENCY LATEST", "PING", "PUBSUB NUMSUB", "SLOWLOG GET", "TIME", "TYPE", "ZCARD", "ZRANGE",
    "ZREVRANGE", "--scan",
}  # fmt: skip
CHANGES = {"CONFIG SET", "DEL", "HDEL", "REPLICAOF"}
EVENT = re.compile(r"`([a-z_]+\.[a-z_]+)`")
SETTINGS = {"routing", "sticky", "server", "telemetry", "redis", "auth", "timeouts", "provider"}
LOGGED = {event.name for event in (*EVENTS, *vars(of_groups).values()) if isinstance(event, Event)}


def verb(line: str) -> str:
    """The command of a line, with its second word where that makes it another one."""
    words = line.removeprefix("redis-cli ").split()
    return words[0] if words[0] in READS | CHANGES else " ".join(words[:2])


def test_every_alert_and_every_error_code_has_its_entry_and_nothing_else() -> None:
    assert sorted(entries()) == sorted([*ALERTS, *ERROR_CODES])


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.name)
def test_an_entry_only_reads_to_look_and_only_changes_to_do(entry: Entry) -> None:
    looked = [line for line in entry.look_lines if line.startswith("redis-cli ")]

    assert {verb(line) for line in looked} <= READS
    assert {verb(line) for line in entry.do_lines} <= CHANGES
    if entry.name in ALERTS:
        assert looked


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.name)
def test_an_entry_names_only_what_there_is(entry: Entry) -> None:
    text = " ".join(entry[1:])
    metrics = {metric.name for metric in METRICS}

    assert set(re.findall(r"\bGw[A-Z]\w+", text)) <= set(ALERTS)
    assert set(re.findall(r"\bgw_\w+", text)) <= metrics
    named = {name for name in EVENT.findall(text) if name.partition(".")[0] not in SETTINGS}
    assert named | {"redis.returned"} <= LOGGED
    assert entry.symptom.endswith((".", ":"))
    assert entry.known.endswith(".")


def known_keys() -> set[str]:
    """Every key that lines of the page may name, as the product builds it."""
    keys, model = Keys("gw1"), "llama-3.3-70b-versatile"
    slot = keys.slot("groq", "groq-a")
    return {
        *(
            keys.workers(),
            keys.drains(),
            keys.worker_states(),
            keys.lead("reaper"),
            keys.lead("snap"),
            keys.snapshot(),
        ),
        *(keys.overlay(), keys.key_statuses(), keys.model_statuses(), keys.tool_marks()),
        *(keys.pool_status(), keys.strangers(), *keys.client("app-a"), keys.lease_expiries(slot)),
        *keys.health(slot, "groq-a", model),
        *(keys.model("groq", model), keys.outage("groq"), keys.events()),
        *(keys.model_window(slot, "groq-a", model), keys.statistics(slot, "groq-a", model)),
        *keys.cache_index(),
        *keys.requests("0", "notable"),
        keys.repeats("app-a", "DIGEST")[0],
        *keys.requests("f", "notable"),
        keys.usage(keys.usage_of_key(slot, "groq-a"), 20261130),
        keys.usage_saved(20261130),
        f"{keys.pin('auto', 'e', 's', 'k').removesuffix('e:s:k')}*",
        *("gw1:pin:*", "gw1:rsp:*"),
    }


def test_keys_of_the_lines_are_those_of_the_product() -> None:
    lines = {line for entry in entries().values() for line in (*entry.look_lines, *entry.do_lines)}
    known = known_keys()
    shown = {'{$(printf %s "$IK" | sha256sum | cut -c1-64)}': "{DIGEST}"}
    shown |= {"$(date -u +%Y%m%d)": "20261130"}
    shown |= {'$(printf %s "$ID" | tail -c 1)': "f"}

    for line in lines:
        text = line
        for code, plain in shown.items():
            text = text.replace(code, plain)
        named = re.findall(r"""gw1:[^\s'"]+""", text)
        assert [key for key in named if key not in known] == [], line
