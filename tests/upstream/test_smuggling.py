"""An answer is whole, and its connection reused, only where the letter of the RFC agrees."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.upstream.strict_reader import read
from tests.upstream.tape import outcome
from tests.upstream.test_framing import BROKEN_BODY, BROKEN_HEAD, CLOSING, ENDED

GOOD = sorted((ENDED | CLOSING).values())
ANSWERS = st.sampled_from(GOOD) | st.sampled_from(sorted((BROKEN_HEAD | BROKEN_BODY).values()))
PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"\0",
    b":",
    b";",
    b",",
    b"0",
    b"5",
    b"a",
    b"\xff",
    b"\x0b",
    b"0\r\n\r\n",
    b"content-length: 5\r\n",
    b"content-length: 6\r\n",
    b"transfer-encoding: chunked\r\n",
    b"Transfer-Encoding:\tCHUNKED \r\n",
    b"connection: keep-alive\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
]
CHANGES = st.lists(
    st.tuples(st.integers(0, 120), st.integers(0, 3), st.sampled_from([b"", *PIECES])), max_size=3
)


def changed(answer: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Replaces some bytes at each place by a piece."""
    for place, dropped, piece in changes:
        at = place % (len(answer) + 1)
        answer = answer[:at] + piece + answer[at + dropped :]
    return answer


@pytest.mark.parametrize("name", list(ENDED))
def test_the_reader_by_the_letter_reads_good_answers(name: str) -> None:
    reading = read(ENDED[name])

    assert reading is not None
    assert reading.body == outcome([ENDED[name]]).body


@settings(max_examples=1000, deadline=None)
@given(ANSWERS, CHANGES)
@example(ENDED["sized"], [(17, 0, b"transfer-encoding: chunked\r\n")])
def test_answer_ends_where_the_letter_says(
    answer: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    wire = changed(answer, changes)
    got = outcome([wire])

    if got.is_complete:
        reading = read(wire)
        assert reading is not None
        assert (reading.status, reading.body) == (got.status, got.body)
        assert not got.is_reusable or not reading.rest.strip(b"\r\n")
