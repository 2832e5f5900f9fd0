"""A long request that is taken apart first is read as if it had not been."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.chat_split import LONG_BYTES, STAND_IN, read_split
from cluster_gw.wire.json_codec import InvalidJsonError, read_fields
from cluster_gw.wire.openai_chat import CHAT_READER

LONG = "the quick brown fox " * (LONG_BYTES // 20 + 1)
TEXTS = st.sampled_from(
    [LONG, LONG + '"}],"messages":[{"', LONG + "\\u0022}]", "", "ü" * LONG_BYTES]
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant"])},
        optional={
            "content": TEXTS | st.none() | st.lists(TEXTS, max_size=2),
            "extra": st.just({"messages": [{"role": "x"}]}),
        },
    ),
    min_size=1,
    max_size=3,
)
MEMBERS = st.dictionaries(
    st.sampled_from(["model", "stop", "n", "tools", "metadata", "temperature", "user"]),
    st.sampled_from(["a", ["a", "b"], 1, [{"messages": [{}]}], {"messages": [{"role": "a"}]}]),
    max_size=3,
)


def read_plainly(body: bytes) -> Any:
    return shown((read_fields(body), CHAT_READER.read(body)))


def shown(split: Any) -> Any:
    """Members by name in order, and the facts."""
    fields, facts = split
    return [(name, json.loads(bytes(raw))) for name, raw in fields.items()], facts


@given(messages=MESSAGES, before=MEMBERS, after=MEMBERS, wide=st.booleans(), escaped=st.booleans())
def test_a_split_body_has_the_members_and_facts_of_the_whole(
    messages: list[Any], before: Any, after: Any, wide: bool, escaped: bool
) -> None:
    after = {name: value for name, value in after.items() if name not in before}
    document = {**before, "messages": messages, **after}
    separators = None if wide else (",", ":")
    body = json.dumps(document, ensure_ascii=escaped, separators=separators).encode()
    split = read_split(body)
    if split is not None:
        assert shown(split) == read_plainly(body)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("first", ["messages", "model"])
def test_what_sdks_send_is_split(first: str, separators: tuple[str, str]) -> None:
    document: dict[str, Any] = {"messages": [{"role": "user", "content": LONG}], "model": "auto"}
    if first == "model":
        document = {"model": "auto", **document}
    body = json.dumps({**document, "stop": ["a"], "n": 2}, separators=separators).encode()
    assert read_split(body) is not None


def body_with(text: str) -> bytes:
    return text.replace("LONG", LONG).encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"metadata":{"messages":[{"role":"user","content":"LONG"}]},"messages":[{"role":"a"}]}',
        '{"messages":[{"role":"user","content":"LONG"}],"messages":[{"role":"a"}]}',
        '{"messages":[{"role":"user","content":"LONG"}],"\\u006dessages":[{"role":"a"}]}',
        '{"messages":[{"role":"user","content":"LONG"}],"tools":[{"type":"function"}]}',
        '{"messages":[{"role":7,"content":"LONG"}]}',
        '{"messages":[{"role":"user","content":"LONG"}]',
        '{"messages":[{"role":"user","content":"LONG"}]]}',
        '{"messages":[{"role":"user","content":"LONG"},{}]}',
        '{"messages":{"role":"user","content":"LONG"}}',
        '["messages":[{"role":"user","content":"LONG"}]]',
        '{"messages":[{"role":"user","content":"LONG"}],"messages":' + STAND_IN.decode() + "}",
    ],
)
def test_what_cannot_be_told_at_once_is_left_to_the_plain_way(text: str) -> None:
    assert read_split(body_with(text)) is None


def test_a_long_body_that_is_not_utf_8_is_refused() -> None:
    body = body_with('{"messages":[{"role":"user","content":"LONG"}],"user":"\xff"}')
    with pytest.raises(InvalidJsonError, match="UTF-8"):
        read_split(body.replace("\xff".encode(), b"\xff"))


def test_a_wrong_message_of_a_long_body_is_named_by_its_path() -> None:
    body = body_with('{"messages":[{"role":"user","content":"LONG"},{"role":7}]}')
    refused = ChatCompletions().decode_request(body)
    assert getattr(refused, "param", None) == "messages[1].role"
