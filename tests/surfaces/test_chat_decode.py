"""Decoding a chat request: facts for routing, untouched members, faults that name their path."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.wire.json_codec import write

SURFACE = ChatCompletions()
HI = {"role": "user", "content": "hi"}


def decode(**members: Any) -> ChatRequest:
    request = SURFACE.decode_request(msgspec.json.encode({"messages": [HI], **members}))
    assert isinstance(request, ChatRequest), request
    return request


def refuse(body: bytes) -> ErrorBody:
    error = SURFACE.decode_request(body)
    assert isinstance(error, ErrorBody), error
    return error


def test_facts_of_a_full_request() -> None:
    request = decode(
        model="auto",
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=10,
        max_completion_tokens=20,
        n=2,
        tools=[{"type": "function"}],
        response_format={"type": "json_object"},
        user="u1",
        temperature=1,
    )

    assert request.dialect is Dialect.OPENAI
    assert (request.model, request.stream, request.include_usage) == ("auto", True, True)
    assert (request.max_tokens, request.choices, request.user) == (20, 2, "u1")
    assert (request.wants_tools, request.wants_format) == (True, True)
    assert request.input_characters == (2,)


def test_facts_of_a_bare_request() -> None:
    request = decode()

    assert (request.model, request.stream, request.include_usage) == ("", False, False)
    assert (request.max_tokens, request.choices, request.user) == (None, 1, None)
    assert (request.wants_tools, request.wants_format, request.image_count) == (False, False, 0)


def test_members_travel_on_untouched_and_in_order() -> None:
    body = b'{"z":1.0e3,"model":"m","messages":[{"content" : "h\\u00e9","role":"user","x":null}]}'

    request = SURFACE.decode_request(body)

    assert isinstance(request, ChatRequest)
    assert write(request.fields) == body


def test_text_characters_and_images_are_counted_per_message() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image, image]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        {"role": "tool", "content": "", "tool_call_id": "c"},
    ]

    request = decode(messages=messages)

    assert request.input_characters == (7, 4, 0, 0)
    assert request.image_count == 2


def test_affinity_text_is_system_and_first_user_text() -> None:
    messages = [
        {"role": "system", "content": "a"},
        {"role": "assistant", "content": "skipped"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
        {"role": "system", "content": "later"},
        {"role": "user", "content": "later"},
    ]

    assert decode(messages=messages).affinity_text == "abc"
    assert decode(messages=messages[:2]).affinity_text == "a"


@pytest.mark.parametrize(
    ("body", "code", "path", "word"),
    [
        (b"", "invalid_json", None, "JSON"),
        (b"[]", "invalid_json", None, "object"),
        (b'"text"', "invalid_json", None, "object"),
        (b'{"messages":[{"role":"user","content":"\xff"}]}', "invalid_json", None, "UTF-8"),
        (b'{"messages":' + b"[" * 100_000, "invalid_json", None, "deeply"),
        (b"{}", "invalid_request", "messages", "missing"),
        (b'{"messages":null}', "invalid_request", "messages", "array"),
        (b'{"messages":[]}', "invalid_request", "messages", "length"),
        (b'{"messages":{}}', "invalid_request", "messages", "array"),
        (b'{"messages":"hi"}', "invalid_request", "messages", "array"),
        (b'{"messages":["hi"]}', "invalid_request", "messages[0]", "object"),
        (b'{"messages":[{"content":"x"}]}', "invalid_request", "messages[0].role", "role"),
        (b'{"messages":[{"role":1}]}', "invalid_request", "messages[0].role", "string"),
        (
            b'{"messages":[{"role":"user","content":5}]}',
            "invalid_request",
            "messages[0].content",
            "null",
        ),
        (
            b'{"messages":[{"role":"user","content":[5]}]}',
            "invalid_request",
            "messages[0].content[0]",
            "string",
        ),
    ],
)
def test_wrong_bodies_are_refused_by_path(
    body: bytes, code: str, path: str | None, word: str
) -> None:
    error = refuse(body)

    assert (error.status, error.code, error.param) == (400, code, path)
    assert word in error.message
    assert error.code in ERROR_CODES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", 5),
        ("model", ["a"]),
        ("stream", "true"),
        ("stream", 1),
        ("n", 0),
        ("n", 129),
        ("n", 1.5),
        ("n", "2"),
        ("max_tokens", "100"),
        ("max_completion_tokens", {}),
        ("temperature", "hot"),
        ("top_p", []),
        ("tools", {}),
        ("tools", "none"),
        ("tool_choice", 5),
        ("stop", 5),
        ("response_format", "json"),
        ("stream_options", True),
        ("user", 7),
    ],
)
def test_wrong_members_are_refused_by_name(name: str, value: Any) -> None:
    error = refuse(msgspec.json.encode({"messages": [HI], name: value}))

    assert (error.status, error.code, error.param) == (400, "invalid_request", name)
    assert name in error.message


@pytest.mark.parametrize(
    ("members", "gone"),
    [
        ({"tools": None}, "tools"),
        ({"tool_choice": None}, "tool_choice"),
        ({"parallel_tool_calls": None}, "parallel_tool_calls"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
    ],
)
def test_explicit_nothing_is_left_out(members: dict[str, Any], gone: str) -> None:
    request = decode(**members)

    assert gone not in request.fields
    assert request.max_tokens is None


def test_tolerated_shapes_are_put_right() -> None:
    request = decode(tool_choice="any", stop=["a", "b", "c", "d", "e"])

    assert bytes(request.fields["tool_choice"]) == b'"required"'
    assert bytes(request.fields["stop"]) == b'["a","b","c","d"]'


def test_bare_strings_in_content_become_text_parts() -> None:
    messages = [
        {"role": "user", "content": ["a", {"type": "text", "text": "b", "x": 1}], "name": "n"},
        HI,
    ]

    request = decode(messages=messages)

    assert request.input_characters == (2, 2)
    assert msgspec.json.decode(bytes(request.fields["messages"])) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "x": 1}],
            "name": "n",
        },
        HI,
    ]


@pytest.mark.parametrize(
    "members",
    [
        {"model": None},
        {"stream": None},
        {"n": None},
        {"stop": None},
        {"stop": "x"},
        {"response_format": {"type": "text"}},
        {"tools": []},
        {"stream_options": None},
        {"user": None},
        {"metadata": {"deep": [1]}},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": None}]},
        {"messages": [{"role": "function", "content": ""}]},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
    ],
)
def test_the_tolerance_list_is_accepted(members: dict[str, Any]) -> None:
    request = decode(**members)

    assert not request.wants_tools
    assert not request.wants_format


def test_duplicate_members_are_read_as_the_upstream_will_read_them() -> None:
    request = SURFACE.decode_request(b'{"model":"a","messages":[{"role":"user"}],"model":"b"}')

    assert isinstance(request, ChatRequest)
    assert request.model == "b"
    assert bytes(request.fields["model"]) == b'"b"'


def test_the_surface_is_found_by_its_path() -> None:
    assert SURFACES["/v1/chat/completions"].dialect is Dialect.OPENAI


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["messages", "model", "stream", "n", "tools", "stop", "max_tokens", "stream_options", "user"]
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(NAMES, VALUES, max_size=6), st.booleans())
def test_any_document_is_a_request_or_a_named_error(
    members: dict[str, Any], with_messages: bool
) -> None:
    body = msgspec.json.encode({**members, "messages": [HI]} if with_messages else members)

    outcome = SURFACE.decode_request(body)

    assert isinstance(outcome, ChatRequest) or outcome.status == 400


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_request_or_a_named_error(body: bytes) -> None:
    outcome = SURFACE.decode_request(body)

    assert isinstance(outcome, ChatRequest) or outcome.code in {"invalid_json", "invalid_request"}
