"""The upstream codec of Gemini's dialect, apart from its streams."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import (
    AnswerFormat,
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
    Translated,
    Turn,
)
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import FailureClass, Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.outcome.classify import classify
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.surfaces.gemini import GenerateContent

PLAIN = GeminiProvider()
HI = Turn(role=Role.USER, parts=(Text(text="hi"),))
KIND = Turn(role=Role.SYSTEM, parts=(Text(text="be kind"),))
JSON = "application/json"


def encoded(
    *turns: Turn, model: str = "gemini-2.5-flash", **more: Any
) -> tuple[dict[str, Any], Translated]:
    given = PLAIN.encode_conversation(Conversation(turns=turns, **more), model)
    document: dict[str, Any] = msgspec.json.decode(given.body)
    return document, given


def passed(body: dict[str, Any], model: str, **change: Any) -> dict[str, Any]:
    """What a request of the same dialect becomes."""
    request = GenerateContent("m").decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    request = msgspec.structs.replace(request, **change)
    document: dict[str, Any] = msgspec.json.decode(PLAIN.encode_request(request, model))
    return document


@pytest.mark.parametrize(
    ("base", "model", "url"),
    [
        ("https://h", "gemini-x", "https://h/v1beta/models/gemini-x"),
        ("https://h/v1beta/", "models/gemini-x", "https://h/v1beta/models/gemini-x"),
        ("https://h/g/v1", "tunedModels/a b", "https://h/g/v1/tunedModels/a%20b"),
        ("https://h/v1alpha", "a/b:free?x#y", "https://h/v1alpha/models/a/b:free%3Fx%23y"),
    ],
)
def test_the_model_stands_in_the_url_and_the_key_never(base: str, model: str, url: str) -> None:
    assert PLAIN.url(base, model) == f"{url}:generateContent"
    assert PLAIN.stream_url(base, model) == f"{url}:streamGenerateContent?alt=sse"
    assert ("x-goog-api-key", "k") in PLAIN.request_headers("k")
    assert not any("key" in name for name, _ in PLAIN.request_headers(None))


def test_a_key_is_checked_by_the_list_of_models() -> None:
    assert PLAIN.check_url("https://h/v1beta") == "https://h/v1beta/models?pageSize=1"
    assert GeminiProvider(["metered_checks"]).check_url("https://h") is None


@pytest.mark.parametrize("model", ["gemma-3-27b-it", "models/gemma-3n-e4b"])
def test_a_model_without_system_texts_hears_them_from_the_user(model: str) -> None:
    document, given = encoded(KIND, HI, model=model)
    native = passed(
        {"contents": {"parts": {"text": "hi"}}, "systemInstruction": {"parts": {"text": "s"}}},
        model,
    )

    assert "systemInstruction" not in document
    assert document["contents"] == [
        {"role": "user", "parts": [{"text": "be kind"}, {"text": "hi"}]}
    ]
    assert given.changed == ("system -> the first user turn",)
    assert native == {"contents": [{"role": "user", "parts": [{"text": "s"}, {"text": "hi"}]}]}


def test_system_texts_alone_are_said_by_the_user_and_later_ones_move() -> None:
    alone, _ = encoded(KIND)
    late, given = encoded(HI, KIND)
    spoken, _ = encoded(KIND, Turn(role=Role.ASSISTANT, parts=(Text(text="a"),)), model="gemma-3")

    assert alone == {"contents": [{"role": "user", "parts": [{"text": "be kind"}]}]}
    assert late["systemInstruction"] == {"parts": [{"text": "be kind"}]}
    assert given.changed == ("turn 2: system -> in front of everything",)
    assert [one["role"] for one in spoken["contents"]] == ["user", "model"]


def test_a_bound_of_ours_goes_in_place_of_the_clients() -> None:
    body = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"topK": 3}}

    sent = passed(body, "gemini-x", max_tokens=9, is_bounded=True)

    assert sent["generationConfig"] == {"topK": 3, "maxOutputTokens": 9}


def test_a_thought_that_another_vendor_signed_loses_its_signature_in_the_same_dialect() -> None:
    thought = {"text": "hm", "thought": True}
    signed = {**thought, "thoughtSignature": "Z3c6Y2xhdWRlc2ln"}
    own = {**thought, "thoughtSignature": "c2ln"}
    body = {"contents": [{"role": "model", "parts": [signed, own]}]}

    assert passed(body, "gemini-2.5-pro")["contents"][0]["parts"] == [thought, own]


@pytest.mark.parametrize(
    ("model", "is_signed"),
    [("gemini-3-pro", True), ("gemini-2.5-pro", False), ("gemma-3", False), ("gemini-pro", True)],
)
def test_the_first_call_of_a_turn_is_signed_where_the_model_wants_it(
    model: str, is_signed: bool
) -> None:
    calls = tuple(ToolUse(id=f"c{n}", name="f") for n in range(2))

    document, _ = encoded(HI, Turn(role=Role.ASSISTANT, parts=calls), model=model)

    first, second = document["contents"][1]["parts"]
    assert first.get("thoughtSignature") == (
        "skip_thought_signature_validator" if is_signed else None
    )
    assert "thoughtSignature" not in second


def test_results_are_told_by_the_name_of_their_call() -> None:
    call = ToolUse(id="c1", name="look", arguments="")
    results = (
        ToolResult(call_id="c1", parts=(Text(text='{"a": 1}'), Media(media_type="image/png"))),
        ToolResult(call_id="c2", parts=(Text(text="no"),), is_error=True),
    )

    document, given = encoded(
        HI, Turn(role=Role.ASSISTANT, parts=(call,)), Turn(role=Role.USER, parts=results)
    )

    first, media, second = document["contents"][2]["parts"]
    assert document["contents"][1]["parts"][0]["functionCall"]["args"] == {}
    assert first["functionResponse"] == {"id": "c1", "name": "look", "response": {"a": 1}}
    assert media == {"inlineData": {"mimeType": "image/png", "data": ""}}
    assert second["functionResponse"] == {"id": "c2", "name": "c2", "response": {"error": "no"}}
    assert len(given.changed) == 2


def test_what_cannot_be_said_is_named() -> None:
    tool = Tool(
        name="f",
        schema=msgspec.Raw(b'{"type":"object","properties":{"a":{"not":{}}}}'),
        is_strict=True,
    )
    turn = Turn(
        role=Role.ASSISTANT,
        parts=(
            Thinking(text="hm", signature="Z3c6Y2xhdWRlc2ln"),
            Refusal(text="no"),
            ToolUse(id="c", name="f", arguments="[1]"),
        ),
    )
    image = Turn(role=Role.USER, parts=(Media(url="https://h/a.PNG?x", detail="low"),))

    document, given = encoded(
        image,
        turn,
        tools=(tool,),
        tool_choice=ToolChoice(how=Choosing.NAMED, name="f", parallel=False),
        format=AnswerFormat(description="d"),
        sampling=Sampling(stop=tuple("abcdefg"), effort="most"),
        user="u",
        model="gemini-3-pro-preview",
    )

    assert set(given.lost) == {
        *("turn 1: image detail", "turn 2: thinking", "tool f: strict", "parallel_tool_calls"),
        *("response_format.description", "user", "reasoning_effort most"),
    }
    assert given.changed == (
        "turn 2: arguments of f -> malformed_arguments",
        "tool f: schema without not",
        "stop: 7 texts -> 5",
    )
    assert document["contents"][0]["parts"][0]["fileData"]["mimeType"] == "image/png"
    assert document["contents"][1]["parts"][0] == {"text": "no"}
    calling = document["toolConfig"]["functionCallingConfig"]
    assert calling == {"mode": "ANY", "allowedFunctionNames": ["f"]}


@pytest.mark.parametrize(
    ("model", "is_told"),
    [
        ("gemini-2.5-flash", False),
        ("models/gemini-2.0-flash", False),
        ("gemma-3-27b-it", False),
        ("gemini-3-pro-preview", True),
    ],
)
def test_models_that_call_or_format_are_not_asked_for_both(model: str, is_told: bool) -> None:
    turn = Turn(role=Role.USER, parts=(Text(text="hi"),))
    document, given = encoded(turn, tools=(Tool(name="f"),), format=AnswerFormat(), model=model)
    alone, _ = encoded(turn, format=AnswerFormat(), model=model)

    assert ("responseMimeType" in document.get("generationConfig", {})) is is_told
    assert ("response_format beside tools" in given.lost) is not is_told
    assert alone["generationConfig"]["responseMimeType"] == "application/json"


@pytest.mark.parametrize(
    ("sampling", "model", "thinking"),
    [
        ({"effort": "none"}, "gemini-2.5-flash", {"thinkingBudget": 0}),
        ({"effort": "minimal"}, "gemini-2.5-pro", {"thinkingBudget": 128, "includeThoughts": True}),
        ({"effort": "medium"}, "x", {"thinkingBudget": 8192, "includeThoughts": True}),
        (
            {"effort": "high", "thinking_tokens": 99, "shows_thinking": False},
            "x",
            {"thinkingBudget": 99, "includeThoughts": False},
        ),
        ({"shows_thinking": True}, "x", {"includeThoughts": True}),
    ],
)
def test_effort_is_a_budget_of_thoughts(
    sampling: dict[str, Any], model: str, thinking: dict[str, Any]
) -> None:
    document, _ = encoded(HI, model=model, sampling=Sampling(**sampling))

    assert document["generationConfig"]["thinkingConfig"] == thinking


def test_empty_turns_are_not_sent() -> None:
    document, _ = encoded(HI, Turn(role=Role.ASSISTANT, parts=(Text(text=""),)))

    assert len(document["contents"]) == 1


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b'{"error":{"code":503,"message":"m"}}', JSON, FaultKind.IN_BAND),
        (b'[{"error":{"code":503,"message":"m"}}]', JSON, FaultKind.IN_BAND),
        (b'{"candidates":7,"error":{"message":"m"}}', JSON, FaultKind.IN_BAND),
        (b'{"candidates":7}', JSON, FaultKind.MALFORMED),
        (b"{}", JSON, FaultKind.MALFORMED),
        (b"no", JSON, FaultKind.MALFORMED),
        (b"<html>", "text/html", FaultKind.CONTENT_TYPE),
        (
            b'{"candidates":[{"finishReason":"UNEXPECTED_TOOL_CALL"}]}',
            JSON,
            FaultKind.IN_BAND,
        ),
    ],
)
def test_a_good_status_without_an_answer_is_a_fault(
    body: bytes, content_type: str, kind: FaultKind
) -> None:
    fault = PLAIN.decode_completion(body, content_type)

    assert isinstance(fault, Fault)
    assert fault.kind is kind


def test_half_an_emoji_does_not_spoil_an_answer() -> None:
    body = rb'{"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]},"finishReason":"STOP"}]}'

    completion = PLAIN.decode_completion(body, JSON)

    assert isinstance(completion, Completion)
    assert completion.raw == body
    assert completion.text == "a?"


def test_a_blocked_prompt_is_an_answer_that_was_filtered() -> None:
    completion = PLAIN.decode_completion(b'{"promptFeedback":{"blockReason":"SAFETY"}}', JSON)

    assert isinstance(completion, Completion)
    assert completion.finish_reason == "content_filter"
    [choice] = PLAIN.read_answer(completion).choices
    assert (choice.parts, choice.finish_reason) == ((), "content_filter")


def test_a_key_that_is_not_valid_is_known_by_its_message() -> None:
    body = (
        b'{"error":{"code":400,"message":"API key not valid. AIzaSyX","status":"INVALID_ARGUMENT"}}'
    )

    fault = PLAIN.decode_error(400, {}, body, 0, "AIzaSyX")

    assert classify(fault).failure_class is FailureClass.AUTH
    assert "AIzaSyX" not in fault.message


def test_a_used_up_quota_is_known_by_its_details() -> None:
    detail: dict[str, Any] = {
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": "7s",
    }
    violations = [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]
    error = {"code": 429, "message": "m", "details": [detail, {"violations": violations}]}

    fault = PLAIN.decode_error(429, {}, msgspec.json.encode([{"error": error}]), 0)

    assert fault.retry_after_ms == 7000
    assert fault.code == violations[0]["quotaId"]


def test_what_is_no_stream_is_told_as_what_it_is() -> None:
    error = b'[{"error":{"code":429,"message":"m"}}]'

    assert not PLAIN.is_stream("application/json; charset=UTF-8")
    assert PLAIN.is_stream("text/event-stream")
    assert PLAIN.decode_not_stream(error, JSON).status == 429
    assert PLAIN.decode_not_stream(b"{}", JSON).kind is FaultKind.CONTENT_TYPE
