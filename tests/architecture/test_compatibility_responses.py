"""What docs/compatibility.md says of the Responses API and of completions is what the code does."""

import re
from typing import Any

import msgspec

from cluster_gw.canonical.conversation import Conversation, Role, Sampling, Text, Turn
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.errors import ErrorBody
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces.completions import DEFAULT_MAX_TOKENS, Completions
from cluster_gw.surfaces.responses import Responses
from cluster_gw.surfaces.responses_conversation import KNOWN, SILENT
from cluster_gw.wire.openai_responses import KEPT_FOR_OTHERS
from tests.architecture.test_compatibility import PAGE, groups, row

SURFACE, PROVIDER, COMPLETIONS = (
    PAGE.partition(f"\n## {title}")[2].partition("\n## ")[0]
    for title in (
        "`POST /v1/responses` over",
        "Other APIs over a provider of the Responses API",
        "`POST /v1/completions`",
    )
)
OBEYED = {"model", "models", "provider", "background", "stream_options"}


def lost_by(**members: Any) -> tuple[str, ...]:
    request = Responses().decode_request(msgspec.json.encode({"input": "hi", **members}))
    assert isinstance(request, ChatRequest)
    return Responses().read_conversation(request).lost


def test_members_that_are_silent_stand_on_the_page() -> None:
    silent, _ = row(SURFACE, "`metadata`")

    assert set(groups(silent)[0]) == SILENT - OBEYED


def test_members_that_are_lost_stand_on_the_page() -> None:
    cell, _ = row(SURFACE, "`max_tool_calls`")
    named = re.findall(r"`([a-z_]+)`", cell)

    assert not set(named) & KNOWN
    for name in named:
        assert lost_by(**{name: {} if name == "prompt" else "x"}) == (name,)
    assert lost_by(text={"verbosity": "low"}, truncation="auto", include=["y"]) == (
        "text.verbosity",
        "truncation",
        "include: y",
    )


def test_what_a_provider_of_the_responses_api_loses_stands_on_the_page() -> None:
    cell, _ = row(PROVIDER, "`stop`")
    turn = Turn(role=Role.USER, parts=(Text(text="hi"),))
    sampling = Sampling(
        stop=("x",),
        seed=1,
        top_k=1,
        choices=2,
        top_logprobs=1,
        presence_penalty=0.1,
        frequency_penalty=0.1,
    )

    translated = OpenAIResponsesProvider().encode_conversation(
        Conversation(turns=(turn,), sampling=sampling), "up"
    )

    assert set(groups(cell)[0]) == set(translated.lost)


def test_what_completions_refuse_stands_on_the_page() -> None:
    assert f"`max_tokens` is {DEFAULT_MAX_TOKENS} unless" in COMPLETIONS
    wrong: dict[str, Any] = {"echo": True, "suffix": "x", "logprobs": 1, "best_of": 2}
    for name, value in wrong.items():
        assert f"`{name}`" in COMPLETIONS
        error = Completions().decode_request(msgspec.json.encode({"prompt": "x", name: value}))
        assert isinstance(error, ErrorBody)
        assert error.param == name


def test_mark_of_other_vendors_signatures_stands_on_the_page() -> None:
    assert f"begins with `{KEPT_FOR_OTHERS}`" in SURFACE
