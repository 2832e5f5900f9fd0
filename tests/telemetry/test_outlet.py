"""A queue with an end, and one thread: nothing waits, and nothing is lost uncounted."""

import threading
from collections.abc import Iterator

import pytest

from cluster_gw.canonical.events import Usage
from cluster_gw.telemetry.outlet import NO_ROOM, Outlet
from cluster_gw.telemetry.spans import CallSpan, RequestSpan
from cluster_gw.telemetry.trace_context import TraceContext
from tests.fakes.waiting import until


def request(number: int, *, flags: int = 1) -> RequestSpan:
    call = CallSpan(
        span_id="b" * 16, attempt=1, operation="chat", provider="a", model="m", route="a/m",
        key="a1", url="http://h/v1", start_ns=0, end_ns=1, is_stream=False, usage=Usage(),
    )  # fmt: skip
    return RequestSpan(
        context=TraceContext(trace_id="a" * 32, span_id=f"{number + 1:016x}", flags=flags),
        is_inner=False, surface="chat", request_id=str(number), client="c", combo="auto",
        strategy="s", is_stream=False, status=200, code=None, model="m", start_ns=0, end_ns=1,
        first_byte_s=None, redis_s=0.0, upstream_s=0.0, waiting_s=0.0, tokens=0,
        tokens_source="none", cache=None, is_degraded=False, calls=(call,),
    )  # fmt: skip


class Slow:
    """Takes batches once it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.taken: list[RequestSpan] = []
        self.answer: tuple[int, str] | Exception = (0, "")
        self.is_closed = False

    def export(self, batch: list[RequestSpan]) -> tuple[int, str]:
        self.may.wait(30)
        self.taken += batch
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def take_trouble(self) -> tuple[int, str]:
        return 0, ""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def slow() -> Iterator[Slow]:
    exporter = Slow()
    yield exporter
    exporter.may.set()


def test_what_finds_no_room_is_counted_and_the_rest_comes_in_order(slow: Slow) -> None:
    outlet = Outlet(slow, most=100)
    for number in range(300):
        outlet.offer(request(number))
    assert outlet.cause == NO_ROOM
    slow.may.set()
    outlet.stop(30)

    taken = [int(one.request_id) for one in slow.taken]
    assert taken == sorted(taken)
    assert outlet.exported == 2 * len(taken)
    assert outlet.exported + outlet.dropped == 600
    assert slow.is_closed


def test_a_collector_that_never_answers_holds_nobody_up_at_the_end(slow: Slow) -> None:
    outlet = Outlet(slow, most=1000)
    for number in range(200):
        outlet.offer(request(number))
    until(lambda: len(outlet._waiting) < 200)
    outlet.stop(0.01)

    assert not slow.is_closed
    assert outlet.dropped == 2 * len(outlet._waiting) > 0


@pytest.mark.parametrize(
    ("answer", "dropped", "cause"),
    [((3, "rejected"), 3, "rejected"), (ValueError("secret"), 10, "ValueError")],
)
def test_what_is_not_taken_is_counted(
    answer: tuple[int, str] | Exception, dropped: int, cause: str, slow: Slow
) -> None:
    slow.answer = answer
    outlet = Outlet(slow)
    for number in range(5):
        outlet.offer(request(number))
    slow.may.set()
    outlet.stop(30)

    assert (outlet.dropped, outlet.cause) == (dropped, cause)
    assert outlet.exported == 10 - dropped


def test_what_is_not_sampled_is_no_loss(slow: Slow) -> None:
    outlet = Outlet(slow, most=0)
    outlet.offer(request(1, flags=0))
    slow.may.set()
    outlet.stop(30)

    assert outlet.dropped == 0
