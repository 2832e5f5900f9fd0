"""Tokens of sounds are carried between the APIs that count them apart."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.request import Dialect
from cluster_gw.providers import provider_for
from cluster_gw.surfaces.base import StreamHead
from tests.fuzz.codecs import Facts, surfaces

HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False, include_usage=True)
CHAT = {
    "choices": [{"index": 0, "message": {"content": "so"}, "delta": {}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"audio_tokens": 4, "cached_tokens": 1},
        "completion_tokens_details": {"audio_tokens": 3},
    },
}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "so"}]}, "finishReason": "STOP"}],
    "usageMetadata": {
        "promptTokenCount": 9,
        "cachedContentTokenCount": 1,
        "candidatesTokenCount": 5,
        "totalTokenCount": 14,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 5},
            {"modality": "AUDIO", "tokenCount": 4},
        ],
        "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 3}],
    },
}
MARKS = {
    "chat-completions": (
        b'"prompt_tokens_details":{"cached_tokens":1,"audio_tokens":4}',
        b'"completion_tokens_details":{"audio_tokens":3}',
    ),
    "gemini": (
        b'"promptTokensDetails":[{"modality":"AUDIO","tokenCount":4}]',
        b'"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":3}]',
    ),
}


@pytest.mark.parametrize(
    ("dialect", "body"), [(Dialect.OPENAI, CHAT), (Dialect.GEMINI, GEMINI)], ids=["chat", "gemini"]
)
@pytest.mark.parametrize("writer", ["chat-completions", "gemini"])
def test_tokens_of_sounds_arrive_buffered_and_streamed(
    dialect: Dialect, body: dict[str, Any], writer: str
) -> None:
    codec, surface = provider_for(Facts(dialect)), surfaces()[writer]
    raw = msgspec.json.encode(body)
    completion = codec.decode_completion(raw, "application/json")
    assert isinstance(completion, Completion)
    stream = surface.stream_encoder(HEAD)
    decoder = codec.stream_decoder()

    whole = surface.encode_answer(codec.read_answer(completion), HEAD)
    events = [*decoder.decode(b"data: " + raw + b"\n\n"), *decoder.flush()]
    sent = b"".join(map(stream.encode, events)) + stream.done()

    for told in (whole, sent):
        assert all(mark in told for mark in MARKS[writer])


def test_details_nobody_can_read_are_no_reason_to_fail() -> None:
    odd = {**GEMINI, "usageMetadata": {"totalTokenCount": 3, "promptTokensDetails": {"AUDIO": 5}}}

    found = provider_for(Facts(Dialect.GEMINI)).decode_completion(
        msgspec.json.encode(odd), "application/json"
    )

    assert isinstance(found, Completion)
    assert found.usage is not None
    assert (found.usage.total_tokens, found.usage.audio_prompt_tokens) == (3, 0)
