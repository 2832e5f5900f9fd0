"""The scripts of the cache against plain Python: random histories of leads, and of the index."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.fakes.redis_server import RedisServer
from tests.lua.cache_calls import (
    DIGEST,
    DOOMED,
    KEYS,
    LEASE_MS,
    USED,
    CacheScripts,
    member,
)
from tests.lua.cache_model import DigestModel, IndexModel
from tests.lua.calls import scores
from tests.lua.machine import ScriptMachine, run_machine

STEPS_MS: Final = st.one_of(
    st.integers(0, 1_200),
    st.sampled_from((999, 1_000, 59_999, 60_000, 90_000, 99_000, 100_000)),
    st.sampled_from((-1, -1_500, -700_000)),
)
WORKERS: Final = st.sampled_from(("w1", "w2", "w3"))
FORMS: Final = st.sampled_from(("1", "1", "1", "2"))
PIECES: Final = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4)
NAMES: Final = st.sampled_from("abcdefgh")
CLIENTS: Final = st.sampled_from(("app", "other"))
MODELS: Final = st.sampled_from(("p%2Fm", "p%2Fn"))


def _name(use: tuple[str, int]) -> str:
    return use[0]


class LeadMachine(ScriptMachine):
    """Workers that lead, follow, die, come late and publish."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = CacheScripts(self.redis, self.loaded)
        self.model = DigestModel()
        self.given: list[tuple[str, int]] = []

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(owner=WORKERS, form=FORMS, roll=st.integers(0, 999))
    def look(self, owner: str, form: str, roll: int) -> None:
        before = self.model.lead
        if before is not None and not self.redis.exists(KEYS.cache_lead(DIGEST)):
            before = self.model.lead = None  # the machine took two seconds for what takes none
        wanted = self.model.look(owner, form, roll, LEASE_MS, self.now_ms)
        reply = self.cache.look(owner, form=form, roll=roll, now_ms=self.now_ms)

        assert reply == wanted
        if reply[1] in {"lead", "found"} and reply[-1]:
            self.given.append((owner, reply[-1]))
            assert before is None or reply[-1] > before.token

    @rule(ago=st.integers(-3, -1))
    def renew(self, ago: int) -> None:
        owner, token = self.some(ago)
        wanted = self.model.renew(owner, token, LEASE_MS, self.now_ms)
        assert self.cache.renew(owner, token, now_ms=self.now_ms) == wanted

    @rule(ago=st.integers(-3, -1), back=st.integers(-1, 2), pieces=PIECES)
    def feed(self, ago: int, back: int, pieces: list[str]) -> None:
        owner, token = self.some(ago)
        first = max(0, len(self.model.feeds.get(token, [])) - back)
        wanted = self.model.feed(owner, token, first, pieces, self.now_ms)
        assert self.cache.feed(owner, token, first, *pieces, now_ms=self.now_ms) == wanted

    @rule(ago=st.integers(-3, -1), first=st.integers(0, 4))
    def follow(self, ago: int, first: int) -> None:
        _, token = self.some(ago)
        wanted = self.model.follow(token, first, self.now_ms)
        assert self.cache.follow(token, first, now_ms=self.now_ms) == wanted

    @rule(ago=st.integers(-3, -1), form=FORMS)
    def publish(self, ago: int, form: str) -> None:
        """Often by one that has been late for long."""
        owner, token = self.some(ago)
        body = f"answer of {token}"
        wanted = self.model.publish(owner, token, form, body, self.now_ms)
        assert self.cache.publish(owner, token, body, form=form, now_ms=self.now_ms) == wanted

    @rule(ago=st.integers(-3, -1))
    def give_up(self, ago: int) -> None:
        owner, token = self.some(ago)
        wanted = self.model.give_up(owner, token, "error")
        assert self.cache.give_up(owner, token, "error") == wanted

    @invariant()
    def the_entry_is_the_last_one_that_was_published(self) -> None:
        entry = self.model.entry
        text = None if entry is None else f"{entry[0]} {entry[1]} {entry[2]}\n{entry[3]}"
        assert self.redis.get(KEYS.cached(DIGEST)) == text

    def some(self, ago: int) -> tuple[str, int]:
        return self.given[ago] if len(self.given) >= -ago else ("nobody", 1)


class IndexMachine(ScriptMachine):
    """Entries that come, are used, end, make room and are flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = CacheScripts(self.redis, self.loaded)
        self.model = IndexModel()
        self.most = (4, 1_000)

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(most=st.tuples(st.integers(1, 6), st.integers(300, 2_000)))
    def configure(self, most: tuple[int, int]) -> None:
        self.most = most

    @rule(
        name=NAMES,
        size=st.integers(1, 700),
        ttl_ms=st.sampled_from((1, 1_000, 60_000)),
        whose=st.tuples(CLIENTS, MODELS),
        age_ms=st.sampled_from((None, 0, 1, 5_000)),
    )
    def admit(
        self, name: str, size: int, ttl_ms: int, whose: tuple[str, str], age_ms: int | None
    ) -> None:
        begun_ms = 0 if age_ms is None else self.now_ms - age_ms
        wanted = self.model.admit(name, size, self.most, ttl_ms, whose, begun_ms, self.now_ms)
        reply = self.cache.admit(
            name,
            size,
            most=self.most,
            ttl_ms=ttl_ms,
            whose=whose,
            begun_ms=begun_ms,
            now_ms=self.now_ms,
        )
        assert reply == wanted
        if reply[0]:
            assert len(self.model.stored) <= self.most[0]
            assert self.model.bytes <= self.most[1]

    @rule(written=NAMES, victims=st.lists(NAMES, max_size=3, unique=True))
    def confirm(self, written: str, victims: list[str]) -> None:
        wanted = self.model.confirm(written, victims)
        assert self.cache.confirm(member(written), *victims) == wanted

    @rule(
        used=st.lists(
            st.tuples(NAMES, st.integers(0, 2_000)), max_size=4, unique_by=lambda u: u[0]
        ),
        sums=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    )
    def touch(self, used: list[tuple[str, int]], sums: list[int]) -> None:
        wanted = self.model.touch(used, sums, self.now_ms)
        assert self.cache.touch(*used, sums=sums, now_ms=self.now_ms) == wanted

    @rule(client=st.just("-") | CLIENTS, model=st.just("-") | MODELS)
    def flush(self, client: str, model: str) -> None:
        wanted = self.model.flush(client, model, self.now_ms)
        assert self.cache.flush_all(client, model, self.now_ms) == wanted

    @invariant()
    def everything_is_counted(self) -> None:
        used = {member(name): one.used_ms for name, one in self.model.stored.items()}
        doomed = {member(name): since for name, since in self.model.doomed.items()}
        living = sum(one.ends_ms > self.now_ms for one in self.model.stored.values())
        assert scores(self.redis, USED) == used
        assert scores(self.redis, DOOMED) == doomed
        assert self.cache.stats(self.now_ms) == {
            **self.model.sums,
            "entries": living,
            "doomed": len(doomed),
            "bytes": self.model.bytes,
        }


def test_leads_machine_agrees_with_the_model(redis_7: RedisServer) -> None:
    run_machine(LeadMachine, redis_7, histories=30, steps=40)


def test_index_machine_agrees_with_the_model(redis_7: RedisServer) -> None:
    run_machine(IndexMachine, redis_7, histories=30, steps=30)
