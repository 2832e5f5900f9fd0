"""The overlay in Redis: replaced only by who saw what stands there, told to all, read when new."""

from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, NOW_MS
from tests.lua.config_model import OverlayModel
from tests.lua.machine import ScriptMachine, run_machine

RECORD: Final = KEYS.overlay()
FAR_MS: Final = 10**15


class ConfigScripts:
    """Calls the scripts on one server."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._commit = redis.register_script(scripts["config/commit"].text)
        self._read = redis.register_script(scripts["config/read"].text)

    def commit(
        self,
        seen: int,
        name: str,
        patches: str = "{}",
        *,
        least: int = 0,
        valid_until: int = 0,
        now_ms: int = NOW_MS,
    ) -> list[int | str]:
        reply = self._commit(keys=[RECORD], args=[seen, name, patches, least, valid_until, now_ms])
        assert reply[3] == now_ms
        return list(reply[:3])

    def read(self, version: int, name: str, now_ms: int = NOW_MS) -> list[int | str]:
        reply = self._read(keys=[RECORD], args=[version, name, now_ms])
        assert reply[3] == now_ms
        return [*reply[:3], *reply[4:]]


@pytest.fixture
def config(each_server: Redis, scripts: Scripts) -> ConfigScripts:
    return ConfigScripts(each_server, scripts)


def test_only_who_saw_what_stands_there_replaces_it(config: ConfigScripts) -> None:
    first = config.commit(0, "a", '{"x":1}')
    second = config.commit(0, "b", '{"x":2}')
    third = config.commit(1, "c", '{"x":3}')

    assert (first, second, third) == ([1, "ok", 1], [0, "stale", 1], [1, "ok", 2])
    assert config.read(0, "-") == [1, "ok", 2, "c", '{"x":3}']
    assert config.read(2, "c") == [2, "ok", 2, "", ""]


def test_the_same_writing_is_done_once(config: ConfigScripts) -> None:
    config.commit(0, "a")

    assert config.commit(0, "a", '{"x":2}') == [2, "ok", 1]
    assert config.read(0, "-")[4] == "{}"


def test_writing_that_was_given_up_does_not_come_true(config: ConfigScripts) -> None:
    late = config.commit(0, "a", valid_until=NOW_MS - 1)

    assert late == [0, "late", 0]
    assert config.read(0, "-") == [0, "none", 0, "", ""]
    assert config.commit(0, "a", valid_until=NOW_MS) == [1, "ok", 1]


def test_what_a_failover_lost_comes_back_with_its_version(config: ConfigScripts) -> None:
    config.commit(0, "a")

    assert config.commit(1, "lost", '{"x":7}', least=7) == [1, "ok", 7]
    assert config.commit(7, "next") == [1, "ok", 8]


def test_same_version_of_another_writing_is_another_one(config: ConfigScripts) -> None:
    config.commit(0, "a")

    assert config.read(1, "b") == [1, "ok", 1, "a", "{}"]


def test_overlay_stays_until_somebody_removes_it(config: ConfigScripts) -> None:
    config.commit(0, "a")

    assert config.redis.pttl(RECORD) == -1


def test_record_of_somebody_else_is_not_taken_for_an_empty_one(config: ConfigScripts) -> None:
    config.redis.hset(RECORD, "version", "seven")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        config.commit(0, "a")
    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        config.read(0, "-")


NAMES: Final = st.integers(0, 6).map(lambda number: f"id-{number}")


class ConfigMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = ConfigScripts(self.redis, self.loaded)
        self.model = OverlayModel()
        self.channel = self.redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self.channel.subscribe("gw1:events")
        self.channel.get_message(timeout=5)

    @rule(step_ms=st.integers(0, 3000))
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(
        behind=st.integers(-1, 2),
        name=NAMES,
        least=st.just(0) | st.integers(0, 30),
        valid_ms=st.none() | st.integers(-2000, 2000),
    )
    def commit(self, behind: int, name: str, least: int, valid_ms: int | None) -> None:
        seen = max(0, self.model.version - behind)
        until = 0 if valid_ms is None else self.now_ms + valid_ms
        patches = f'{{"by":"{name}"}}'

        reply = self.scripts.commit(
            seen, name, patches, least=least, valid_until=until, now_ms=self.now_ms
        )

        assert reply == self.model.commit(
            seen, name, patches, least=least, valid_until=until, now_ms=self.now_ms
        )

    @rule(behind=st.integers(0, 1), name=NAMES)
    def read(self, behind: int, name: str) -> None:
        version = max(0, self.model.version - behind)

        assert self.scripts.read(version, name, self.now_ms) == self.model.read(version, name)

    @invariant()
    def every_change_was_told(self) -> None:
        told: list[tuple[str, int]] = []
        while len(told) < len(self.model.told):
            message = self.channel.get_message(timeout=5)
            if message is not None:
                kind, version, _ = message["data"].split(" ")
                told.append((kind, int(version)))
        assert told == [("config", version) for version in self.model.told]
        self.model.told.clear()

    def teardown(self) -> None:
        self.channel.close()
        self.redis.close()


def test_histories_of_the_overlay_machine(redis_7: RedisServer) -> None:
    run_machine(ConfigMachine, redis_7, histories=25, steps=25)
