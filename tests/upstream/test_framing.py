"""What an answer is read as must not depend on how the network cut it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.failure import FaultKind
from cluster_gw.upstream.connection import MAX_BARREN_BYTES, MAX_LINE_BYTES
from cluster_gw.upstream.incoming import MAX_FIELD_BYTES, MAX_FIELDS
from tests.upstream.tape import Outcome, Rig, outcome

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
SIZED = OK + b"Content-Length: 5\r\n\r\nhello"
EVENTS = b"7\r\ndata: a\r\n2\r\n\n\n\r\nA\r\ndata: bcd\n\r\n"

ENDED = {
    "sized": SIZED,
    "empty": OK + b"content-length: 0\r\n\r\n",
    "no-reason": b"HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx",
    "blanks": OK + b"content-length: \t 5 \t\r\nx:\r\ny: \r\n\r\nhello",
    "no-content": b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n",
    "not-modified": b"HTTP/1.1 304 X\r\ncontent-length: 9\r\n\r\n",
    "chunked": CHUNKED + EVENTS + b"0\r\n\r\n",
    "no-chunk": CHUNKED + b"0\r\n\r\n",
    "extensions": CHUNKED + b'5;a;b=c;d="e;f"\r\nhello\r\n0;z\r\n\r\n',
    "padded-size": CHUNKED + b"5  \r\nhello\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\nContent-Type: evil\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nlink: a\r\n\r\n" + SIZED,
    "latin-1": OK + b"content-length: 1\r\nx: \xe9\r\n\r\n\xff",
    "old-kept": b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
    "upgrade-offered": OK + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nok",
}
CLOSING = {
    "close": OK + b"connection: x, Close\r\ncontent-length: 5\r\n\r\nhello",
    "old": b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "close-in-trailer": CHUNKED + b"5\r\nhello\r\n0\r\nconnection: close\r\n\r\n",
}
UNTIL_END = {
    "until-end": OK + b"content-type: a/b\r\n\r\nhello",
    "until-end-empty": OK + b"\r\n",
    "old-until-end": b"HTTP/1.0 200 OK\r\n\r\nhello",
}
BROKEN_HEAD = {
    "garbage": b"SSH-2.0-OpenSSH\r\n",
    "length-and-chunked": OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
    "chunked-and-length": OK + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
    "two-lengths": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
    "same-length-twice": OK + b"content-length: 5\r\ncontent-length: 5\r\n\r\n",
    "length-list": OK + b"content-length: 5, 5\r\n\r\n",
    "length-signed": OK + b"content-length: +5\r\n\r\n",
    "length-negative": OK + b"content-length: -5\r\n\r\n",
    "length-empty": OK + b"content-length:\r\n\r\n",
    "length-huge": OK + b"content-length: 99999999999999999999999\r\n\r\n",
    "length-hex": OK + b"content-length: 0x5\r\n\r\n",
    "other-coding": OK + b"transfer-encoding: gzip\r\n\r\n",
    "stacked-coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
    "chunked-inside": OK + b"transfer-encoding: chunked, gzip\r\n\r\n",
    "chunked-twice": OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
    "identity-coding": OK + b"transfer-encoding: identity\r\n\r\n",
    "folded": OK + b"x: a\r\n b\r\ncontent-length: 0\r\n\r\n",
    "indented": OK + b" x: a\r\ncontent-length: 0\r\n\r\n",
    "bare-lf": b"HTTP/1.1 200 OK\ncontent-length: 0\n\n",
    "bare-lf-field": OK + b"x: a\ncontent-length: 0\r\n\r\n",
    "bare-cr": OK + b"x: a\rcontent-length: 0\r\n\r\n",
    "nul": OK + b"x: a\0b\r\n\r\n",
    "control": OK + b"x: a\x01b\r\n\r\n",
    "space-before-colon": OK + b"content-length : 0\r\n\r\n",
    "no-colon": OK + b"content-length\r\n\r\n",
    "no-name": OK + b": a\r\n\r\n",
    "status-short": b"HTTP/1.1 20 OK\r\n\r\n",
    "status-long": b"HTTP/1.1 2000 OK\r\n\r\n",
    "status-below": b"HTTP/1.1 099 OK\r\n\r\n",
    "version": b"HTTP/1.2 200 OK\r\n\r\n",
    "switch": b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "switch-silently": b"HTTP/1.1 101 X\r\n\r\n",
}
BROKEN_BODY = {
    "size-not-hex": CHUNKED + b"zz\r\n",
    "size-prefixed": CHUNKED + b"0x5\r\nhello\r\n",
    "size-negative": CHUNKED + b"-1\r\n",
    "size-empty": CHUNKED + b"\r\n",
    "size-huge": CHUNKED + b"fffffffffffffffff\r\n",
    "bare-lf-size": CHUNKED + b"5\nhello\r\n0\r\n\r\n",
    "bare-lf-extension": CHUNKED + b"5;a\nhello\r\n0\r\n\r\n",
    "chunk-too-long": CHUNKED + b"4\r\nhello\r\n0\r\n\r\n",
    "length-in-trailer": CHUNKED + b"0\r\ncontent-length: 1\r\n\r\n",
}
EVERY = ENDED | CLOSING | UNTIL_END | BROKEN_HEAD | BROKEN_BODY


def all_of(answer: bytes) -> Outcome:
    return outcome([answer], ends=True)


def cases(table: dict[str, bytes]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", table.values(), ids=list(table))


@cases(EVERY)
def test_no_cut_changes_an_answer(answer: bytes) -> None:
    whole = all_of(answer)
    for place in range(1, len(answer)):
        assert outcome([answer[:place], answer[place:]], ends=True) == whole

    assert outcome([answer[i : i + 1] for i in range(len(answer))], ends=True) == whole


@given(st.sampled_from(sorted(EVERY)), st.lists(st.integers(1, 200)))
def test_no_set_of_cuts_changes_an_answer(name: str, places: list[int]) -> None:
    answer = EVERY[name]
    edges = [0, *sorted(place for place in set(places) if place < len(answer)), len(answer)]

    pieces = [answer[start:end] for start, end in pairwise(edges)]

    assert outcome(pieces, ends=True) == all_of(answer)


@cases(ENDED | CLOSING)
def test_answer_ends_without_the_end_of_the_connection(answer: bytes) -> None:
    got = outcome([answer])

    assert got.is_complete
    assert got.fault is None
    assert got.is_reusable == (answer in ENDED.values())


@cases(ENDED | CLOSING)
def test_every_shorter_answer_is_cut_or_disconnected(answer: bytes) -> None:
    for size in range(len(answer)):
        got = all_of(answer[:size])
        kind = FaultKind.CUT if got.status else FaultKind.DISCONNECTED

        assert got.fault is not None
        assert (got.fault.kind, got.is_complete) == (kind, False)
        assert all_of(answer).body.startswith(got.body)


@cases(UNTIL_END)
def test_body_without_a_length_ends_with_the_connection(answer: bytes) -> None:
    assert not outcome([answer]).is_complete
    got = all_of(answer)

    assert (got.is_complete, got.fault, got.is_reusable) == (True, None, False)
    assert got.body == answer.partition(b"\r\n\r\n")[2]


@cases(BROKEN_HEAD)
def test_head_that_could_mean_two_things_is_refused(answer: bytes) -> None:
    got = outcome([answer])

    assert got.fault is not None
    assert (got.status, got.fault.kind, got.is_reusable) == (0, FaultKind.MALFORMED, False)


@cases(BROKEN_BODY)
def test_broken_framing_of_a_body_is_told(answer: bytes) -> None:
    got = outcome([answer])

    assert got.fault is not None
    assert (got.status, got.fault.kind, got.is_reusable) == (200, FaultKind.MALFORMED, False)


@cases(ENDED)
@pytest.mark.parametrize("more", [b"H", b"x", b"\0", SIZED], ids=["h", "x", "nul", "answer"])
@pytest.mark.parametrize("together", [True, False], ids=["one-segment", "later"])
def test_bytes_after_an_answer_end_the_connection_and_not_the_answer(
    answer: bytes, more: bytes, together: bool
) -> None:
    rig = Rig()
    incoming = rig.ask()

    for piece in [answer + more] if together else [answer, more]:
        rig.feed(piece)

    assert (incoming.is_complete, incoming.fault) == (True, None)
    assert b"".join(incoming.parts) == all_of(answer).body
    assert rig.tape.is_aborted
    assert not rig.connection.is_usable


def test_trailers_are_not_headers() -> None:
    assert b"evil" not in dict(all_of(ENDED["trailers"]).fields).values()


def test_answers_of_one_connection_do_not_mix() -> None:
    rig = Rig()
    for answer in ENDED.values():
        incoming = rig.ask()
        rig.feed(answer)
        alone = all_of(answer)

        assert incoming.is_complete
        assert (incoming.status, b"".join(incoming.parts)) == (alone.status, alone.body)
        assert tuple((n, v.strip()) for n, v in incoming.fields) == alone.fields


LONG = b"a" * 5000
TOO_LARGE = {
    "status-line": b"HTTP/1.1 200 " + b"a" * (MAX_LINE_BYTES + 1),
    "one-field": OK + b"x: " + b"a" * (MAX_FIELD_BYTES + 1) + b"\r\n\r\n",
    "one-name": OK + b"a" * 200_000,
    "sum": OK + (b"x: " + LONG + b"\r\n") * 14 + b"content-length: 0\r\n\r\n",
    "count": OK + b"a: b\r\n" * (MAX_FIELDS + 1) + b"\r\n",
    "interim-for-ever": b"HTTP/1.1 103 X\r\nlink: abc\r\n\r\n" * 4000,
}


@cases(TOO_LARGE)
@pytest.mark.parametrize("size", [1000, 4096, 262_144])
def test_head_above_its_bounds_is_refused(answer: bytes, size: int) -> None:
    got = outcome([answer[i : i + size] for i in range(0, len(answer), size)])

    assert got.fault is not None
    assert (got.status, got.fault.kind) == (0, FaultKind.TOO_LARGE)


@pytest.mark.parametrize("size", [1000, 262_144])
def test_head_at_its_bounds_is_read(size: int) -> None:
    wide = OK.replace(b"OK", b"a" * MAX_LINE_BYTES) + b"content-length: 0\r\n"
    wide += b"x: " + b"a" * (MAX_FIELD_BYTES - 16 - MAX_FIELDS) + b"\r\n\r\n"
    many = OK + b"a: b\r\n" * (MAX_FIELDS - 1) + b"content-length: 0\r\n\r\n"

    for answer in (wide, many):
        got = outcome([answer[i : i + size] for i in range(0, len(answer), size)])
        assert got.is_complete


def test_large_body_in_the_packet_of_the_head_does_not_count_as_head() -> None:
    answer = OK + b"content-length: 200000\r\n\r\n" + b"x" * 200_000

    assert outcome([answer]).is_reusable


@pytest.mark.parametrize(
    "endless", [b"0\r\n" + b"x: y\r\n" * 10**5, b"5;" + b"a" * 10**6], ids=["trailers", "extension"]
)
def test_framing_that_never_gives_a_byte_is_not_read_for_ever(endless: bytes) -> None:
    pieces = [endless[i : i + 1000] for i in range(0, len(endless), 1000)]

    got = outcome([CHUNKED, *pieces])

    assert got.fault is not None
    assert got.fault.kind is FaultKind.MALFORMED


def test_many_small_chunks_may_have_more_framing_than_the_bound() -> None:
    count = MAX_BARREN_BYTES // 3 + 2

    got = outcome([CHUNKED, *[b"1\r\n", b"x\r\n"] * count, b"0\r\n\r\n"])

    assert (got.is_complete, len(got.body)) == (True, count)
