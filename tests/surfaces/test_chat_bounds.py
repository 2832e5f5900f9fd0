"""Crowded chat requests: refused by number, told before they cost anything."""

import gc
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import chat_bounds
from cluster_gw.surfaces.chat_completions import ChatCompletions

SURFACE = ChatCompletions()
SIZE_BYTES = 8_000_000
TIMES_PLAIN = 30  # seen: 5; the old way took 150 to 400
HI = b'"messages":[{"role":"user","content":"x"}]'


def filled(head: bytes, item: bytes, tail: bytes, size_bytes: int = SIZE_BYTES) -> bytes:
    """A body of that size, full of one item."""
    return head + b",".join([item] * (size_bytes // (len(item) + 1))) + tail


def seconds_of(work: Callable[[], object]) -> float:
    """CPU seconds, the least of three."""
    gc.collect()
    best_s = float("inf")
    for _ in range(3):
        started_s = time.thread_time()
        work()
        best_s = min(best_s, time.thread_time() - started_s)
    return best_s


CROWDS = {
    "messages": filled(b'{"messages":[', b'{"role":"user","content":["a"]}', b"]}"),
    "empty messages": filled(b'{"messages":[', b'{"role":""}', b"]}"),
    "bare parts": filled(b'{"messages":[{"role":"user","content":[', b'"ab"', b"]}]}"),
    "empty parts": filled(b'{"messages":[{"role":"user","content":[', b"{ }", b"]}]}"),
    "tools": filled(b"{" + HI + b',"tools":[', b"{}", b"]}"),
    "stops": filled(b"{" + HI + b',"stop":[', b'"\\\\"', b"]}"),
    "members": b"{" + HI + b"".join(b',"%d":1' % n for n in range(800_000)) + b"}",
    "text": filled(b'{"messages":[{"role":"user","content":"', b'{\\"a\\":1}', b'"}]}'),
    "half a text": b"{" * 400_000 + b'"' + b'\\"' * (SIZE_BYTES // 2),
}


@pytest.mark.parametrize("kind", CROWDS)
def test_no_body_costs_much_more_than_plain_content_of_its_size(kind: str) -> None:
    plain = b'{"messages":[{"role":"user","content":"' + b"x" * SIZE_BYTES + b'"}]}'
    plain_s = seconds_of(lambda: SURFACE.decode_request(plain))

    crowded_s = seconds_of(lambda: SURFACE.decode_request(CROWDS[kind]))

    assert crowded_s < TIMES_PLAIN * plain_s


def refuse(body: bytes) -> ErrorBody:
    error = SURFACE.decode_request(body)
    assert isinstance(error, ErrorBody), "the body was accepted"
    assert (error.status, error.code) == (400, "invalid_request")
    return error


def body_of(*messages: Any) -> bytes:
    return msgspec.json.encode({"messages": messages})


@pytest.mark.parametrize("kind", ["messages", "empty messages"])
def test_too_many_messages_are_refused_by_name_and_bound(kind: str) -> None:
    error = refuse(CROWDS[kind])

    assert error.param == "messages"
    assert "the limit is 20000" in error.message


@pytest.mark.parametrize("kind", ["bare parts", "empty parts", "tools", "stops", "members"])
def test_crowded_bodies_are_refused_with_the_bound(kind: str) -> None:
    assert "more than 300000 strings or objects" in refuse(CROWDS[kind]).message


@pytest.mark.parametrize("content", ["a", ["a"], [{"type": "text", "text": "a"}]])
def test_message_above_the_bound_is_one_too_many(content: Any) -> None:
    message = {"role": "user", "content": content}

    request = SURFACE.decode_request(body_of(*[message] * chat_bounds.MAX_MESSAGES))
    error = refuse(body_of(*[message] * (chat_bounds.MAX_MESSAGES + 1)))

    assert isinstance(request, ChatRequest)
    assert error.param == "messages"
    assert error.message == "messages holds 20001 messages; the limit is 20000."


def test_part_above_the_bound_is_one_too_many() -> None:
    most: list[Any] = [""] * chat_bounds.MAX_PARTS
    hi = {"role": "user", "content": "hi"}

    request = SURFACE.decode_request(body_of(hi, {"role": "user", "content": most}))
    error = refuse(body_of(hi, {"role": "user", "content": [*most, {}]}))

    assert isinstance(request, ChatRequest)
    assert error.param == "messages[1].content"
    assert error.message == "messages[1].content holds 2001 parts; the limit is 2000."


def test_parts_of_all_messages_are_bounded_together() -> None:
    message = {"role": "user", "content": [{"type": "text"}] * 1000}

    request = SURFACE.decode_request(body_of(*[message] * 50))
    error = refuse(body_of(*[message] * 51))

    assert isinstance(request, ChatRequest)
    assert error.param == "messages"
    assert "51000 content parts" in error.message
    assert "50000" in error.message


def test_large_text_full_of_quotes_and_braces_is_accepted() -> None:
    text = 'if (a["b"]) { return {"c": "\\\\"}; }\n' * 60_000

    request = SURFACE.decode_request(body_of({"role": "user", "content": text}))

    assert isinstance(request, ChatRequest)
    assert request.input_characters == (len(text),)


TEXTS = st.text(alphabet='a"\\{é\n', max_size=4)
DOCUMENTS = st.recursive(
    TEXTS | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=40,
)


def counts_of(document: Any) -> tuple[int, int]:
    """Strings, names among them, and objects of a document."""
    if isinstance(document, str):
        return 1, 0
    if isinstance(document, dict):
        inner = [counts_of(value) for value in document.values()]
        return sum(s for s, _ in inner) + len(document), sum(o for _, o in inner) + 1
    inner = [counts_of(value) for value in document] if isinstance(document, list) else []
    return sum(s for s, _ in inner), sum(o for _, o in inner)


@settings(deadline=None, max_examples=500)
@given(DOCUMENTS)
def test_crowding_is_told_only_above_the_bound_and_always_above_twice_the_bound(
    document: Any,
) -> None:
    strings, objects = counts_of(document)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat_bounds, "MAX_ITEMS", 3)
        is_crowded = chat_bounds.is_crowded(msgspec.json.encode(document))

    if is_crowded:
        assert strings > 3 or objects > 3
    else:
        assert strings <= 6
        assert objects <= 3
