"""The codec of the Responses dialect: addresses, headers, answers, faults, and what it writes."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import (
    Choosing,
    Conversation,
    Media,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers import provider_for
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces.responses import Responses
from cluster_gw.wire.openai_responses import SIGNED_BY_VENDOR
from tests.fakes import responses_frames as wire

CODEC = OpenAIResponsesProvider()
SECRET = "sk-upstream-0123456789"


def decoded(document: Any, content_type: str = "application/json") -> Completion | Fault:
    return CODEC.decode_completion(msgspec.json.encode(document), content_type, SECRET)


def sent(*turns: Turn, **members: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    translated = CODEC.encode_conversation(Conversation(turns=turns, **members), "up")
    return msgspec.json.decode(translated.body), translated.lost


def said(role: Role, *parts: Any) -> Turn:
    return Turn(role=role, parts=parts)


def test_addresses_of_generation_and_of_the_check() -> None:
    base = "https://api.example/v1"

    assert CODEC.url(base) == CODEC.stream_url(base + "/", "m") == f"{base}/responses"
    assert CODEC.url(f"{base}/responses") == f"{base}/responses"
    assert CODEC.check_url(f"{base}/responses") == f"{base}/models"
    assert OpenAIResponsesProvider({"metered_checks"}).check_url(base) is None


def test_credential_goes_into_a_header_and_nowhere_without_one() -> None:
    assert ("authorization", f"Bearer {SECRET}") in CODEC.request_headers(SECRET)
    assert not [name for name, _ in CODEC.request_headers(None) if name == "authorization"]


def test_route_of_this_dialect_gets_this_codec() -> None:
    class Route:
        dialect = CODEC.dialect
        quirks: frozenset[str] = frozenset()
        embedding = None

    assert isinstance(provider_for(Route()), OpenAIResponsesProvider)


def test_facts_of_a_whole_answer() -> None:
    answer = wire.response(
        wire.thought("hm", encrypted="e"),
        wire.message(wire.text("so"), wire.refusal("no")),
        wire.call("c1", "f", '{"a":1}'),
    )

    completion = decoded(answer)

    assert isinstance(completion, Completion)
    assert (completion.text, completion.tool_call_count) == ("sono", 1)
    assert completion.characters == len("sono") + len("hm") + len('f{"a":1}')
    assert completion.finish_reason == "tool_calls"
    assert completion.usage is not None
    assert (completion.usage.cached_prompt_tokens, completion.usage.reasoning_tokens) == (4, 3)
    [choice] = CODEC.read_answer(completion).choices
    assert choice.parts == (
        Thinking(text="hm", signature=SIGNED_BY_VENDOR + "e"),
        Text(text="so"),
        Refusal(text="no"),
        ToolUse(id="c1", name="f", arguments='{"a":1}'),
    )


@pytest.mark.parametrize(
    ("cut", "reason"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("new", "length")],
)
def test_answer_that_is_cut_says_why(cut: str, reason: str) -> None:
    completion = decoded(wire.response(wire.message(wire.text("x")), cut=cut))

    assert isinstance(completion, Completion)
    assert completion.finish_reason == reason


def test_answer_without_a_status_has_no_end() -> None:
    completion = decoded({"output": [wire.message(wire.text("x"))]})

    assert isinstance(completion, Completion)
    assert completion.finish_reason is None


@pytest.mark.parametrize(
    ("document", "kind", "code"),
    [
        (
            wire.response(error={"code": "server_error", "message": f"with {SECRET}"}),
            FaultKind.IN_BAND,
            "server_error",
        ),
        ({"error": {"message": "m", "code": "c"}}, FaultKind.IN_BAND, "c"),
        ({"choices": []}, FaultKind.MALFORMED, None),
        ([], FaultKind.MALFORMED, None),
        ({"output": 5, "status": "completed"}, FaultKind.MALFORMED, None),
    ],
)
def test_answer_that_is_none_is_a_fault(document: Any, kind: FaultKind, code: str | None) -> None:
    fault = decoded(document)

    assert isinstance(fault, Fault)
    assert (fault.kind, fault.code) == (kind, code)
    assert SECRET not in fault.message


def test_what_is_no_json_is_named_by_its_type() -> None:
    page = CODEC.decode_completion(b"<html>", "text/html", SECRET)
    noise = CODEC.decode_completion(b"{bad", "application/json", SECRET)

    assert isinstance(page, Fault)
    assert isinstance(noise, Fault)
    assert (page.kind, noise.kind) == (FaultKind.CONTENT_TYPE, FaultKind.MALFORMED)


def test_error_status_keeps_its_words_without_the_secret() -> None:
    body = msgspec.json.encode({"error": {"message": f"bad key {SECRET}", "code": "invalid"}})

    fault = CODEC.decode_error(401, {}, body, 0, SECRET)

    assert (fault.kind, fault.status, fault.code) == (FaultKind.HTTP_STATUS, 401, "invalid")
    assert SECRET not in fault.message


def test_good_status_that_is_no_stream_is_a_fault() -> None:
    error = msgspec.json.encode({"error": {"message": "no", "code": "c"}})
    answer = msgspec.json.encode(wire.response(wire.message(wire.text("x"))))

    assert CODEC.decode_not_stream(error, "application/json").code == "c"
    assert CODEC.decode_not_stream(answer, "application/json").kind is FaultKind.CONTENT_TYPE
    assert not CODEC.is_stream("application/json; charset=utf-8")
    assert CODEC.is_stream("text/event-stream")


def test_first_system_turn_is_the_instructions() -> None:
    body, lost = sent(
        said(Role.SYSTEM, Text(text="be kind")),
        said(Role.SYSTEM, Text(text="be brief")),
        said(Role.USER, Text(text="hi")),
    )

    assert body["instructions"] == "be kind"
    assert [(item["role"], item["content"]) for item in body["input"]] == [
        ("developer", "be brief"),
        ("user", "hi"),
    ]
    assert (body["store"], lost) == (False, ())


def test_calls_results_and_media_are_items_and_parts() -> None:
    body, lost = sent(
        said(
            Role.USER,
            Text(text="see"),
            Media(media_type="image/png", data="AAAA"),
            Media(media_type="application/pdf", url="http://x/a.pdf"),
        ),
        said(Role.ASSISTANT, Text(text="so"), ToolUse(id="c", name="f", arguments="{}")),
        said(
            Role.USER,
            ToolResult(
                call_id="c",
                parts=(Text(text="one"), Media(media_type="image/*", url="http://x/b")),
                is_error=True,
            ),
        ),
    )

    user, spoken, call, result = body["input"]
    assert [part["type"] for part in user["content"]] == ["input_text", "input_image", "input_file"]
    assert spoken["content"] == [{"type": "output_text", "text": "so"}]
    assert (call["type"], call["call_id"]) == ("function_call", "c")
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]
    assert lost == ("turn 3: the mark of a failed tool",)


def test_thoughts_of_other_vendors_are_lost_and_named() -> None:
    body, lost = sent(
        said(Role.USER, Text(text="hi")),
        said(
            Role.ASSISTANT,
            Thinking(text="a", signature="Z3c6Y2xhdWRlX"),
            Thinking(text="b", signature=SIGNED_BY_VENDOR + "e"),
            Thinking(),
            Text(text="so"),
        ),
    )

    assert [item["type"] for item in body["input"]] == ["message", "reasoning", "message"]
    assert body["input"][1]["encrypted_content"] == "e"
    assert body["include"] == ["reasoning.encrypted_content"]
    assert lost == ("turn 2: thinking",)


def test_what_this_dialect_has_no_words_for_is_named() -> None:
    body, lost = sent(
        said(Role.USER, Text(text="hi")),
        sampling=Sampling(
            temperature=0.5,
            top_k=3,
            seed=1,
            stop=("x",),
            choices=2,
            presence_penalty=0.1,
            frequency_penalty=0.1,
            top_logprobs=1,
            thinking_tokens=9,
        ),
    )

    assert body["temperature"] == 0.5
    assert set(lost) == {
        "top_k",
        "seed",
        "stop",
        "n",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "thinking budget",
    }
    assert "include" not in body


def test_tools_are_strict_only_where_the_client_says_so() -> None:
    body, _ = sent(
        said(Role.USER, Text(text="hi")),
        tools=(Tool(name="f"), Tool(name="g", is_strict=True)),
        tool_choice=ToolChoice(how=Choosing.NAMED, name="g", parallel=False),
    )

    assert [tool["strict"] for tool in body["tools"]] == [False, True]
    assert body["tool_choice"] == {"type": "function", "name": "g"}
    assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("quirk", "asked", "sent_on", "changed"),
    [
        ("max_output_400", 900, 400, ("max_output_tokens lowered to 400",)),
        ("max_output_400", 30, 30, ()),
        ("min_output_16", 3, 16, ()),
        ("output_512", None, 512, ()),
    ],
)
def test_bounds_of_a_platform_are_said_in_the_words_of_this_dialect(
    quirk: str, asked: int | None, sent_on: int, changed: tuple[str, ...]
) -> None:
    body = {"input": "hi"} if asked is None else {"input": "hi", "max_output_tokens": asked}
    request = Responses().decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    codec = OpenAIResponsesProvider({quirk})

    noted = codec.encode_noted(request, "up")

    assert msgspec.json.decode(noted.body) == {
        "input": "hi",
        "model": "up",
        "max_output_tokens": sent_on,
    }
    assert (codec.has_notes, noted.changed) == (True, changed)


def test_member_that_a_platform_refuses_is_named() -> None:
    body = {"input": "hi", "reasoning": {"effort": "low"}}
    request = Responses().decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)

    noted = OpenAIResponsesProvider({"no_reasoning_effort"}).encode_noted(request, "up")

    assert "reasoning" not in msgspec.json.decode(noted.body)
    assert noted.lost == ("reasoning",)


def test_account_of_a_credential_is_no_part_of_its_token() -> None:
    codec = OpenAIResponsesProvider({"account_in_key"})

    assert ("authorization", "Bearer token") in codec.request_headers("account:token")
    assert (
        "token-0123456789"
        not in codec.decode_error(
            400, {}, b'{"error":{"message":"no token-0123456789"}}', 0, "account:token-0123456789"
        ).message
    )
