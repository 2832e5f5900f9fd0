"""A listener that misses what it can read is noticed, and nobody else is suspected."""

import pytest

from cluster_gw.store.hearing import Hearing

NOW_MS = 1_795_000_000_000


@pytest.fixture
def hearing() -> Hearing:
    hearing = Hearing()
    hearing.begin()
    assert not hearing.is_deaf(0, NOW_MS)
    return hearing


def test_a_version_that_was_never_heard_of_shows_that_nothing_arrives(hearing: Hearing) -> None:
    hearing.tell(NOW_MS + 5000)

    assert hearing.is_deaf(NOW_MS + 10_000, NOW_MS + 12_000)


def test_a_version_that_was_heard_of_is_no_sign(hearing: Hearing) -> None:
    hearing.tell(NOW_MS + 10_000)

    assert not hearing.is_deaf(NOW_MS + 10_000, NOW_MS + 20_000)


def test_a_version_that_may_still_be_on_its_way_is_no_sign(hearing: Hearing) -> None:
    assert not hearing.is_deaf(NOW_MS + 10_000, NOW_MS + 11_000)


def test_a_version_from_before_the_subscription_is_no_sign(hearing: Hearing) -> None:
    assert not hearing.is_deaf(NOW_MS + 100, NOW_MS + 60_000)


def test_it_is_told_once_a_minute(hearing: Hearing) -> None:
    assert hearing.is_deaf(NOW_MS + 10_000, NOW_MS + 12_000)
    assert not hearing.is_deaf(NOW_MS + 15_000, NOW_MS + 17_000)
    assert hearing.is_deaf(NOW_MS + 70_000, NOW_MS + 73_000)


def test_a_new_subscription_begins_anew(hearing: Hearing) -> None:
    hearing.begin()

    assert not hearing.is_deaf(NOW_MS + 10_000, NOW_MS + 12_000)
