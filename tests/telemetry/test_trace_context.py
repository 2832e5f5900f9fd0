"""Headers of W3C Trace Context: what is taken up, and what is as if it were not there."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.telemetry.trace_context import TraceContext, continue_trace, new_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"
MANY = ",".join(f"k{n}=v" for n in range(32))


def taken(*headers: tuple[str, str], sample: float = 1.0) -> TraceContext:
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return continue_trace(pairs, os.urandom, sample)


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        (GOOD, 1),
        (f" {GOOD}\t", 1),
        (f"00-{TRACE}-{SPAN}-00", 0),
        (f"00-{TRACE}-{SPAN}-03", 3),
        (f"00-{TRACE}-{SPAN}-ff", 3),
        (f"01-{TRACE}-{SPAN}-01", 1),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", 1),
    ],
)
def test_a_parent_is_taken_up(line: str, flags: int) -> None:
    context = taken(("traceparent", line), sample=0.0)

    assert (context.trace_id, context.parent_id, context.flags) == (TRACE, SPAN, flags)
    assert context.span_id not in {SPAN, "0" * 16}
    assert context.parent_line("b" * 16) == f"00-{TRACE}-{'b' * 16}-{flags:02x}"


@pytest.mark.parametrize(
    "line",
    [
        "",
        GOOD.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"{GOOD}-more",
        f"{GOOD}x",
        f"cc-{TRACE}-{SPAN}-01x",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"{GOOD}\n",
    ],
)
def test_what_is_no_parent_begins_a_trace_without_its_list(line: str) -> None:
    context = taken(("traceparent", line), ("tracestate", "a=1"))

    assert context.trace_id != TRACE
    assert (context.parent_id, context.state) == ("", "")


def test_two_parents_are_none() -> None:
    assert taken(("traceparent", GOOD), ("traceparent", GOOD)).parent_id == ""


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (["a=1"], "a=1"),
        (["a=1", "b@c=2"], "a=1,b@c=2"),
        ([" a=1 ,, b=2\t"], "a=1,b=2"),
        (["a=x y"], "a=x y"),
        ([MANY], MANY),
        ([MANY + ",more=1"], ""),
        (["A=1"], ""),
        (["a"], ""),
        (["a=1\r\nx-key: b"], ""),
        (["a=\xfc"], ""),
        ([f"a={'x' * 256},b={'y' * 256}"], ""),
    ],
)
def test_a_list_of_vendors_is_passed_on_where_it_is_one(lines: list[str], state: str) -> None:
    headers = [("tracestate", line) for line in lines]

    assert taken(("traceparent", GOOD), *headers).state == state


def test_of_traces_that_begin_here_a_part_is_chosen() -> None:
    chosen = [taken(sample=0.25).is_sampled for _ in range(400)]

    assert 40 < sum(chosen) < 180  # 100, give or take nine times what is usual
    assert all(taken(sample=1.0).is_sampled for _ in range(20))
    assert not any(taken(sample=0.0).is_sampled for _ in range(20))


def test_an_id_is_never_all_zeros() -> None:
    drawn = iter([bytes(8), bytes(8), b"\1" * 8])

    assert new_id(lambda count: next(drawn), 8) == "01" * 8


@given(st.lists(st.tuples(st.sampled_from([b"traceparent", b"tracestate", b"x"]), st.binary())))
def test_no_header_breaks_a_request(headers: list[tuple[bytes, bytes]]) -> None:
    context = continue_trace(headers, os.urandom, 0.5)

    assert len(context.trace_id) == 32
    assert context.state.isprintable()
