from cluster_gw.core.limits.streak import NO_STREAK, Streak, extend

T0 = 1_795_000_000_000
HOUR_MS = 3_600_000


def test_third_in_a_row_and_all_after_it_are_booked() -> None:
    streak, booked = NO_STREAK, []
    for number in range(5):
        streak, is_booked = extend(streak, T0 + number)
        booked.append(is_booked)

    assert booked == [False, False, True, True, True]


def test_quiet_hour_ends_a_row() -> None:
    streak = Streak(count=2, at_ms=T0)

    assert extend(streak, T0 + HOUR_MS - 1)[1]
    assert extend(streak, T0 + HOUR_MS) == (Streak(count=1, at_ms=T0 + HOUR_MS), False)
