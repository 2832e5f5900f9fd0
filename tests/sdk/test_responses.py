"""The Responses API through the official client, over upstreams that chat."""

from typing import Any

import msgspec
import pytest
from openai import APIError, BadRequestError, InternalServerError, NotFoundError
from openai.types.responses import Response
from pydantic import BaseModel

from cluster_gw.simulator.sample_text import expected_text
from tests.fakes.responses_upstream import PROOF, STORY
from tests.sdk.calls import Client, awaited, chunks, complete, listed, steer

pytestmark = pytest.mark.sdk

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}
CALLS = [
    {"id": "call_one", "name": "weather", "arguments": {"city": "Oslo", "days": 1}},
    {"id": "call_two", "name": "weather", "arguments": {"city": "Rome", "days": 2}},
]


class Place(BaseModel):
    """What is asked for in structured output."""

    city: str
    days: int


async def respond(client: Client, text: Any, **options: Any) -> Response:
    options = {"model": "auto", "input": text, **options}
    answer = await awaited(client.responses.create(**options))
    assert isinstance(answer, Response)
    return answer


async def events_of(client: Client, text: Any, **options: Any) -> list[Any]:
    options = {"model": "auto", "input": text, "stream": True, **options}
    return await listed(await awaited(client.responses.create(**options)))


async def accumulated(client: Client, text: Any, **options: Any) -> tuple[list[Any], Any]:
    """Events and final response of the SDK's stream helper."""
    options = {"model": "auto", "input": text, **options}
    manager: Any = client.responses.stream(**options)
    if hasattr(manager, "__aenter__"):
        async with manager as opened:
            return await listed(opened), await opened.get_final_response()
    with manager as opened:
        return await listed(opened), opened.get_final_response()


async def test_text_is_answered(client: Client) -> None:
    answer = await respond(client, "tell me", instructions="be kind", metadata={"a": "b"})

    assert answer.output_text == expected_text("tell me", tokens=16)
    assert (answer.status, answer.object) == ("completed", "response")
    assert answer.model_dump()["store"] is False
    assert (answer.instructions, answer.metadata) == ("be kind", {"a": "b"})
    assert answer.usage is not None
    assert answer.usage.output_tokens == 16
    assert answer.usage.total_tokens == answer.usage.input_tokens + 16


async def test_stream_is_the_buffered_answer_in_pieces(client: Client) -> None:
    received = await events_of(client, "tell me")

    kinds = [event.type for event in received]
    text = "".join(e.delta for e in received if e.type == "response.output_text.delta")
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in received] == list(range(len(received)))
    assert text == expected_text("tell me", tokens=16)
    assert received[-1].response.output_text == text
    assert received[-1].response.usage.output_tokens == 16


async def test_parallel_calls_of_tools_and_their_results(client: Client) -> None:
    asked = [{"role": "user", "content": steer(tool_calls=CALLS)}]
    answer = await respond(client, asked, tools=[WEATHER])

    calls = [item for item in answer.output if item.type == "function_call"]
    assert [call.call_id for call in calls] == ["call_one", "call_two"]
    assert [msgspec.json.decode(call.arguments) for call in calls] == [
        call["arguments"] for call in CALLS
    ]

    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        for call in calls
    ]
    said = [item.model_dump(exclude_none=True) for item in answer.output]
    history: list[Any] = [{"role": "user", "content": "weather?"}, *said, *results]
    after = await respond(client, history, tools=[WEATHER])
    assert after.status == "completed"
    assert after.output_text


async def test_accumulated_stream_puts_parallel_calls_together(client: Client) -> None:
    events, final = await accumulated(client, steer(tool_calls=CALLS), tools=[WEATHER])

    done = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert [call.call_id for call in final.output] == ["call_one", "call_two"]
    assert [msgspec.json.decode(event.arguments) for event in done] == [
        call["arguments"] for call in CALLS
    ]


async def test_structured_output_is_parsed(client: Client) -> None:
    parsed: Any = await awaited(
        client.responses.parse(model="auto", input="where?", text_format=Place)
    )

    assert isinstance(parsed.output_parsed, Place)


async def test_accumulated_stream_is_parsed(client: Client) -> None:
    _, final = await accumulated(client, "where?", text_format=Place)

    assert isinstance(final.output_parsed, Place)


async def test_answer_that_is_cut_short_is_incomplete(client: Client) -> None:
    answer = await respond(client, steer(tokens=40), max_output_tokens=20)
    received = await events_of(client, steer(tokens=40), max_output_tokens=20)

    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert received[-1].type == "response.incomplete"


@pytest.mark.parametrize(
    "members", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}]
)
async def test_what_nobody_keeps_is_not_found(client: Client, members: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError) as caught:
        await respond(client, "go on", **members)

    assert caught.value.code == "response_not_found"
    assert caught.value.param in members
    assert "as input" in caught.value.message


async def test_misshapen_item_is_a_bad_request_that_names_it(client: Client) -> None:
    with pytest.raises(BadRequestError) as caught:
        await respond(client, [{"role": "user", "content": 5}])

    assert caught.value.param == "input[0].content"


async def test_failure_of_all_upstreams_is_an_internal_server_error(
    client: Client, suite: str
) -> None:
    with pytest.raises(InternalServerError) as caught:
        await respond(client, steer(fault={"kind": "status", "code": 500}), model=f"{suite}-down")

    assert caught.value.code == "upstream_failed"


async def test_stream_that_breaks_raises_in_the_iteration(client: Client, suite: str) -> None:
    text = steer(tokens=40, fault={"kind": "in_band_error", "at_frame": 9})

    with pytest.raises(APIError) as caught:
        await events_of(client, text, model=f"{suite}-cut")

    assert caught.value.code == "stream_interrupted"


async def test_upstream_of_the_same_api_is_heard_as_it_speaks(client: Client) -> None:
    answer = await respond(client, "think", model="responses")
    events, final = await accumulated(client, "think", model="responses")

    assert answer.output_text == final.output_text == STORY
    assert answer.output[0].type == final.output[0].type == "reasoning"
    assert answer.output[0].encrypted_content == PROOF
    assert "response.reasoning_summary_text.delta" in {event.type for event in events}


async def test_upstream_of_the_same_api_gives_structured_output(client: Client) -> None:
    parsed: Any = await awaited(
        client.responses.parse(model="responses", input="place", text_format=Place)
    )

    assert parsed.output_parsed == Place(city="Oslo", days=3)


async def test_refusal_of_the_same_api_passes_as_it_is(client: Client) -> None:
    answer = await respond(client, "refuse", model="responses")

    assert answer.output[0].type == "message"
    assert answer.output[0].content[0].type == "refusal"


async def test_chat_client_uses_tools_of_an_upstream_of_the_responses_api(client: Client) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    answer = await complete(client, "call", model="responses", tools=tools)
    received = await chunks(client, "call", model="responses", tools=tools)

    calls = answer.choices[0].message.tool_calls or []
    begun = [
        (call.id, call.function.name)
        for chunk in received
        for choice in chunk.choices
        for call in choice.delta.tool_calls or ()
        if call.id and call.function
    ]
    assert [call.id for call in calls] == ["call_one", "call_two"]
    assert begun == [("call_one", "weather"), ("call_two", "weather")]
    assert received[-1].choices[0].finish_reason == "tool_calls"


async def test_answer_that_the_upstream_keeps_is_gone_on_from(client: Client) -> None:
    first = await respond(client, "keep", model="responses")
    _, second = await accumulated(client, "keep", model="responses", previous_response_id=first.id)
    third = await respond(client, "keep", model="responses", previous_response_id=second.id)

    assert len({first.id, second.id, third.id}) == 3


async def test_answer_that_is_not_kept_cannot_be_gone_on_from(client: Client) -> None:
    unkept = await respond(client, "keep", model="responses", store=False)

    for name in (unkept.id, "resp_unknown"):
        with pytest.raises(NotFoundError) as caught:
            await respond(client, "keep", model="responses", previous_response_id=name)
        assert caught.value.code == "response_not_found"


async def test_chat_client_gets_structured_output_of_the_responses_api(client: Client) -> None:
    parsed: Any = await awaited(
        client.chat.completions.parse(
            model="responses",
            messages=[{"role": "user", "content": "place"}],
            response_format=Place,
        )
    )

    assert parsed.choices[0].message.parsed == Place(city="Oslo", days=3)
