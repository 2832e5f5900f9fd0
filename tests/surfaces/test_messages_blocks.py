"""When the arguments of a call are whole, told from pieces."""

from hypothesis import example, given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.surfaces.messages_answer import object_of
from cluster_gw.surfaces.messages_blocks import CALL, MOST_CALLS, BlockWriter, Piece
from cluster_gw.wire.json_codec import write
from tests.fuzz.endless import growth_bytes

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


def test_of_very_many_calls_each_is_told_once_and_what_follows_a_whole_one_is_nothing() -> None:
    writer = BlockWriter("m")
    count = 3 * MOST_CALLS
    frames = writer.take(called(0, '{"a":'))  # not whole while all others pass

    for number in range(1, count):
        frames += writer.take(called(number, "{}"))
    frames += writer.take(called(0, "1}"))
    for number in (0, 1, MOST_CALLS, count - 2):
        assert writer.take(called(number, "{}", name=None)) == b""
    frames += writer.end()

    assert frames.count(b"content_block_start") == 2 * count  # the event's name and its type
    assert frames.count(b'"name":"f"') == count


def test_what_is_remembered_of_calls_that_have_ended_has_a_bound() -> None:
    writer = BlockWriter("m")

    grown = growth_bytes(lambda number: writer.take(called(number, "{}")), 24 * MOST_CALLS)

    assert grown < 256 * MOST_CALLS  # bytes: those of the second half alone would take 3.9 MB


def called(index: int, arguments: str, name: str | None = "f") -> StreamEvent:
    call = ToolCallDelta(index=index, id=f"c{index}", name=name, arguments=arguments)
    return StreamEvent(raw=b"", tool_calls=(call,))
