"""When the arguments of a call are whole, told from pieces."""

from hypothesis import example, given
from hypothesis import strategies as st

from cluster_gw.surfaces.messages_answer import object_of
from cluster_gw.surfaces.messages_blocks import CALL, Piece
from cluster_gw.wire.json_codec import write

VALUES = st.recursive(
    st.none() | st.integers() | st.text('\\"{}[]a', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{}', max_size=3), inner)
    ),
    max_leaves=6,
)
OBJECTS = st.builds(
    lambda value, tail: write({"a": value}).decode() + tail, VALUES, st.sampled_from(["", " ", "}"])
)
NOISE = st.text('{}[]"\\: a1,', max_size=10)


@given(OBJECTS | NOISE, st.lists(st.integers(0, 60), max_size=6))
@example(text='{"a":"\\\\"}', cuts=[6, 7])
@example(text="{}{}", cuts=[2])
@example(text='{"a":"\\"}', cuts=[7])
def test_pieces_are_whole_when_all_of_them_read_as_an_object(text: str, cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(text)})
    first, *rest = [text[a:b] for a, b in zip(places, [*places[1:], len(text)], strict=True)]
    piece, so_far = Piece(kind=CALL, text=first), first

    assert piece.is_whole is (object_of(so_far) is not None)
    for more in rest:
        piece.keeping().add(more)
        so_far += more
        assert piece.is_whole is (object_of(so_far) is not None)
