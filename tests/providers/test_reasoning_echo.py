from typing import Any

import msgspec

from cluster_gw.canonical.conversation import ToolUse
from cluster_gw.providers.reasoning_echo import Thoughtless, thoughtless, with_thoughts

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
SAID: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
HELLO = {"role": "assistant", "content": "hello"}
USER = {"role": "user", "content": "hi"}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def test_messages_of_the_model_without_thoughts_are_found_with_their_calls() -> None:
    thinking = {**SAID, "reasoning_content": "mine"}
    parts = ["hi", {"type": "text", "text": " there"}, {"type": "image_url"}]
    calls = [{"id": "odd"}, CALL]
    empty = {**SAID, "reasoning_content": None, "tool_calls": calls, "content": parts}

    found = thoughtless(raw([USER, HELLO, thinking, SAID, empty]))

    use = ToolUse(id="c1", name="weather", arguments="{}")
    assert found == [
        Thoughtless(1, (), "hello"),
        Thoughtless(3, (use,), ""),
        Thoughtless(4, (use,), "hi there"),
    ]


def test_what_cannot_be_read_is_left_alone() -> None:
    odd_ones: list[Any] = [{}, [5], [{**SAID, "tool_calls": 5}]]
    for odd in odd_ones:
        assert thoughtless(raw(odd)) == []


def test_thoughts_are_added_and_nothing_else_changes() -> None:
    messages = msgspec.Raw(b'[{"role":"user","content":"h\\u0069", "x":1.0},{"role":"assistant"}]')

    changed = with_thoughts(messages, {1: 'say "no"'})

    assert bytes(changed) == (
        b'[{"role":"user","content":"h\\u0069","x":1.0},'
        b'{"role":"assistant","reasoning_content":"say \\"no\\""}]'
    )
