"""What flaps is logged a few times a minute and counted beyond that."""

from cluster_gw.telemetry.seldom import EACH_S, Seldom


def flap(seldom: Seldom, times: int) -> list[tuple[bool, bool]]:
    return [(seldom.may_tell_loss(), seldom.may_tell_return()) for _ in range(times)]


def test_first_losses_of_a_minute_are_told_with_their_returns_and_the_rest_are_counted() -> None:
    seldom = Seldom(lambda: 7.0, most=2)

    assert flap(seldom, 5) == [(True, True)] * 2 + [(False, False)] * 3
    assert (seldom.take_untold(), seldom.take_untold()) == (3, 0)


def test_losses_are_told_again_when_the_minute_is_over() -> None:
    times = iter([0.0, 10.0, EACH_S - 0.1, EACH_S, EACH_S + 9.9, EACH_S + 10.0])
    seldom = Seldom(lambda: next(times), most=2)

    told = [seldom.may_tell_loss() for _ in range(6)]

    assert told == [True, True, False, True, False, True]


def test_return_from_a_loss_that_was_only_counted_is_not_told() -> None:
    times = iter([0.0, 1.0])
    seldom = Seldom(lambda: next(times), most=1)
    seldom.may_tell_loss()

    assert not seldom.may_tell_loss()
    assert not seldom.may_tell_return()
