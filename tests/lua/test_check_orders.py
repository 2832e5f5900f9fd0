"""Checks of keys that are ordered, against the rules in `core/limits/check_order.py`."""

from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.check_order import CheckOrder, begin, order_again
from cluster_gw.store.check_orders import Outcome, read_order, read_outcome
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS, texts
from tests.lua.machine import ScriptMachine, run_machine

ORDERS: Final = Keys("gw1").check_orders()
SCOPES: Final = st.sampled_from(("*", "p", "p.k1", "q.a%2Eb"))
FENCES: Final = st.integers(1, 4)
COUNT: Final = st.integers(0, 9)


class OrderMachine(ScriptMachine):
    """Operators order, terms come and go, and one of them may be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: dict[str, CheckOrder] = {}
        self.last: Outcome | None = None

    def run(self, name: str, *args: str | int) -> list[Any]:
        script = self.redis.register_script(self.loaded[name].text)
        reply: list[Any] = script(keys=[ORDERS], args=[*args, self.now_ms])
        return reply

    @rule(step_ms=st.integers(-5_000, 400_000))
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(scope=SCOPES)
    def order(self, scope: str) -> None:
        before = self.orders.get(scope)
        after = self.orders[scope] = order_again(before, scope, self.now_ms)

        reply = self.run("health/order", scope)

        assert reply == [2 if after is before else 1, "ok", after.ordered_ms]

    @rule(fence=FENCES)
    def begin(self, fence: int) -> None:
        reply = self.run("health/orders", fence)

        if any(order.fence > fence for order in self.orders.values()):
            assert reply == [0, "stale", self.now_ms]
            return
        self.orders = {
            scope: begin(order, fence, self.now_ms) for scope, order in self.orders.items()
        }
        rows = list(zip(*[iter(reply[3:])] * 3, strict=True))
        assert reply[:3] == [1, "ok", self.now_ms]
        assert sorted(rows) == sorted(
            (order.scope, order.ordered_ms, order.begun_ms) for order in self.orders.values()
        )

    @rule(
        fence=FENCES,
        scopes=st.sets(SCOPES, min_size=1),
        is_old=st.booleans(),
        counts=st.tuples(COUNT, COUNT, COUNT),
    )
    def finish(
        self, fence: int, scopes: set[str], is_old: bool, counts: tuple[int, int, int]
    ) -> None:
        """Also what was ordered anew meanwhile, or never."""
        named = {
            scope: self.orders[scope].ordered_ms - is_old if scope in self.orders else 7
            for scope in sorted(scopes)
        }
        words = [word for pair in named.items() for word in pair]
        reply = self.run("health/ordered", fence, 5, *counts, *words)

        if any(s in self.orders and self.orders[s].fence > fence for s in named):
            assert reply == [0, "stale", 0]
            return
        done = [
            scope
            for scope, ordered_ms in named.items()
            if scope in self.orders and self.orders[scope].ordered_ms == ordered_ms
        ]
        for scope in done:
            del self.orders[scope]
        valid, rejected, unknown = counts
        self.last = Outcome(
            ended_ms=self.now_ms, began_ms=5, valid=valid, rejected=rejected, unknown=unknown
        )
        assert reply == [1, "ok", len(done)]

    @invariant()
    def what_stands_equals_the_model(self) -> None:
        fields = {n.encode(): t.encode() for n, t in texts(self.redis, ORDERS).items()}
        last = fields.pop(b"=last", None)

        assert (None if last is None else read_outcome(last)) == self.last
        assert {name.decode(): read_order(name, text) for name, text in fields.items()} == (
            self.orders
        )
        assert not (fields or last) or self.redis.pttl(ORDERS) > 0


def test_scripts_and_rules_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(OrderMachine, redis_7, histories=60, steps=30)


@pytest.mark.parametrize("scope", ["", "=last", "two words", "=x"])
def test_scope_that_is_no_word_or_could_be_taken_for_something_else_is_refused(
    redis: Redis, scripts: Scripts, scope: str
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["health/order"].text)(keys=[ORDERS], args=[scope, NOW_MS])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("health/orders", ["0"]),
        ("health/ordered", [1, 0, 0, 0, 0]),
        ("health/ordered", [1, 0, 0, 0, 0, "*"]),
        ("health/ordered", [1, 0, 0, -1, 0, "*", 1]),
    ],
)
def test_a_pass_that_says_too_little_is_refused(
    redis: Redis, scripts: Scripts, name: str, args: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts[name].text)(keys=[ORDERS], args=[*args, NOW_MS])

    assert redis.keys() == []


def test_a_field_somebody_else_wrote_is_left_out_of_what_is_shown() -> None:
    assert read_order(b"*", b"now please") is None
    assert read_outcome(b"fine") is None
