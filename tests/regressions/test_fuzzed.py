"""Inputs that the fuzzer found, and what became of them."""

import msgspec

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.completions import Completions
from cluster_gw.surfaces.responses import Responses
from tests.fuzz.codecs import head

NO_TEXT_ERROR = b'{"error":{"code":503,"message":"m","status":"UNAVAILABLE","x":"\xff"}}'
PIECE = "x" * 1_048_576


def test_an_error_of_gemini_with_bytes_that_are_no_text_is_that_error() -> None:
    fault = GeminiProvider().decode_completion(NO_TEXT_ERROR, "application/json")

    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.IN_BAND
    assert fault.message == "m"


def test_such_an_error_inside_a_stream_is_that_error() -> None:
    events = GeminiProvider().stream_decoder().decode(b"data: " + NO_TEXT_ERROR + b"\n\n")

    assert [event.fault and event.fault.kind for event in events] == [FaultKind.IN_BAND]


def test_a_completion_is_told_although_an_unread_member_is_no_text() -> None:
    body = b'{"choices":[{"message":{"content":"hi"}}],"x":"\xff"}'
    found = OpenAIChatProvider().decode_completion(body, "application/json")
    assert isinstance(found, Completion)

    told = msgspec.json.decode(Completions().encode_completion(found))

    assert told["choices"][0]["text"] == "hi"


def test_calls_of_anthropic_that_never_end_are_a_fault() -> None:
    decoder = AnthropicProvider().stream_decoder()
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": PIECE}}
    events: list[StreamEvent] = []

    for index in range(8):
        frame = {"type": "content_block_start", "index": index, "content_block": block}
        events += decoder.decode(b"data: " + msgspec.json.encode(frame) + b"\n\n")

    assert [event.fault is not None for event in events] == [False, False, False, True]
    assert events[-1].fault is not None
    assert events[-1].fault.kind is FaultKind.TOO_LARGE


def test_more_calls_than_anybody_makes_are_a_fault_of_a_stream_of_responses() -> None:
    decoder = OpenAIResponsesProvider().stream_decoder()
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    events: list[StreamEvent] = []

    for index in range(5000):
        frame = {"type": "response.output_item.added", "output_index": index, "item": item}
        events += decoder.decode(b"data: " + msgspec.json.encode(frame) + b"\n\n")

    assert len(events) == 4097
    assert events[-1].fault is not None
    assert events[-1].fault.kind is FaultKind.TOO_LARGE


def test_a_written_response_above_its_bound_ends_as_one_that_was_too_long() -> None:
    stream = Responses().stream_encoder(head(is_native=False))

    sizes = [len(stream.encode(StreamEvent(text=PIECE))) > 0 for _ in range(20)]
    last = stream.done().rpartition(b"data: ")[2]

    assert sizes == [True] * 16 + [False] * 4
    response = msgspec.json.decode(last)["response"]
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert len(response["output"][0]["content"][0]["text"]) == 16 * len(PIECE)


def test_arguments_of_gemini_with_bytes_that_are_no_text_are_told() -> None:
    part = b'{"functionCall":{"name":"f","args":{"a":"\xff"}}}'
    call = b'{"candidates":[{"content":{"parts":[' + part + b"]}}]}"

    events = GeminiProvider().stream_decoder().decode(b"data: " + call + b"\n\n")

    assert events[0].tool_calls[0].arguments == '{"a":"\ufffd"}'


def test_a_schema_with_a_number_beyond_a_double_goes_on_as_it_is() -> None:
    schema = b'{"type":"object","properties":{"a":{"maximum":2e308}}}'
    wanted = b'{"type":"json_schema","json_schema":{"name":"n","schema":' + schema + b"}}"
    body = b'{"messages":[{"role":"user","content":"hi"}],"response_format":' + wanted + b"}"
    surface = ChatCompletions()
    request = surface.decode_request(body)
    assert isinstance(request, ChatRequest)

    conversation = surface.read_conversation(request)

    for codec in (AnthropicProvider(), OpenAIResponsesProvider()):
        assert schema in codec.encode_conversation(conversation, "up").body


def test_an_id_that_is_a_number_beyond_a_double_goes_on_as_it_is() -> None:
    body = b'{"id":1e316,"created":0,"choices":[{"message":{"content":"hi"}}]}'
    completion = OpenAIChatProvider().decode_completion(body, "application/json")
    assert isinstance(completion, Completion)

    assert b'"id":1e316' in Completions().encode_completion(completion)
