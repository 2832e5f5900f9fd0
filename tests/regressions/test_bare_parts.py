"""Putting bare strings of content arrays right must not cost many times the body."""

import tracemalloc

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.surfaces.chat_completions import ChatCompletions

MESSAGES = 20_000
MOST_TIMES_BODY = 18  # 15.5 measured, 21 before; messages are bounded, so this is 13 MB at most


def peak_times_body(part: str) -> float:
    """Peak memory of decoding many short messages, in body sizes."""
    message = '{"role":"user","content":%s}' % part  # noqa: UP031 - braces of JSON
    body = ('{"messages":[' + ",".join([message] * MESSAGES) + "]}").encode()
    tracemalloc.start()
    try:
        request = ChatCompletions().decode_request(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(request, ChatRequest)
    return peak / len(body)


def test_bare_strings_in_content_take_little_more_memory_than_plain_text() -> None:
    assert peak_times_body('"a"') < MOST_TIMES_BODY
    assert peak_times_body('["a"]') < MOST_TIMES_BODY
