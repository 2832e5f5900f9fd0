"""Scripts of two versions take turns on the same keys; the model of one says what they must do."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import MIN_READER, SCHEMA, Scripts, load_scripts
from tests.fakes.next_version import FIELD, next_version
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import MODEL, Admission, texts
from tests.lua.test_admission_machine import AdmissionMachine


class Turns(Admission):
    """Every other call is one of the next version."""

    def __init__(self, present: Admission, later: Admission) -> None:
        self.redis = present.redis
        self._versions = (present, later)
        self._calls = 0

    def reserve(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().reserve(*words, **named)

    def settle(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().settle(*words, **named)

    def reserve_many(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().reserve_many(*words, **named)

    def settle_many(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().settle_many(*words, **named)

    def reap(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().reap(*words, **named)

    def observe(self, *words: Any, **named: Any) -> list[Any]:
        return self._next().observe(*words, **named)

    def _next(self) -> Admission:
        self._calls += 1
        return self._versions[self._calls % 2]


class RolloutMachine(AdmissionMachine):
    later: Scripts

    def __init__(self) -> None:
        super().__init__()
        self.scripts = Turns(self.scripts, Admission(self.redis, self.later))


def test_both_versions_keep_what_the_other_wrote(redis_7: RedisServer, tmp_path: Path) -> None:
    checkout = next_version(tmp_path / "next", schema=SCHEMA, min_reader=MIN_READER)
    RolloutMachine.server, RolloutMachine.later = redis_7, load_scripts(checkout / "lua")
    assert RolloutMachine.later["admission/settle"].sha != load_scripts()["admission/settle"].sha

    run_state_machine_as_test(
        RolloutMachine,
        settings=settings(
            max_examples=20,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_next_version_writes_one_field_more(
    redis: Redis, scripts: Scripts, tmp_path: Path
) -> None:
    checkout = next_version(tmp_path / "next", schema=SCHEMA, min_reader=MIN_READER)
    present, later = Admission(redis, scripts), Admission(redis, load_scripts(checkout / "lua"))

    present.reserve("a", (MODEL, Limits()))
    later.settle("a", MODEL)

    assert texts(redis, MODEL)[FIELD] == "1"
