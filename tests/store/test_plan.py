from cluster_gw.core.limits.windows import ROLLING, CalendarDay, Limits, calendar_day
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import pack
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.packing import bulk
from cluster_gw.store.plan import Days, Plans
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId

ZONE = "America/Los_Angeles"
NOW_MS = 1_795_000_000_000


FREE = Limits()


def target(key_limits: Limits, account_limits: Limits = FREE) -> TargetLimits:
    return TargetLimits(
        provider="p",
        account="a",
        key=KeyId("k"),
        model="m",
        day_reset=ROLLING,
        model_limits=Limits(rpm=1, tpd=0),
        key_limits=key_limits,
        account_limits=account_limits,
    )


def test_key_without_limits_needs_no_window_of_its_own(keys: Keys, scripts: Scripts) -> None:
    plan = Plans(keys, scripts).of(target(Limits()))

    assert plan.keys == (
        *("gw1:lz:{p.a}", "gw1:h:{p.a}:k:m", "gw1:h:{p.a}:k:_all"),
        "gw1:w:{p.a}:k:m",
    )
    assert plan.limits == (1, -1, -1, 0, -1)
    assert plan.days == (-1, 0)
    assert (plan.scope(1), plan.scope(2), plan.scope(0)) == ("model", "key", "none")
    assert plan.health[1] == plan.keys[2]


def test_key_with_limits_adds_its_window(keys: Keys, scripts: Scripts) -> None:
    plan = Plans(keys, scripts).of(target(Limits(concurrency=4)))

    assert plan.windows == ("gw1:w:{p.a}:k:m", "gw1:w:{p.a}:k:_all")
    assert plan.keys[4:] == ("gw1:w:{p.a}:k:_all",)
    assert plan.limits[5:] == (-1, -1, -1, -1, 4)
    assert plan.days == (-1, 0, -1, -1)
    assert (plan.scope(2), plan.scope(3)) == ("key", "key")


def test_account_with_limits_adds_its_window_behind_those_of_the_key(
    keys: Keys, scripts: Scripts
) -> None:
    plans = Plans(keys, scripts)
    alone = plans.of(target(Limits(), Limits(tpd=9)))
    beside = plans.of(target(Limits(rpm=1), Limits(tpd=9)))

    assert alone.windows == ("gw1:w:{p.a}:k:m", "gw1:w:{p.a}:_acct")
    assert (alone.scope(2), alone.scope(3)) == ("account", "key")
    assert beside.windows == (*beside.windows[:2], "gw1:w:{p.a}:_acct")
    assert (beside.scope(2), beside.scope(3), beside.scope(4)) == ("key", "account", "key")
    assert beside.days == (-1, 0, -1, -1, -1, 9)


def test_calls_of_a_plan_are_what_the_client_would_pack(keys: Keys, scripts: Scripts) -> None:
    plan = Plans(keys, scripts).of(target(Limits(rpm=7)))
    name, sha = "EVALSHA", scripts["admission/settle"].sha

    args = ("a.1", 70, 1, "m5", "success 0 0", "app m", "30", 0, 0, 0)
    settled = (*plan.keys, "gw1:u:{p.a}:k:0")

    assert plan.settle.head + bulk(*args) == pack((name, sha, len(settled), *settled, *args))
    assert plan.settle.route[3] == plan.keys[0]
    assert plan.reserve.tail == bulk(*plan.limits)
    assert plan.settle.tail == b""


def test_plans_of_another_day_count_use_there(keys: Keys, scripts: Scripts) -> None:
    plans = Plans(keys, scripts)
    plans.turn_to(20261130)
    before = plans.of(target(FREE))
    plans.turn_to(20261130)
    assert plans.of(target(FREE)) is before

    plans.turn_to(20261201)

    assert before.settle.route[-1] == "gw1:u:{p.a}:k:20261130"
    assert plans.of(target(FREE)).settle.route[-1] == "gw1:u:{p.a}:k:20261201"
    assert plans.used == {"{p.a}:k"}


def test_equal_targets_share_a_plan(keys: Keys, scripts: Scripts) -> None:
    plans = Plans(keys, scripts)

    assert plans.of(target(Limits())) is plans.of(target(Limits()))


def test_day_is_worked_out_once_until_it_ends() -> None:
    days = Days()
    today = days.of(NOW_MS, ZONE)

    assert days.of(today.end_ms - 1, ZONE) is today
    assert days.of(today.end_ms, ZONE) == calendar_day(today.end_ms, ZONE)


def test_day_is_worked_out_anew_when_the_clock_stepped_back() -> None:
    days = Days()
    today = days.of(NOW_MS, ZONE)

    assert days.of(NOW_MS - 86_400_000, ZONE).id < today.id


def test_day_is_packed_as_the_scripts_take_it() -> None:
    days = Days()
    day = days.of(NOW_MS, ZONE)

    assert days.packed(NOW_MS, ZONE) == bulk(day.id, day.end_ms)
    assert days.packed(day.end_ms, ZONE) != bulk(day.id, day.end_ms)


def test_rolling_day_never_ends() -> None:
    days = Days()

    assert days.of(NOW_MS, ROLLING) is days.of(NOW_MS + 10**9, ROLLING)
    assert days.of(NOW_MS, ROLLING) == CalendarDay(id=0, end_ms=0)
