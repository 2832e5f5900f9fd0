import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.address import Server
from cluster_gw.store.lane import Argument, Reply
from cluster_gw.store.slots import SLOTS, Range, read_view, slot_of

ASKED = Server("seed", 1)
WHOLE = [0, SLOTS - 1, [b"a", 7, b"id"]]


@pytest.mark.parametrize(
    ("args", "like"),
    [
        (("GET", "x{tag}y"), b"tag"),
        (("HSET", b"{tag}", "f", "v"), b"tag"),
        (("EVALSHA", "0" * 40, 2, "{tag}a", "{tag}b", "arg"), b"tag"),
        (("EVAL", "return 1", "1", "{tag}"), b"tag"),
    ],
)
def test_a_call_belongs_to_the_slot_of_its_first_key(
    args: tuple[Argument, ...], like: bytes
) -> None:
    assert slot_of(args) == slot_of(("GET", like))


@pytest.mark.parametrize(
    "args", [("PING",), ("SCRIPT", "LOAD", "x"), ("EVALSHA", "0" * 40, 0, "arg"), ("TIME",)]
)
def test_a_call_without_a_key_may_go_anywhere(args: tuple[Argument, ...]) -> None:
    assert slot_of(args) is None


def test_known_slots_are_those_of_the_protocol() -> None:
    assert slot_of(("GET", "123456789")) == 0x31C3  # the check value of the CRC
    assert slot_of(("GET", "{}x")) != slot_of(("GET", "{}y"))


def test_a_view_is_ordered_and_names_masters_only() -> None:
    reply = [
        [8000, SLOTS - 1, [b"b", 2, b"id"], [b"replica", 3, b"id"]],
        [0, 7999, [b"", 1, b"id"]],
    ]

    assert read_view(reply, ASKED) == (
        Range(0, 7999, Server("seed", 1)),
        Range(8000, SLOTS - 1, Server("b", 2)),
    )


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"OK",
        7,
        [],
        [[0]],
        [[0, SLOTS, [b"a", 7]]],
        [[5, 4, [b"a", 7]]],
        [[0, 1, [b"a"]]],
        [[0, 1, [b"a", b"x"]]],
        [[0, 1, [b"\xff", 7]]],
        [WHOLE, None],
    ],
)
def test_a_malformed_view_is_none(reply: Reply) -> None:
    assert read_view(reply, ASKED) is None


NESTED = st.recursive(
    st.none() | st.integers() | st.binary(max_size=5), lambda inner: st.lists(inner, max_size=4)
)


@given(reply=NESTED)
def test_no_reply_whatever_raises(reply: Reply) -> None:
    view = read_view(reply, ASKED)

    assert view is None or all(one.last < SLOTS for one in view)
