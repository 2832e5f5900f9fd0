"""Idempotency keys inside their scripts against the plain model: random histories."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.fakes.redis_server import RedisServer
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.repeat_calls import NAMES, RepeatScripts
from tests.lua.repeat_model import Model

LEASES_MS: Final = st.sampled_from((1, 4_000, 60_000))
STEPS_MS: Final = st.sampled_from((0, 1, 500, 3_999, 4_000, 60_000, -1, -5_000, -120_000))
KNOWN: Final = st.one_of(st.none(), st.integers(0, 4))


class IdempotencyMachine(ScriptMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = RepeatScripts(self.redis, self.loaded)
        self.model = Model()
        self.tokens = [1]
        self.is_lost = False

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(
        body=st.sampled_from("aaab"),
        lease_ms=LEASES_MS,
        may_take=st.booleans(),
        ago=st.integers(-3, 0),
        known=KNOWN,
    )
    def ask(self, body: str, lease_ms: int, may_take: bool, ago: int, known: int | None) -> None:
        token = 0 if ago == 0 else self.some(ago)
        wanted = self.model.ask(
            body,
            now_ms=self.now_ms,
            lease_ms=lease_ms,
            may_take=may_take,
            token=token,
            known=known,
        )
        reply = self.scripts.ask(
            body,
            now_ms=self.now_ms,
            lease_ms=lease_ms,
            may_take=may_take,
            token=token,
            known=known,
        )
        assert reply == wanted
        if reply[0] == 1:
            # A record that was lost and a clock that stepped back since: nobody could know better.
            assert reply[2] > self.tokens[-1] or (self.is_lost and self.now_ms <= self.tokens[-1])
            self.is_lost = False
            self.tokens.append(reply[2])

    @rule(
        ago=st.integers(-3, -1),
        lease_ms=LEASES_MS,
        at=st.integers(-1, 1),
        pieces=st.lists(st.sampled_from(("x", "y")), max_size=2),
    )
    def go_on(self, ago: int, lease_ms: int, at: int, pieces: list[str]) -> None:
        place = max(0, len(self.model.record.feed) + at)
        wanted = self.model.go_on(
            self.some(ago), now_ms=self.now_ms, lease_ms=lease_ms, at=place, pieces=pieces
        )
        reply = self.scripts.go_on(
            self.some(ago), *pieces, at=place, now_ms=self.now_ms, lease_ms=lease_ms
        )
        assert reply == wanted

    @rule(ago=st.sampled_from((-1, -1, -1, -2)), answer=st.sampled_from("pq"))
    def keep(self, ago: int, answer: str) -> None:
        if len(self.tokens) % 3 == 0:  # else most of a history would be one kept answer
            assert self.scripts.keep(self.some(ago), answer) == self.model.keep(
                self.some(ago), answer
            )

    @rule(ago=st.integers(-2, -1))
    def free(self, ago: int) -> None:
        assert self.scripts.free(self.some(ago)) == self.model.free(self.some(ago))

    @rule()
    def forget(self) -> None:
        """The record is lost, as when the server evicts it: later tokens are later all the same."""
        if self.now_ms > self.tokens[-1]:
            self.redis.delete(*NAMES)
            self.model = Model()
            self.is_lost = True

    @invariant()
    def what_stands_there_is_the_models(self) -> None:
        record = self.model.record
        fields = self.redis.hgetall(NAMES[0])
        assert fields.get("state", "") == record.state
        assert int(fields.get("token", 0)) == record.token
        assert fields.get("answer", "") == record.answer
        assert self.redis.lrange(NAMES[1], 0, -1) == record.feed
        for name in NAMES:
            assert self.redis.pttl(name) != -1

    def some(self, ago: int) -> int:
        return self.tokens[max(ago, -len(self.tokens))]


def test_scripts_of_idempotency_keys_and_model_agree_machine(redis_7: RedisServer) -> None:
    run_machine(IdempotencyMachine, redis_7, histories=60, steps=30)
