"""Decoding a Responses request: facts for routing, untouched members, faults with their path."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.responses import Responses
from cluster_gw.wire.json_codec import write

SURFACE = Responses()
PIXEL = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


def decode(**members: Any) -> ChatRequest:
    request = SURFACE.decode_request(msgspec.json.encode({"input": "hi", **members}))
    assert isinstance(request, ChatRequest), request
    return request


def refuse(**members: Any) -> ErrorBody:
    error = SURFACE.decode_request(msgspec.json.encode(members))
    assert isinstance(error, ErrorBody), error
    return error


def test_facts_of_a_full_request() -> None:
    request = decode(
        model="auto",
        stream=True,
        max_output_tokens=20,
        tools=[{"type": "web_search"}],
        text={"format": {"type": "json_schema", "name": "x", "schema": {}}},
        user="u1",
    )

    assert request.dialect is Dialect.OPENAI_RESPONSES
    assert (request.model, request.stream, request.max_tokens) == ("auto", True, 20)
    assert (request.wants_tools, request.wants_format, request.user) == (True, True, "u1")
    assert request.input_characters == (2,)


def test_facts_of_a_conversation() -> None:
    request = decode(
        instructions="be kind",
        input=[
            {"role": "developer", "content": "and brief"},
            {"role": "user", "content": [{"type": "input_text", "text": "look"}, PIXEL]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "four"},
            {"role": "user", "content": "and now?"},
        ],
    )

    assert request.input_characters == (7, 9, 4, 0, 2, 4, 8)
    assert request.image_count == 1
    assert request.system_text == "be kindand brief"
    assert (request.first_user_text, request.last_user_text) == ("look", "and now?")
    assert request.has_history


def test_members_travel_on_untouched_and_in_order() -> None:
    body = b'{"z":1.0e3,"model":"m","input":[{"content" : "h\\u00e9","role":"user","x":null}]}'

    request = SURFACE.decode_request(body)

    assert isinstance(request, ChatRequest)
    assert write(request.fields) == body


def test_answer_that_is_gone_on_from_is_named_and_travels_on() -> None:
    request = decode(previous_response_id="resp_1")

    assert request.continues == "resp_1"
    assert request.has_history
    assert "previous_response_id" in request.fields


def test_wishes_are_taken_out_of_the_members() -> None:
    request = decode(models=["a", "b"], provider={"only": ["p"]})

    assert request.wishes is not None
    assert (request.wishes.models, request.wishes.only) == (("a", "b"), ("p",))
    assert set(request.fields) == {"input"}


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({}, "input", "invalid_request"),
        ({"input": 5}, "input", "invalid_request"),
        ({"input": [{"role": "user", "content": 5}]}, "input[0].content", "invalid_request"),
        ({"input": "x", "stream": "yes"}, "stream", "invalid_request"),
        ({"input": "x", "background": True}, "background", "invalid_request"),
        ({"input": [{"type": "item_reference", "id": "i"}]}, "input[0]", "invalid_request"),
        ({"input": "x", "conversation": {"id": "c"}}, "conversation", "response_not_found"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
            "response_not_found",
        ),
    ],
)
def test_what_cannot_be_served_is_named_with_a_remedy(
    members: dict[str, Any], param: str, code: str
) -> None:
    error = refuse(**members)

    assert (error.code, error.param) == (code, param)
    assert error.status == ERROR_CODES[code].status
    assert len(error.message) > len(param) + 10


def test_crowded_inputs_are_refused_before_they_are_read() -> None:
    one = {"role": "user", "content": "x"}
    parts = [{"type": "input_text", "text": "x"}] * 2001

    assert refuse(input=[one] * 20_001).param == "input"
    assert refuse(input=[{"role": "user", "content": parts}]).param == "input[0].content"
    assert "300000" in refuse(input=[one] * 200_000).message


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["input", "content", "type", "role", "tools", "text", "output"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_decoded_or_refused_by_its_path(document: Any) -> None:
    answer = SURFACE.decode_request(msgspec.json.encode(document))

    assert isinstance(answer, ChatRequest) or answer.code in ERROR_CODES
