"""The legacy completions API through the official client, over upstreams that chat."""

from typing import Any

import pytest
from openai import BadRequestError
from openai.types import Completion

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import Client, awaited, listed, steer

pytestmark = pytest.mark.sdk


async def completed(client: Client, prompt: Any, **options: Any) -> Completion:
    answer = await awaited(client.completions.create(model="auto", prompt=prompt, **options))
    assert isinstance(answer, Completion)
    return answer


@pytest.mark.parametrize("prompt", ["tell me", ["tell me"]])
async def test_prompt_is_gone_on_from(client: Client, prompt: Any) -> None:
    answer = await completed(client, prompt)

    assert answer.object == "text_completion"
    assert answer.choices[0].text == expected_text("tell me", tokens=16)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16


async def test_answer_has_128_tokens_unless_asked_otherwise(client: Client) -> None:
    short = await completed(client, steer(tokens=500))
    long = await completed(client, steer(tokens=500), max_tokens=200)

    assert short.usage is not None
    assert long.usage is not None
    assert (short.usage.completion_tokens, long.usage.completion_tokens) == (128, 200)
    assert short.choices[0].finish_reason == "length"


async def test_choices_of_a_stream_keep_apart(client: Client) -> None:
    opened = await awaited(
        client.completions.create(
            model="auto",
            prompt="thrice",
            n=3,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    received = await listed(opened)

    for number in range(3):
        text = "".join(
            choice.text for chunk in received for choice in chunk.choices if choice.index == number
        )
        assert text == expected_text("thrice", tokens=16, choice=number)
    assert received[-1].usage.completion_tokens == 48
    assert {chunk.object for chunk in received} == {"text_completion"}


@pytest.mark.parametrize(
    "members", [{"echo": True}, {"suffix": "end"}, {"logprobs": 2}, {"best_of": 3}]
)
async def test_what_a_chat_cannot_honour_is_a_bad_request(
    client: Client, members: dict[str, Any]
) -> None:
    with pytest.raises(BadRequestError) as caught:
        await completed(client, "x", **members)

    assert caught.value.param in members


@pytest.mark.parametrize("prompt", [[1, 2], ["a", "b"], []])
async def test_prompts_of_tokens_or_of_many_texts_are_bad_requests(
    client: Client, prompt: Any
) -> None:
    with pytest.raises(BadRequestError) as caught:
        await completed(client, prompt)

    assert caught.value.param == "prompt"
