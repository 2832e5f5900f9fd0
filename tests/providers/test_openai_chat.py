"""The upstream codec: requests with only what must change, answers and errors as facts."""

import gzip
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import SUPPORTED_DIALECTS, provider_for
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.quirks import QUIRKS

PLAIN = OpenAIChatProvider()


def request(body: bytes, *, include_usage: bool = False, wants_tools: bool = False) -> ChatRequest:
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return ChatRequest(
        dialect=Dialect.OPENAI,
        model="auto",
        stream=b'"stream":true' in body,
        include_usage=include_usage,
        wants_tools=wants_tools,
        fields=fields,
    )


def encoded(body: bytes, *quirks: str, **facts: bool) -> bytes:
    return OpenAIChatProvider(quirks).encode_request(request(body, **facts), "up")


def test_only_the_model_changes_in_a_buffered_request() -> None:
    body = b'{"messages":[{"role" : "user"}],"model":"auto","x_new":{"a": 1.0},"n":1}'

    assert encoded(body) == body.replace(b'"auto"', b'"up"')


def test_a_missing_model_is_added() -> None:
    assert encoded(b'{"n":1}') == b'{"n":1,"model":"up"}'


def test_encoding_twice_gives_the_same_bytes_and_leaves_the_request_alone() -> None:
    asked = request(b'{"model":"a","stream":true,"seed":1}')
    before = dict(asked.fields)
    codec = OpenAIChatProvider(["random_seed", "no_logprobs"])

    assert codec.encode_request(asked, "m") == codec.encode_request(asked, "m")
    assert asked.fields == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"", b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":null', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{}', b',"stream_options":{"include_usage":true}'),
        (
            b',"stream_options":{"include_usage":false,"x":1}',
            b',"stream_options":{"include_usage":true,"x":1}',
        ),
    ],
)
def test_usage_is_asked_for_in_streams(options: bytes, expected: bytes) -> None:
    assert encoded(b'{"model":"a","stream":true' + options + b"}") == (
        b'{"model":"up","stream":true' + expected + b"}"
    )


def test_a_client_that_asked_for_usage_keeps_its_options() -> None:
    body = b'{"model":"up","stream":true,"stream_options":{"include_usage": true}}'

    assert encoded(body, include_usage=True) == body


@pytest.mark.parametrize(
    ("quirk", "body", "expected"),
    [
        ("no_logprobs", b'{"logprobs":true,"top_logprobs":2,"logit_bias":{}}', b'{"model":"up"}'),
        ("random_seed", b'{"seed":7,"model":"a"}', b'{"random_seed":7,"model":"up"}'),
        (
            "max_tokens_name",
            b'{"max_completion_tokens":5,"model":"a"}',
            b'{"max_tokens":5,"model":"up"}',
        ),
        ("max_output_400", b'{"max_tokens":900,"model":"a"}', b'{"max_tokens":400,"model":"up"}'),
        ("max_output_400", b'{"max_tokens":90,"model":"a"}', b'{"max_tokens":90,"model":"up"}'),
        (
            "max_output_400",
            b'{"max_completion_tokens":401,"max_tokens":null,"model":"a"}',
            b'{"max_completion_tokens":400,"max_tokens":null,"model":"up"}',
        ),
        ("no_stream_options", b'{"model":"a","stream":true}', b'{"model":"up","stream":true}'),
        ("no_response_format", b'{"model":"a","response_format":{}}', b'{"model":"up"}'),
        ("no_reasoning_effort", b'{"model":"a","reasoning_effort":"low"}', b'{"model":"up"}'),
        ("serial_tools", b'{"model":"a"}', b'{"model":"up"}'),
        ("attribution", b'{"model":"a"}', b'{"model":"up"}'),
    ],
)
def test_quirks_change_what_they_name(quirk: str, body: bytes, expected: bytes) -> None:
    assert encoded(body, quirk) == expected


def test_serial_tools_are_forced_only_with_tools() -> None:
    body = b'{"model":"a","tools":[{}],"parallel_tool_calls":true}'

    assert b'"parallel_tool_calls":false' in encoded(body, "serial_tools", wants_tools=True)


def test_all_quirks_together_are_applied() -> None:
    body = b'{"seed":1,"logprobs":true,"max_tokens":500,"model":"a","stream":true}'

    assert encoded(body, *QUIRKS) == b'{"random_seed":1,"max_tokens":400,"model":"up"}'


def test_headers_carry_the_secret_only_when_there_is_one() -> None:
    assert ("authorization", "Bearer s3cret") in PLAIN.request_headers("s3cret")
    assert "authorization" not in dict(PLAIN.request_headers(None))
    assert "authorization" not in dict(PLAIN.request_headers(""))


def test_headers_are_lower_case_and_quirks_add_theirs() -> None:
    headers = OpenAIChatProvider(["attribution"]).request_headers("k")

    assert dict(headers)["x-title"] == "cluster-gw"
    assert all(name == name.lower() for name, _ in headers)


@pytest.mark.parametrize("base", ["https://h/v1", "https://h/v1/", "https://h/v1/chat/completions"])
def test_the_url_is_built_once(base: str) -> None:
    assert PLAIN.url(base) == "https://h/v1/chat/completions"


@pytest.mark.parametrize(
    ("content_type", "is_stream"),
    [
        ("text/event-stream; charset=utf-8", True),
        ("text/event-stream", True),
        ("", True),
        ("application/octet-stream", True),
        ("text/plain", True),
        ("Application/JSON; charset=utf-8", False),
        ("text/html", False),
    ],
)
def test_streams_are_told_by_content_type(content_type: str, is_stream: bool) -> None:
    assert PLAIN.is_stream(content_type) is is_stream


def test_an_answer_that_is_no_stream_is_a_content_fault() -> None:
    html = PLAIN.decode_not_stream(b"<html>login</html>", "text/html")
    completion = PLAIN.decode_not_stream(b'{"choices":[{}]}', "application/json")

    assert html.kind is FaultKind.CONTENT_TYPE
    assert completion.kind is FaultKind.CONTENT_TYPE
    assert "login" not in html.message


def test_an_error_object_instead_of_a_stream_is_in_band() -> None:
    body = b'{"error":{"message":"try again in 3s","code":429,"type":"rate"}}'

    fault = PLAIN.decode_not_stream(body, "application/json")

    assert (fault.kind, fault.status, fault.type) == (FaultKind.IN_BAND, 429, "rate")
    assert fault.retry_after_ms == 3000


def answer(**message: Any) -> bytes:
    return msgspec.json.encode(
        {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        }
    )


def test_a_completion_keeps_its_bytes_and_tells_its_facts() -> None:
    body = answer(role="assistant", content="hi", reasoning="hm")

    assert PLAIN.decode_completion(body, "application/json") == Completion(
        raw=body,
        text="hi",
        characters=4,
        finish_reason="stop",
        usage=Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
    )


@pytest.mark.parametrize(
    ("message", "text", "calls"),
    [
        ({"content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}, "", 2),
        ({"content": "", "function_call": {"name": "f", "arguments": "{}"}}, "", 1),
        ({"content": None, "refusal": "no"}, "no", 0),
        ({"content": [{"type": "text", "text": "a"}]}, "a", 0),
        ({"content": "a", "tool_calls": [{"function": {"arguments": {}}}]}, "a", 1),
    ],
)
def test_text_and_calls_of_a_completion(message: dict[str, Any], text: str, calls: int) -> None:
    completion = PLAIN.decode_completion(answer(**message), "application/json")

    assert isinstance(completion, Completion)
    assert (completion.text, completion.tool_call_count) == (text, calls)


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"<html></html>", "text/html; charset=utf-8", FaultKind.CONTENT_TYPE),
        (b"data: {}\n\n", "text/event-stream", FaultKind.CONTENT_TYPE),
        (b'{"choices":[{"mess', "application/json", FaultKind.MALFORMED),
        (b"", "", FaultKind.MALFORMED),
        (b"[]", "application/json", FaultKind.MALFORMED),
        (b"[" * 100_000, "application/json", FaultKind.MALFORMED),
        (b'{"choices":[]}', "application/json", FaultKind.MALFORMED),
        (b'{"choices":"x"}', "application/json", FaultKind.MALFORMED),
        (b'{"error":{"message":"m"}}', "application/json", FaultKind.IN_BAND),
        (b'{"error":"m","choices":"x"}', "application/json", FaultKind.IN_BAND),
        (b'{"detail":"m"}', "application/json", FaultKind.IN_BAND),
        (gzip.compress(b"{}", mtime=0), "application/json", FaultKind.MALFORMED),
    ],
)
def test_a_good_status_with_a_bad_body_is_a_fault(
    body: bytes, content_type: str, kind: FaultKind
) -> None:
    fault = PLAIN.decode_completion(body, content_type)

    assert isinstance(fault, Fault)
    assert fault.kind is kind


def test_json_under_a_wrong_label_is_still_an_answer() -> None:
    assert isinstance(PLAIN.decode_completion(answer(content="a"), "text/plain"), Completion)


def test_an_error_answer_becomes_facts_with_the_stated_wait() -> None:
    body = b'{"error":{"message":"Limit reached, key sk-abcdef123456","type":"tokens","code":"c"}}'

    fault = PLAIN.decode_error(429, {"retry-after": "2"}, body, 0, "secret-x")

    assert fault == Fault(
        kind=FaultKind.HTTP_STATUS,
        status=429,
        type="tokens",
        code="c",
        message="Limit reached, key [redacted]",
        retry_after_ms=2000,
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"<!doctype html><p>x", "answered with an HTML page"),
        (b"upstream  request\ntimeout", "upstream request timeout"),
        (b'"quoted"', "quoted"),
        (b"[1]", ""),
        (b"\xff\xfe", "��"),
        (b'{"error":{"message":"cut', '{"error":{"message":"cut'),
    ],
)
def test_any_error_body_gives_a_message(body: bytes, message: str) -> None:
    assert PLAIN.decode_error(503, {}, body, 0).message == message


def test_reset_headers_count_for_limits_only() -> None:
    headers = {"x-ratelimit-reset": "5s"}

    assert PLAIN.decode_error(429, headers, b"", 0).retry_after_ms == 5000
    assert PLAIN.decode_error(500, headers, b"", 0).retry_after_ms is None


def test_codecs_are_chosen_by_dialect() -> None:
    class Facts(msgspec.Struct):
        dialect: Dialect
        quirks: frozenset[str] = frozenset()
        embedding: EmbeddingModel | None = None

    for dialect in Dialect:
        if dialect in SUPPORTED_DIALECTS:
            assert provider_for(Facts(dialect)).dialect is dialect
        else:
            with pytest.raises(ValueError, match=dialect.value):
                provider_for(Facts(dialect))
    with pytest.raises(KeyError):
        provider_for(Facts(Dialect.OPENAI, frozenset({"nonsense"})))


@pytest.mark.parametrize(
    ("quirks", "base_url", "expected"),
    [
        ((), "https://h/v1", "https://h/v1/models"),
        ((), "https://h/v1/chat/completions", "https://h/v1/models"),
        (("key_info", "attribution"), "https://h/api/v1/", "https://h/api/v1/key"),
        (("metered_checks",), "https://h/v1", None),
    ],
)
def test_key_is_checked_where_that_is_free(
    quirks: tuple[str, ...], base_url: str, expected: str | None
) -> None:
    assert OpenAIChatProvider(quirks).check_url(base_url) == expected
