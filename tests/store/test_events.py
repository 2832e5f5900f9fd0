"""What scripts tell is read as values, and what is not known is left alone."""

import pytest

from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.events import DrainEvent, HealthEvent, ModelEvent, SnapshotEvent, read_event


def test_a_bar_is_told_with_its_gate_and_how_long_it_lasts() -> None:
    assert read_event(b"health gw1:h:{p.a}:k:m cooldown 90000 1795000000000") == HealthEvent(
        record="gw1:h:{p.a}:k:m", gate=Gate.COOLDOWN, wait_ms=90_000, at_ms=1_795_000_000_000
    )


def test_the_end_of_a_bar_is_told_without_a_gate() -> None:
    event = read_event(b"health gw1:h:{p.a}:k:m well 0 1795000000000")

    assert isinstance(event, HealthEvent)
    assert event.gate is None


def test_a_new_snapshot_is_told_with_its_version() -> None:
    assert read_event(b"snapshot 17 1795000000000") == SnapshotEvent(
        version=17, at_ms=1_795_000_000_000
    )


def test_a_drain_is_told_with_its_time() -> None:
    assert read_event(b"drain 1795000000000") == DrainEvent(at_ms=1_795_000_000_000)


def test_a_change_of_a_model_is_told_with_all_that_is_known() -> None:
    event = read_event(b"model gw1:m:{p}:m 2.5 1795000000000 2 1795000600000 1795000000001")

    assert event == ModelEvent(
        record="gw1:m:{p}:m",
        standing=ModelStanding(
            seen_ms=1_795_000_000_001,
            points=2.5,
            since_ms=1_795_000_000_000,
            failures=2,
            benched_until_ms=1_795_000_600_000,
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"health", b"health a cooldown 1", b"health a cooldown 1 2 3", b"snapshot x 1"),
        *(b"health a frozen 1 2", b"health a cooldown 1.5 2", b"health \xff cooldown 1 2"),
        *(b"weather sunny", b"model a x 1 2 3 4", b"health  cooldown 1 2 3 4"),
    ],
)
def test_what_this_version_does_not_know_is_no_event(text: bytes) -> None:
    assert read_event(text) is None
