from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.upstream.head import OWNED_HEADERS, constant_head, origin_head, request_head

ORIGIN = origin_head("POST", "/v1/x", "host")


def head_of(headers: list[tuple[str, str]], size: int) -> bytes | None:
    constant = constant_head(ORIGIN, headers)
    return None if constant is None else request_head(constant, size)


NAMES = st.text(alphabet="abcXYZ-019", min_size=1)
VALUES = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.integers(0, 10**9))
def test_every_sendable_header_is_one_line(headers: list[tuple[str, str]], size: int) -> None:
    head = head_of(headers, size)

    assert head is not None
    lines = head.decode().split("\r\n")
    assert head.count(b"\n") == head.count(b"\r") == len(lines) - 1
    assert lines[-3:] == [f"content-length: {size}", "", ""]
    kept = [pair for pair in headers if pair[0].lower() not in OWNED_HEADERS]
    assert all(f"{name}: {value}" in lines for name, value in kept)


@given(st.text(), st.text())
def test_no_header_adds_a_second_line(name: str, value: str) -> None:
    head = head_of([(name, value)], 0)

    plain = head_of([], 0)
    assert plain is not None
    assert head is None or head.count(b"\n") - plain.count(b"\n") in {0, 1}


def test_callers_user_agent_wins() -> None:
    head = head_of([("User-Agent", "mine")], 0)

    assert head is not None
    assert b"cluster-gw" not in head


def test_framing_headers_of_the_caller_are_dropped() -> None:
    pairs = [(name.title(), "x") for name in sorted(OWNED_HEADERS)]

    assert head_of(pairs, 7) == head_of([], 7)
