"""Lines of one trouble are so many a second; what is left out is counted and told."""

import io

import msgspec
import pytest

from cluster_gw.telemetry.events import KEY_REJECTED, LOG_THINNED, REQUEST_CRASHED, WORKER_DRAINING
from cluster_gw.telemetry.line_limit import MOST_TROUBLES, REST_S, LineLimit
from cluster_gw.telemetry.log import Log


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limit_of(clock: Clock, per_s: float = 2.0, burst: int = 3) -> LineLimit:
    limit = LineLimit(clock)
    limit.fit(per_s, burst)
    return limit


def test_a_burst_passes_then_so_many_a_second_and_the_next_line_tells_the_rest(
    clock: Clock,
) -> None:
    limit = limit_of(clock)

    at_once = [limit.ask("e", "r") for _ in range(10)]
    clock.now_s += 0.5
    later = [limit.ask("e", "r") for _ in range(3)]
    clock.now_s += 60.0
    rested = [limit.ask("e", "r") for _ in range(5)]

    assert at_once == [0, 0, 0] + [None] * 7
    assert later == [7, None, None]
    assert rested == [2, 0, 0, None, None]
    assert limit.left_out == {"e": 11}


@pytest.mark.parametrize(("per_s", "burst"), [(0.01, 1), (10.0, 100), (333.3, 7), (1e5, 1)])
def test_no_second_has_more_lines_than_burst_and_rate_allow(
    clock: Clock, per_s: float, burst: int
) -> None:
    limit, passed = limit_of(clock, per_s, burst), 0

    for _ in range(2000):
        passed += limit.ask("e") is not None
        clock.now_s += 0.001

    assert burst <= passed <= min(2000, burst + 2 * per_s + 1)


def test_another_event_or_reason_is_another_trouble(clock: Clock) -> None:
    limit = limit_of(clock, burst=1)

    answers = [limit.ask(*trouble) for trouble in (("a",), ("a", "x"), ("a", "y"), ("b", "x"))]

    assert answers == [0] * 4
    assert limit.ask("a", "x") is None


def test_a_trouble_that_is_over_is_told_once_and_forgotten(clock: Clock) -> None:
    limit = limit_of(clock, burst=1)
    for _ in range(5):
        limit.ask("e", "groq", "timeout")

    clock.now_s += REST_S - 0.1
    early = list(limit.take_over())
    clock.now_s += 0.1
    told = list(limit.take_over())

    assert early == []
    assert told == [("e", "groq timeout", 4)]
    assert list(limit.take_over()) == []
    assert limit.ask("e", "groq", "timeout") == 0


def test_troubles_without_end_take_bounded_room_and_lines(clock: Clock) -> None:
    limit = limit_of(clock, burst=1)

    passed = sum(limit.ask("e", str(number)) is not None for number in range(3 * MOST_TROUBLES))

    assert passed == MOST_TROUBLES + 1
    assert limit.left_out["e"] == 2 * MOST_TROUBLES - 1
    assert limit.ask("another") == 0, "another event is not among them"
    clock.now_s += REST_S
    assert sum(lines for *_, lines in limit.take_over()) == 2 * MOST_TROUBLES - 1
    assert limit.ask("e", "new") == 0


@pytest.mark.parametrize(("before", "after"), [((0.01, 2), (1000.0, 4)), ((1000.0, 4), (0.01, 2))])
def test_another_limit_holds_at_once_and_the_same_changes_nothing(
    clock: Clock, before: tuple[float, int], after: tuple[float, int]
) -> None:
    limit = limit_of(clock, *before)
    for _ in range(9):
        limit.ask("e")

    limit.fit(*before)
    same = limit.ask("e")
    limit.fit(*after)
    passed = [limit.ask("e") for _ in range(9)]

    assert same is None
    assert passed == [10 - before[1]] + [0] * (after[1] - 1) + [None] * (9 - after[1])


def lines(stream: io.BytesIO) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]


def test_warnings_and_errors_of_a_log_are_limited_and_states_are_not(clock: Clock) -> None:
    stream = io.BytesIO()
    log = Log(stream, monotonic_s=clock)
    log.limit.fit(1.0, 2)

    for number in range(6):
        log.event(REQUEST_CRASHED, request_id=f"r{number}", exception="KeyError")
        log.event(KEY_REJECTED, provider="p", key=f"k{number}")
        log.event(WORKER_DRAINING, worker="w", in_flight=number)
    clock.now_s += 1.0
    log.event(REQUEST_CRASHED, request_id="r6", exception="KeyError")

    written = lines(stream)
    crashes = [line for line in written if line["event"] == REQUEST_CRASHED.name]
    assert [line["request_id"] for line in crashes] == ["r0", "r1", "r6"]
    assert [line.get("suppressed") for line in crashes] == [None, None, 4]
    assert len([line for line in written if line["event"] == KEY_REJECTED.name]) == 6
    assert len([line for line in written if line["event"] == WORKER_DRAINING.name]) == 6


@pytest.mark.parametrize("is_end", [False, True])
def test_what_was_left_out_is_told_when_a_trouble_is_over_or_the_log_ends(
    clock: Clock, is_end: bool
) -> None:
    stream = io.BytesIO()
    log = Log(stream, monotonic_s=clock)
    log.limit.fit(1.0, 1)
    for _ in range(3):
        log.event(REQUEST_CRASHED, request_id="r", exception="KeyError")

    if is_end:
        log.close()
    else:
        clock.now_s += REST_S
        log.tidy()

    told = lines(stream)[-1]
    assert told["event"] == LOG_THINNED.name
    assert (told["of"], told["reason"]) == (REQUEST_CRASHED.name, "KeyError")
    assert told["suppressed"] == 2
