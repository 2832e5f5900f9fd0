"""`reserve` without what it writes: after any history it answers as itself, and leaves no trace."""

from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.gates import without_writes
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, WHOLE, Admission, scores, texts

TTL_MS: Final = 30_000
LIMITS: Final = Limits(rpm=3, tpm=900, rpd=20, tpd=4000, concurrency=2)
CAPPED: Final = (Caps(rpd=12, tpd=3000), 1000)
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle"]),
        st.sampled_from([0, 1, 500, 7_000, 40_000, 3_700_000]),
        st.integers(0, 500),
    ),
    min_size=1,
    max_size=12,
)


class Unwritten(Admission):
    """The same calls of the script that writes nothing."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        super().__init__(redis, scripts)
        self._reserve = redis.register_script(without_writes(scripts["admission/reserve"]).text)


def contents(redis: Redis) -> dict[str, Any]:
    """Every key with what is in it, and until when it lives."""
    found: dict[str, Any] = {}
    for name in map(str, redis.keys("*")):
        held = texts(redis, name) if redis.type(name) == "hash" else scores(redis, name)
        found[name] = (held, redis.pexpiretime(name))
    return found


def test_answer_is_that_of_an_admission_and_nothing_is_changed(
    redis: Redis, scripts: Scripts
) -> None:
    real, unwritten = Admission(redis, scripts), Unwritten(redis, scripts)

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS, has_caps=st.booleans())
    def hold(steps: list[tuple[str, int, int]], has_caps: bool) -> None:
        redis.flushdb()
        now_ms, open_leases, expiries = NOW_MS, list[tuple[str, int]](), list[int]()
        caps = CAPPED if has_caps else None
        for number, (what, passed_ms, tokens) in enumerate(steps):
            now_ms += passed_ms
            if what == "settle" and open_leases:
                lease, second = open_leases.pop(0)
                real.settle(
                    lease,
                    *(MODEL, WHOLE),
                    now_ms=now_ms,
                    actual=tokens,
                    second=second,
                    weight=1000 if has_caps else None,
                )
                continue
            bounds = ((MODEL, LIMITS), (WHOLE, Limits(rpm=5)))
            asked: dict[str, Any] = {"now_ms": now_ms, "estimate": tokens, "ttl_ms": TTL_MS}
            before = contents(redis)

            told = unwritten.reserve(f"l{number}", *bounds, caps=caps, **asked)

            assert contents(redis) == before
            reply = real.reserve(f"l{number}", *bounds, caps=caps, **asked)
            assert told[:3] == reply[:3]
            if reply[0] == 1:
                # What nobody took back yet counts: as its estimate, not as the part that stays.
                has_expired = any(now_ms >= until_ms for until_ms in expiries)
                assert has_expired or told == reply
                assert (told[:3], told[4:]) == (reply[:3], reply[4:])
                expiries.append(now_ms + TTL_MS)
                open_leases.append((f"l{number}", reply[4]))
            else:  # the wait may be short by what has expired and nobody has taken back
                assert 0 <= told[3] <= reply[3]

    hold()
