from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.lane import pack
from cluster_gw.store.packing import ZERO, bulk

WORDS = st.lists(st.text(max_size=12) | st.integers(), min_size=1, max_size=6)


@given(words=WORDS)
def test_arguments_are_packed_as_the_protocol_wants_them(words: list[str | int]) -> None:
    assert b"*%d\r\n%b" % (len(words), bulk(*words)) == pack([str(word) for word in words])


def test_zero_is_packed_beforehand() -> None:
    assert bulk(0) == ZERO
