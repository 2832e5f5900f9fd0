"""Settlements in any order, repeated, late or expired: each counts in the usage once."""

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from cluster_gw.core.limits.windows import Limits
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, MODEL, NOW_MS, USED, WHOLE, Admission, scores, texts
from tests.lua.machine import ScriptMachine, run_machine
from tests.lua.usage_model import KEPT_MS, IndexModel, SavingsModel, UsageModel, Used

ROUTE = (MODEL, WHOLE)
BOUNDS = [(window, Limits()) for window in ROUTE]
TTL_MS = 5_000
IDS = [f"l{number}" for number in range(12)]


@st.composite
def settlements(draw: st.DrawFn) -> tuple[int, int, Used]:
    """Tokens, whether the request counts, and what is told of them."""
    actual = draw(st.integers(0, 900))
    used = Used(
        whose=draw(st.sampled_from(["app m", "app-b m", "app m%2Fn"])),
        output=draw(st.integers(0, actual)),
        cached=draw(st.sampled_from([0, 0, 7])),
        reasoning=draw(st.sampled_from([0, 0, 5])),
        nano_usd=draw(st.none() | st.integers(0, 10**12)),
        family=draw(st.sampled_from([None, None, "rate_limit", "timeout"])),
    )
    return actual, draw(st.integers(0, 1)), used


class UsageMachine(ScriptMachine):
    """Its clock never goes so far that ids are forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = Admission(self.redis, self.loaded)
        self.model = UsageModel()
        self.done: set[str] = set()

    @rule(ids=st.sets(st.sampled_from(IDS), min_size=1))
    def reserve(self, ids: set[str]) -> None:
        for name in sorted(ids):
            self.scripts.reserve(name, *BOUNDS, now_ms=self.now_ms, ttl_ms=TTL_MS)

    @rule(name=st.sampled_from(IDS), fact=settlements(), age_s=st.sampled_from([None, 0, 3]))
    def settle(self, name: str, fact: tuple[int, int, Used], age_s: int | None) -> None:
        """Known, expired, never heard of, or settled before."""
        actual, counts, used = fact
        reply = self.scripts.settle(
            *(name, *ROUTE),
            now_ms=self.now_ms,
            actual=actual,
            counts_request=counts,
            age_s=age_s,
            usage=used.words(),
        )
        assert (reply[0] == 2) == (name in self.done)
        if name not in self.done:
            self.model.add(used, actual=actual, counts_request=counts)
        self.done.add(name)

    @rule(
        names=st.lists(st.sampled_from(IDS), min_size=1, max_size=8),
        facts=st.lists(settlements(), min_size=8, max_size=8),
    )
    def settle_many(self, names: list[str], facts: list[tuple[int, int, Used]]) -> None:
        """Those of one target; what is left alone is not counted."""
        pairs = list(zip(names, facts, strict=False))
        ended = [(name, actual, counts, 0) for name, (actual, counts, _) in pairs]
        usage = [used.words() for _, (_, _, used) in pairs]
        reply = self.scripts.settle_many(ended, *ROUTE, now_ms=self.now_ms, usage=usage)
        for (name, (actual, counts, used)), is_done in zip(pairs, reply[1:], strict=False):
            if is_done:
                assert name not in self.done
                self.model.add(used, actual=actual, counts_request=counts)
                self.done.add(name)

    @rule(window=st.sampled_from(ROUTE))
    def reap(self, window: str) -> None:
        """The worker may be slow only: what it settles still counts."""
        self.scripts.reap("w1", window=window, now_ms=self.now_ms)

    @rule(passed_ms=st.sampled_from([1, 900, 2_000, TTL_MS]))
    def wait(self, passed_ms: int) -> None:
        if self.now_ms < NOW_MS + 300_000:
            self.now_ms += passed_ms

    @invariant()
    def usage_is_that_of_the_model(self) -> None:
        assert texts(self.redis, USED) == self.model.fields()


class BookMachine(ScriptMachine):
    """What workers tell of usage beside their settlements, in any order and repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.savings, self.index = SavingsModel(), IndexModel()
        self.save_script, self.note_script = (
            self.redis.register_script(self.loaded[f"usage/{name}"].text)
            for name in ("save", "note")
        )

    @rule(
        worker=st.sampled_from(["w1", "w2"]),
        number=st.integers(1, 6),
        rows=st.lists(
            st.tuples(st.sampled_from(["app p%2Fm", "app q%2Fm"]), *[st.integers(0, 10**9)] * 3),
            min_size=1,
            max_size=4,
        ),
    )
    def save(self, worker: str, number: int, rows: list[tuple[str, int, int, int]]) -> None:
        keys = [KEYS.usage_told(worker), KEYS.usage_saved(20261118)]
        words = [word for row in rows for word in row]
        reply = self.save_script(keys=keys, args=[number, *words])
        assert reply == [self.savings.save(worker, number, rows), "ok"]

    @rule(
        step_ms=st.sampled_from([-1000, 0, 1, KEPT_MS // 2, KEPT_MS]),
        places=st.sets(st.sampled_from(["{p.a}:k", "{p.b}:k", "{p.b}:l"]), min_size=1),
    )
    def note(self, step_ms: int, places: set[str]) -> None:
        self.now_ms += step_ms
        args: list[str | int] = [*sorted(places), self.now_ms]
        assert self.note_script(keys=[KEYS.usage_index()], args=args) == [1, "ok"]
        self.index.note(places, self.now_ms)

    @invariant()
    def both_are_those_of_the_models(self) -> None:
        assert texts(self.redis, KEYS.usage_saved(20261118)) == self.savings.fields()
        assert scores(self.redis, KEYS.usage_index()) == self.index.noted_ms


def test_scripts_and_models_agree_on_what_is_told_beside(redis_7: RedisServer) -> None:
    run_machine(BookMachine, redis_7, histories=10, steps=15)


def test_scripts_and_model_agree_on_usage(redis_7: RedisServer) -> None:
    run_machine(UsageMachine, redis_7, histories=15, steps=25)
