"""Buffered answers: content, choices, tools, formats, images, and what passes through."""

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import PIXEL, WEATHER, Client, awaited, complete, steer
from tests.sdk.conftest import Simulator
from tests.sdk.mirror import NOTE

pytestmark = pytest.mark.sdk


class Place(BaseModel):
    city: str
    days: int
    tags: list[str]


async def mirrored(client: Client, text: Any, **options: Any) -> dict[str, Any]:
    """What the upstream received of a request."""
    answer = await complete(client, text, model="mirror", **options)
    seen: dict[str, Any] = msgspec.json.decode(answer.choices[0].message.content or "")
    return seen


async def test_answer_has_the_whole_text_and_exact_usage(client: Client) -> None:
    answer = await complete(client, "what is there?")

    choice = answer.choices[0]
    assert answer.object == "chat.completion"
    assert choice.message.role == "assistant"
    assert choice.message.content == expected_text("what is there?", tokens=16)
    assert choice.finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 4
    assert answer.usage.completion_tokens == 16
    assert answer.usage.total_tokens == 20


async def test_every_choice_of_n_has_its_own_text(client: Client) -> None:
    answer = await complete(client, "thrice", n=3)

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.message.content for choice in answer.choices] == [
        expected_text("thrice", tokens=16, choice=choice) for choice in range(3)
    ]


async def test_log_probabilities_cover_the_text(client: Client) -> None:
    answer = await complete(client, "how sure?", logprobs=True, top_logprobs=2)

    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    text = "".join(entry.token for entry in logprobs.content)
    assert text == answer.choices[0].message.content
    assert all(len(entry.top_logprobs) == 2 for entry in logprobs.content)


async def test_output_bound_ends_with_finish_length(client: Client) -> None:
    answer = await complete(client, "be short", max_completion_tokens=3)

    assert answer.choices[0].message.content == expected_text("be short", tokens=3)
    assert answer.choices[0].finish_reason == "length"


async def test_seed_decides_the_answer_and_the_fingerprint_comes_back(client: Client) -> None:
    first = await complete(client, "dice", seed=7)
    second = await complete(client, "dice", seed=7)

    assert first.choices[0].message.content == expected_text("dice", tokens=16, request_seed=7)
    assert second.choices[0].message.content == first.choices[0].message.content
    assert (first.system_fingerprint or "").startswith("fp_")


async def test_forced_tool_is_called_with_arguments_of_its_schema(client: Client) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}

    answer = await complete(client, "rain?", tools=[WEATHER], tool_choice=choice)

    calls = answer.choices[0].message.tool_calls or []
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.content is None
    assert [call.type for call in calls] == ["function"]
    assert calls[0].type == "function"
    assert calls[0].function.name == "weather"
    assert set(msgspec.json.decode(calls[0].function.arguments)) == {"city", "days"}


async def test_tool_results_are_answered(client: Client) -> None:
    asked = await complete(client, "rain?", tools=[WEATHER], tool_choice="required")
    message = asked.choices[0].message
    call = (message.tool_calls or [])[0]
    messages = [
        {"role": "user", "content": "rain?"},
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": '{"rain": false}'},
    ]

    answer = await complete(client, "", messages=messages, tools=[WEATHER])

    assert answer.choices[0].message.content == expected_text("rain?", tokens=16)


async def test_json_mode_gives_a_json_object(client: Client) -> None:
    answer = await complete(client, "as json", response_format={"type": "json_object"})

    document = msgspec.json.decode(answer.choices[0].message.content or "")
    assert document == {"answer": expected_text("as json", tokens=16)}


async def test_parse_gives_the_model_of_a_json_schema(client: Client) -> None:
    messages: Any = [{"role": "user", "content": "where?"}]

    answer = await awaited(
        client.chat.completions.parse(model="auto", messages=messages, response_format=Place)
    )

    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Place)
    assert parsed.model_dump_json() == answer.choices[0].message.content


async def test_image_reaches_a_model_that_sees(
    client: Client, simulator: Simulator, suite: str
) -> None:
    name = f"image-{suite}"
    parts = [
        {"type": "text", "text": steer(id=name, text="a dot")},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
    ]

    answer = await complete(client, parts)

    assert answer.choices[0].message.content == "a dot"
    assert simulator.images(name) == 1


async def test_system_and_developer_messages_arrive_as_they_are(client: Client) -> None:
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "name": "ann", "content": "größe 🌊"},
    ]

    seen = await mirrored(client, "", messages=messages)

    assert seen["body"]["messages"] == messages


async def test_fields_nobody_knows_pass_in_both_directions(client: Client) -> None:
    options = {"seed": 4, "metadata": {"team": "a"}, "extra_body": {"vendor_knob": {"depth": 3}}}

    answer = await complete(client, "hi", model="mirror", **options)

    seen = msgspec.json.decode(answer.choices[0].message.content or "")["body"]
    assert seen["vendor_knob"] == {"depth": 3}
    assert seen["seed"] == 4
    assert seen["metadata"] == {"team": "a"}
    assert answer.system_fingerprint == "fp_mirror"
    assert (answer.model_extra or {})["vendor_note"] == {"text": NOTE}


async def test_upstream_sees_its_own_key_and_model_and_nothing_of_the_client(
    client: Client,
) -> None:
    seen = await mirrored(client, "hi", extra_headers={"x-secret-of-the-app": "1"})

    assert seen["body"]["model"] == "echo"
    assert seen["headers"]["authorization"] == "Bearer upstream-mirror"
    assert "x-secret-of-the-app" not in seen["headers"]
    assert not [name for name in seen["headers"] if name.startswith("x-stainless")]
