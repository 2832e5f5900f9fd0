"""What operators changed is kept once, the newest entries only."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.commands.core import Script

from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, NOW_MS, scores

AUDIT = KEYS.audit()


@pytest.fixture
def note(redis: Redis, scripts: Scripts) -> Script:
    return redis.register_script(scripts["config/note"].text)


def test_same_entry_is_written_once_and_keeps_its_time(redis: Redis, note: Script) -> None:
    replies = [note(keys=[AUDIT], args=["{}", 5, NOW_MS + at]) for at in (0, 9)]

    assert replies == [[1, "ok", NOW_MS], [2, "ok", NOW_MS + 9]]
    assert redis.zrange(AUDIT, 0, -1, withscores=True) == [("{}", NOW_MS)]
    assert 0 < redis.pttl(AUDIT) <= 7_776_000_000


@given(entries=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=12))
@settings(max_examples=20, deadline=None)
def test_newest_entries_are_kept_as_a_plain_list_would(
    redis_7: RedisServer, entries: list[tuple[str, int]]
) -> None:
    redis = Redis.from_url(redis_7.url, protocol=2, decode_responses=True)
    redis.flushall()
    note: Any = redis.register_script(load_scripts()["config/note"].text)
    kept: dict[str, int] = {}

    for name, at in entries:
        note(keys=[AUDIT], args=[name, 3, NOW_MS + at])
        kept.setdefault(name, NOW_MS + at)
        kept = dict(sorted(kept.items(), key=lambda pair: (pair[1], pair[0]))[-3:])

    assert scores(redis, AUDIT) == kept
