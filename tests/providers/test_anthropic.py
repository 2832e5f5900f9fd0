"""The upstream codec of Anthropic's dialect: addresses, headers, requests, answers, faults."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.outcome.classify import FailureCode, classify
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.surfaces.messages import Messages
from tests.fakes.anthropic_upstream import message, text

PLAIN = AnthropicProvider()
JSON = "application/json"
SECRET = "sk-ant-very-secret"


def request(**fields: Any) -> ChatRequest:
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}
    decoded = Messages().decode_request(msgspec.json.encode(body))
    assert isinstance(decoded, ChatRequest)
    return decoded


def sent(codec: AnthropicProvider, asked: ChatRequest) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(codec.encode_request(asked, "up"))
    return document


def decoded(document: Any) -> Completion | Fault:
    return PLAIN.decode_completion(msgspec.json.encode(document), JSON, SECRET)


def fault_of(document: Any) -> Fault:
    found = decoded(document)
    assert isinstance(found, Fault)
    return found


@pytest.mark.parametrize(
    "base",
    ["https://x.example", "https://x.example/", "https://x.example/v1", "https://x.example/v1/messages"],
)  # fmt: skip
def test_address_may_be_written_with_or_without_version_and_path(base: str) -> None:
    assert PLAIN.url(base) == PLAIN.stream_url(base, "m") == "https://x.example/v1/messages"
    assert PLAIN.check_url(base) == "https://x.example/v1/models"
    assert AnthropicProvider(["metered_checks"]).check_url(base) is None


def test_credential_goes_into_a_header_of_its_own() -> None:
    headers = dict(PLAIN.request_headers(SECRET))

    assert headers["x-api-key"] == SECRET
    assert headers["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in dict(PLAIN.request_headers(None))


def test_bound_of_the_operator_goes_in_place_of_the_clients() -> None:
    bounded = msgspec.structs.replace(request(max_tokens=900), max_tokens=50, is_bounded=True)

    assert sent(PLAIN, bounded)["max_tokens"] == 50
    assert sent(PLAIN, request(max_tokens=900))["max_tokens"] == 900
    assert sent(AnthropicProvider(["max_output_400"]), request(max_tokens=900))["max_tokens"] == 400


def test_foreign_thoughts_are_left_out_and_all_else_stays_as_its_bytes() -> None:
    foreign = [
        {"type": "thinking", "thinking": "x", "signature": "gw:abc"},
        {"type": "redacted_thinking", "data": "gw:abc"},
        {"type": "thinking", "thinking": "", "signature": "gw-call:abc"},
    ]
    kept = [
        {"type": "text", "text": 'says "gw:x"', "n": 1.50},
        {"type": "thinking", "signature": 5},
    ]
    messages = [
        {"role": "user", "content": 'plain "gw:x'},
        {"role": "assistant", "content": [*foreign, *kept]},
        {"role": "assistant", "content": foreign},
    ]

    document = sent(PLAIN, request(messages=[{"role": "user", "content": "hi"}, *messages]))

    assert document["messages"][1:] == [
        messages[0],
        {"role": "assistant", "content": kept},
    ]


def test_thoughts_are_not_asked_for_where_foreign_ones_stood_before_a_call() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    foreign = {"type": "thinking", "thinking": "x", "signature": "gw:"}
    own = {"type": "thinking", "thinking": "x", "signature": "s"}
    thinking = {"type": "enabled", "budget_tokens": 1024}

    def asks(*messages: dict[str, Any]) -> bool:
        first = {"role": "user", "content": "hi"}
        asked = request(messages=[first, *messages], thinking=thinking)
        return "thinking" in sent(PLAIN, asked)

    def called(*blocks: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "content": [*blocks, call]}

    assert not asks(called(foreign), result)
    assert asks(called(own), result)
    assert asks(called(foreign), {"role": "user", "content": "and?"})
    assert asks(called(foreign, own), result)
    assert asks({"role": "assistant", "content": [foreign]})
    assert sent(PLAIN, request(messages=[called(foreign)][:1], thinking=thinking))["thinking"]
    alone = [{"role": "assistant", "content": [foreign]}]
    assert sent(PLAIN, request(messages=alone, thinking=thinking))["messages"] == []


def test_answer_is_read_whole() -> None:
    usage = {"input_tokens": 5, "output_tokens": 9, "cache_creation_input_tokens": 4}
    usage["cache_read_input_tokens"] = 3
    details = {"output_tokens_details": {"thinking_tokens": 2}}
    answer = message(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        text("Hel"),
        {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}},
        text("lo"),
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "name": "g"},
        stop_reason="tool_use",
        usage={**usage, **details},
    )

    completion = decoded(answer)

    assert isinstance(completion, Completion)
    assert completion.text == "Hello"
    assert completion.finish_reason == "tool_calls"
    assert completion.characters == len("Hello" + "hm" + "f" + '{"a":1}' + "g" + "{}")
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == 12
    assert completion.usage.total_tokens == 21
    assert completion.usage.cached_prompt_tokens == 3
    assert completion.usage.reasoning_tokens == 2
    read = PLAIN.read_answer(completion)
    assert read.id == "msg_up"
    assert [part.text for part in read.choices[0].parts if isinstance(part, Text)] == ["Hel", "lo"]
    thoughts = [part for part in read.choices[0].parts if isinstance(part, Thinking)]
    assert [thought.is_redacted for thought in thoughts] == [False, True]
    uses = [part for part in read.choices[0].parts if isinstance(part, ToolUse)]
    assert [(use.id, use.name, use.arguments) for use in uses] == [
        ("t", "f", '{"a":1}'),
        ("call_6", "g", "{}"),
    ]


def test_answer_that_bends_the_format_is_read_all_the_same() -> None:
    bent = message(text("x"), usage={"input_tokens": "5", "output_tokens": 2.0})
    split = b'{"type":"message","content":[{"type":"text","text":"\\ud83d"}],"stop_reason":null}'

    completion = decoded(bent)
    half = PLAIN.decode_completion(split, JSON)

    assert isinstance(completion, Completion)
    assert completion.usage is not None
    assert completion.usage.total_tokens == 7
    assert isinstance(half, Completion)
    assert half.raw == split
    assert half.finish_reason is None
    assert half.usage is None


def test_usage_of_zeros_is_none() -> None:
    completion = decoded(message(text("x"), usage={"input_tokens": 0, "output_tokens": 0}))

    assert isinstance(completion, Completion)
    assert completion.usage is None


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"{", JSON, FaultKind.MALFORMED),
        (b"<html>", "text/html", FaultKind.CONTENT_TYPE),
        (b"[]", JSON, FaultKind.MALFORMED),
        (b'{"type":"message"}', JSON, FaultKind.MALFORMED),
        (b'{"type":"message","content":5}', JSON, FaultKind.MALFORMED),
        (b'{"type":"error","error":{"type":"api_error","message":"m"}}', JSON, FaultKind.IN_BAND),
        (b'{"type":"error","content":7,"error":{"message":"m"}}', JSON, FaultKind.IN_BAND),
    ],
)
def test_what_is_no_answer_is_a_fault(body: bytes, content_type: str, kind: FaultKind) -> None:
    found = PLAIN.decode_completion(body, content_type)

    assert isinstance(found, Fault)
    assert found.kind is kind


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("overloaded_error", 529, FailureCode.UPSTREAM_ERROR),
        ("rate_limit_error", 429, FailureCode.RATE_LIMITED),
        ("authentication_error", 401, FailureCode.AUTH),
        ("billing_error", 402, FailureCode.OUT_OF_CREDITS),
    ],
)
def test_error_inside_a_good_status_has_the_status_of_its_type(
    kind: str, status: int, code: FailureCode
) -> None:
    fault = fault_of({"type": "error", "error": {"type": kind, "message": f"no: {SECRET}"}})

    assert fault.status == status
    assert SECRET not in fault.message
    assert classify(fault).code is code


def test_error_status_is_told_with_what_the_vendor_says() -> None:
    def fault(status: int, kind: str, words: str, **headers: str) -> Fault:
        body = msgspec.json.encode({"type": "error", "error": {"type": kind, "message": words}})
        return PLAIN.decode_error(status, headers, body, 0, SECRET)

    limited = fault(429, "rate_limit_error", "slow", **{"retry-after": "7"})
    poor = fault(400, "invalid_request_error", "Your credit balance is too low to access it.")
    long = fault(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")
    missing = fault(404, "not_found_error", "model: claude-9")

    assert limited.retry_after_ms == 7000
    assert classify(limited).code is FailureCode.RATE_LIMITED
    assert classify(poor).code is FailureCode.OUT_OF_CREDITS
    assert classify(long).code is FailureCode.CONTEXT_TOO_LARGE
    assert classify(missing).code is FailureCode.MODEL_NOT_FOUND


def test_quota_is_read_from_the_vendors_headers() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "1970-01-01T00:00:30Z",
    }

    [seen] = PLAIN.read_quota(headers, 1000)

    assert (seen.limit, seen.remaining) == (50, 49)


def test_good_status_without_a_stream_is_a_fault() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "full"}}

    def fault(document: Any) -> Fault:
        return PLAIN.decode_not_stream(msgspec.json.encode(document), JSON)

    assert fault(error).status == 529
    assert fault(message(text("x"))).kind is FaultKind.CONTENT_TYPE
    assert PLAIN.decode_not_stream(b"<html>", "text/html").kind is FaultKind.CONTENT_TYPE
    assert PLAIN.is_stream("text/event-stream; charset=utf-8")
    assert not PLAIN.is_stream("application/json")
