import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.lane import pack
from cluster_gw.store.packing import ZERO, bulk, four, seven

WORDS = st.lists(st.text(max_size=12) | st.integers(), min_size=1, max_size=6)


@given(words=WORDS)
def test_arguments_are_packed_as_the_protocol_wants_them(words: list[str | int]) -> None:
    assert b"*%d\r\n%b" % (len(words), bulk(*words)) == pack([str(word) for word in words])


def test_zero_is_packed_beforehand() -> None:
    assert bulk(0) == ZERO


ASCII = st.text(st.characters(max_codepoint=127), max_size=12)


@given(words=st.lists(ASCII, min_size=7, max_size=7))
def test_the_quick_packers_say_the_same(words: list[str]) -> None:
    assert seven(*words) == bulk(*words)
    assert four(*words[:4]) == bulk(*words[:4])


def test_a_word_whose_length_in_bytes_is_another_is_not_packed_quickly() -> None:
    with pytest.raises(UnicodeEncodeError):
        four("id", "é", "1", "2")
    with pytest.raises(UnicodeEncodeError):
        seven("id", "1", "2", "3", "4", "ü", "5")
