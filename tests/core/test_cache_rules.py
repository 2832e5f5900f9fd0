"""Which requests have a place in the response cache."""

import pytest

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.cache_rules import Obstacle, Wish, is_whole, obstacle_of, wish_of
from cluster_gw.server.explaining import surface_of

HI = b'"messages":[{"role":"user","content":"hi"}]'
INPUT = b'"model":"auto","input":"hi"'


@pytest.mark.parametrize(
    ("word", "directives", "wish"),
    [
        *((word, "", Wish.OFF) for word in ("off", "no", "0", "false", "bypass", "skip", " OFF ")),
        *((word, "", Wish.ON) for word in ("on", "yes", "1", "true", "force", "Force")),
        *((word, "", Wish.UNSAID) for word in ("", "maybe", "onn", "2")),
        *(("on", said, Wish.OFF) for said in ("no-store", "max-age=3, No-Cache", "no-cache")),
        ("on", 'No-Cache="x", a', Wish.OFF),
        *(("on", said, Wish.ON) for said in ("max-age=0", "no-transform", "xno-store")),
        ("off, on", "", Wish.OFF),
        ("on,off", "", Wish.ON),
    ],
)
def test_headers_say_whether_to_use_the_cache(word: str, directives: str, wish: Wish) -> None:
    assert wish_of(word, directives) is wish


@pytest.mark.parametrize(
    ("surface", "body", "obstacle"),
    [
        ("chat", b"{%b}", None),
        ("chat", b'{"temperature":null,%b}', None),
        ("chat", b'{"temperature":0.5,%b}', None),
        ("chat", b'{"temperature":0.51,%b}', Obstacle.TEMPERATURE),
        ("chat", b'{"temperature":1,%b}', Obstacle.TEMPERATURE),
        ("chat", b'{"store":true,%b}', Obstacle.STATE),
        ("chat", b'{"store":false,%b}', None),
        ("messages", b'{"max_tokens":9,"temperature":0.5,%b}', None),
        ("messages", b'{"max_tokens":9,"temperature":0.6,%b}', Obstacle.TEMPERATURE),
        ("responses", b'{"temperature":0.6,%i}', Obstacle.TEMPERATURE),
        ("responses", b'{"store":true,%i}', None),
        ("responses", b'{"previous_response_id":"resp_1",%i}', Obstacle.STATE),
        ("gemini", b'{"contents":[{"parts":[{"text":"a"}]}]}', None),
        (
            "gemini",
            b'{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"temperature":0.6}}',
            Obstacle.TEMPERATURE,
        ),
        (
            "gemini",
            b'{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"temperature":"hot"}}',
            Obstacle.NO_KEY,
        ),
        ("embeddings", b"{%i}", None),
    ],
)
def test_a_request_that_wants_something_new_or_leaves_something_is_not_kept(
    surface: str, body: bytes, obstacle: Obstacle | None
) -> None:
    request = surface_of(surface).decode_request(body.replace(b"%b", HI).replace(b"%i", INPUT))
    assert isinstance(request, ChatRequest), request
    assert obstacle_of(request, 0.5) is obstacle


def test_only_an_answer_that_came_to_its_own_end_in_each_choice_is_whole() -> None:
    assert is_whole(["stop"])
    assert is_whole(["stop", "tool_calls"])
    assert not any(
        is_whole(reasons)
        for reasons in ([], [None], ["length"], ["stop", "length"], ["content_filter"], ["error"])
    )
