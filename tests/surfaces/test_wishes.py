"""`models` and `provider` are read, checked, and not sent on."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.request import ChatRequest, SortBy, Wishes
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_completions import ChatCompletions

MESSAGES = [{"role": "user", "content": "hi"}]


def decoded(**members: Any) -> ChatRequest | ErrorBody:
    body = {"model": "auto", "messages": MESSAGES, **members}
    return ChatCompletions().decode_request(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("members", "wishes"),
    [
        ({}, None),
        ({"models": None, "provider": None}, None),
        ({"models": [], "provider": {"order": [], "ignore": []}}, None),
        ({"models": ["b", "c"]}, Wishes(models=("b", "c"))),
        (
            {"provider": {"order": ["x"], "only": ["x", "y"], "ignore": ["z"]}},
            Wishes(order=("x",), only=("x", "y"), ignore=("z",)),
        ),
        ({"provider": {"only": []}}, Wishes(only=())),
        (
            {"provider": {"order": ["x", "y"], "allow_fallbacks": False}},
            Wishes(order=("x", "y"), only=("x", "y")),
        ),
        (
            {"provider": {"order": ["x", "y"], "only": ["y", "z"], "allow_fallbacks": False}},
            Wishes(order=("x", "y"), only=("y",)),
        ),
        ({"provider": {"order": ["x"], "allow_fallbacks": True}}, Wishes(order=("x",))),
        ({"provider": {"allow_fallbacks": False}}, None),
        ({"provider": {"sort": "price"}}, Wishes(sort=SortBy.PRICE)),
        (
            {"provider": {"sort": {"by": "latency", "partition": "none"}}},
            Wishes(sort=SortBy.LATENCY),
        ),
        ({"provider": {"sort": None}}, None),
    ],
)
def test_wishes_are_read(members: dict[str, Any], wishes: Wishes | None) -> None:
    request = decoded(**members)

    assert isinstance(request, ChatRequest)
    assert request.wishes == wishes


def test_no_upstream_sees_what_names_the_gateways_own() -> None:
    request = decoded(models=["b"], provider={"order": ["x"], "zdr": True}, seed=1)

    assert isinstance(request, ChatRequest)
    assert list(request.fields) == ["model", "messages", "seed", "provider"]
    assert bytes(request.fields["provider"]) == b'{"zdr":true}'


def test_a_provider_that_is_all_ours_is_taken_out() -> None:
    request = decoded(provider={"order": ["x"]})

    assert isinstance(request, ChatRequest)
    assert "provider" not in request.fields


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"models": "b"}, "models"),
        ({"models": ["b", 1]}, "models[1]"),
        ({"models": ["b"] * 33}, "models"),
        ({"provider": "x"}, "provider"),
        ({"provider": {"order": "x"}}, "provider.order"),
        ({"provider": {"only": [None]}}, "provider.only[0]"),
        ({"provider": {"allow_fallbacks": "no"}}, "provider.allow_fallbacks"),
        ({"provider": {"ignore": ["x"] * 33}}, "provider.ignore"),
        ({"provider": {"sort": "cheapest"}}, "provider.sort"),
        ({"provider": {"sort": {}}}, "provider.sort.by"),
        ({"provider": {"sort": {"by": "x"}}}, "provider.sort.by"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(members: dict[str, Any], param: str) -> None:
    refused = decoded(**members)

    assert isinstance(refused, ErrorBody)
    assert (refused.status, refused.code, refused.param) == (400, "invalid_request", param)
