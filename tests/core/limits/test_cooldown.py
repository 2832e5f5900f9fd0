from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.cooldown import (
    DAY_MS,
    Cause,
    Climb,
    Cooldown,
    CooldownPolicy,
    Scope,
    Source,
    Terms,
    decide,
    is_local_url,
)

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
CAUSES = st.sampled_from(Cause)
STATED = st.none() | st.integers(-10, 3 * DAY_MS)
TERMS = st.builds(
    Terms,
    stated_ms=STATED,
    is_local=st.booleans(),
    day_zone=st.sampled_from(["rolling", "UTC", "America/Los_Angeles"]),
    has_day_limits=st.booleans(),
)
POLICIES = st.builds(
    CooldownPolicy,
    transient_s=st.sampled_from([0.0, 5.0, 90.0]),
    ceiling_s=st.none() | st.floats(60, 86_400),
)
NOW = st.integers(1_600_000_000_000, 2_000_000_000_000)


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def decided(cause: Cause, now_ms: int = 0, **facts: object) -> Cooldown:
    policy = CooldownPolicy(
        **{name: facts.pop(name) for name in ("transient_s", "ceiling_s") if name in facts}  # type: ignore[arg-type]
    )
    cooldown = decide(cause, Terms(**facts), policy, now_ms)  # type: ignore[arg-type]
    assert cooldown is not None
    return cooldown


@pytest.mark.parametrize(
    ("cause", "scope", "source"),
    [
        (Cause.CREDIT, Scope.KEY, Source.CREDIT),
        (Cause.SUSPENDED, Scope.KEY, Source.TIER),
        (Cause.TIER, Scope.TARGET, Source.TIER),
    ],
)
def test_what_time_does_not_cure_rests_for_a_day(
    cause: Cause, scope: Scope, source: Source
) -> None:
    cooldown = decided(cause, stated_ms=5000, is_local=True)

    assert cooldown == Cooldown(scope=scope, source=source, reason=cause, wait_ms=24 * HOUR_MS)


def test_daily_quota_rests_as_long_as_stated() -> None:
    cooldown = decided(Cause.DAILY_QUOTA, stated_ms=3 * HOUR_MS)

    assert (cooldown.wait_ms, cooldown.until_ms) == (3 * HOUR_MS, 0)
    assert cooldown.source is Source.AUTHORITATIVE


@pytest.mark.parametrize(
    ("zone", "end"),
    [
        ("rolling", "2026-07-02T00:00:00Z"),
        ("UTC", "2026-07-02T00:00:00Z"),
        ("America/Los_Angeles", "2026-07-02T07:00:00Z"),
    ],
)
def test_daily_quota_without_a_time_rests_to_the_end_of_the_providers_day(
    zone: str, end: str
) -> None:
    cooldown = decided(Cause.DAILY_QUOTA, ms("2026-07-01T12:00:00Z"), day_zone=zone)

    assert cooldown.until_ms == ms(end)
    assert cooldown.wait_ms == MINUTE_MS


@pytest.mark.parametrize("stated_ms", [None, 0, 17_000, -5])
def test_daily_quota_rests_a_minute_at_least(stated_ms: int | None) -> None:
    cooldown = decided(Cause.DAILY_QUOTA, ms("2026-07-01T23:59:50Z"), stated_ms=stated_ms)

    assert cooldown.wait_ms == MINUTE_MS


def test_dead_credential_rests_five_minutes_and_is_checked() -> None:
    cooldown = decided(Cause.AUTH)

    assert cooldown == Cooldown(reason=Cause.AUTH, wait_ms=300_000, checks_key=True)


@pytest.mark.parametrize("cause", [Cause.RATE_LIMIT, Cause.MISSING, Cause.TRANSIENT])
def test_local_target_rests_five_seconds_whatever_it_states(cause: Cause) -> None:
    cooldown = decided(cause, is_local=True, stated_ms=HOUR_MS, transient_s=90.0)

    assert cooldown == Cooldown(reason=cause, wait_ms=5000)


@pytest.mark.parametrize(
    ("has_day_limits", "climb", "cap_ms"),
    [(True, Climb.DAY_SPENT, 24 * HOUR_MS), (False, Climb.REPEATED, 10 * MINUTE_MS)],
)
def test_rate_limit_may_climb_the_ladder(
    *, has_day_limits: bool, climb: Climb, cap_ms: int
) -> None:
    cooldown = decided(Cause.RATE_LIMIT, has_day_limits=has_day_limits, stated_ms=7000)

    assert (cooldown.climb, cooldown.step_cap_ms) == (climb, cap_ms)
    assert (cooldown.wait_ms, cooldown.stated_ms) == (90_000, 7000)


def test_missing_model_rests_and_never_climbs() -> None:
    cooldown = decided(Cause.MISSING, has_day_limits=False)

    assert (cooldown.wait_ms, cooldown.climb) == (90_000, Climb.NEVER)


def test_transient_failure_is_left_to_the_breaker_even_with_a_stated_wait() -> None:
    terms = Terms(stated_ms=HOUR_MS)

    assert decide(Cause.TRANSIENT, terms, CooldownPolicy(), 0) is None


def test_transient_failure_rests_when_the_operator_says_so_and_never_climbs() -> None:
    cooldown = decided(Cause.TRANSIENT, transient_s=90.0, stated_ms=HOUR_MS)

    assert (cooldown.wait_ms, cooldown.stated_ms) == (90_000, HOUR_MS)
    assert cooldown.climb is Climb.NEVER


@pytest.mark.parametrize("cause", [Cause.CREDIT, Cause.TIER, Cause.AUTH, Cause.RATE_LIMIT])
def test_ceiling_caps_what_we_chose(cause: Cause) -> None:
    cooldown = decided(cause, ceiling_s=60.0)

    assert cooldown.wait_ms == MINUTE_MS
    assert cooldown.climb is Climb.NEVER or cooldown.step_cap_ms == MINUTE_MS


def test_ceiling_leaves_what_was_stated() -> None:
    daily = decided(Cause.DAILY_QUOTA, stated_ms=HOUR_MS, ceiling_s=60.0)
    limited = decided(Cause.RATE_LIMIT, stated_ms=HOUR_MS, ceiling_s=60.0)

    assert daily.wait_ms == HOUR_MS
    assert limited.stated_ms == HOUR_MS


@given(cause=CAUSES, terms=TERMS, policy=POLICIES, now_ms=NOW)
def test_every_rest_is_positive_bounded_and_says_why(
    cause: Cause, terms: Terms, policy: CooldownPolicy, now_ms: int
) -> None:
    cooldown = decide(cause, terms, policy, now_ms)

    if cooldown is None:
        assert (cause, policy.transient_s) == (Cause.TRANSIENT, 0.0)
        return
    assert cooldown.reason is cause
    assert 0 < cooldown.wait_ms <= DAY_MS
    assert 0 <= cooldown.stated_ms <= DAY_MS
    assert cooldown.until_ms == 0 or now_ms < cooldown.until_ms <= now_ms + 25 * HOUR_MS


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1",
        "http://LOCALHOST.:1/v1",
        "http://127.0.0.2/v1",
        "http://[::1]:8000/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "https://10.1.2.3/v1",
        "http://172.31.255.255/v1",
        "http://192.168.1.5:8080",
        "http://[fd00::1]/v1",
    ],
)
def test_this_machine_and_private_networks_are_local(url: str) -> None:
    assert is_local_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.groq.com/openai/v1",
        "http://172.32.0.1/v1",
        "http://8.8.8.8",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://my-box.local/v1",
        "http://[::1",
        "",
        "/v1",
    ],
)
def test_names_and_public_addresses_are_not_local(url: str) -> None:
    assert not is_local_url(url)
