"""Calls of tools in the text, in all dialects, and what only looks like one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.mending.inline_calls import MAX_CALLS, Called, Sign, read_calls, sign_of

NAMES = frozenset({"look", "get_weather"})
ARGUMENTS = '{"city": "Köln", "n": [1, "}"]}'
CALL = Called("look", ARGUMENTS)
TOKENS = (
    f"<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|>"
)
WRITTEN = [
    "<|tool_calls_section_begin|>" + TOKENS + "<|tool_calls_section_end|>",
    TOKENS,
    f"functions.look:0 {ARGUMENTS}",
    f"<function=look>{ARGUMENTS}</function>",
    f"<function=look{ARGUMENTS}</function>",
    f"<function(look)>{ARGUMENTS}</function>",
    f"<function=look({ARGUMENTS})</function>",
    f'<tool_call>\n{{"name": "look", "arguments": {ARGUMENTS}}}\n</tool_call>',
    f'<tool_call>{{"arguments": {ARGUMENTS}, "name": "look"}}',
    f'{{"name": "look", "parameters": {ARGUMENTS}}}',
    f'{{"type": "function", "function": {{"name": "look", "arguments": {ARGUMENTS}}}}}',
    f'{{"function": "look", "arguments": {ARGUMENTS}}}',
    f'```json\n{{"name": "look", "arguments": {ARGUMENTS}}}\n```',
    f'```\n{{"name": "look", "arguments": {ARGUMENTS}}}\n```',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_call_is_read_with_its_arguments_as_they_were_written(text: str) -> None:
    assert sign_of(text, NAMES) is Sign.CALL
    reading = read_calls(f"\n{text} \n", NAMES)

    assert (reading.calls, reading.text.strip(), reading.is_broken) == ((CALL,), "", False)


@pytest.mark.parametrize("first", WRITTEN[:9])
@pytest.mark.parametrize("second", WRITTEN[:9:4])
def test_several_calls_are_read_in_order_and_words_behind_them_stay(
    first: str, second: str
) -> None:
    reading = read_calls(f"{first}\n{second}\nWait.", NAMES)

    assert (reading.calls, reading.text) == ((CALL, CALL), "Wait.")


def test_arguments_in_a_string_are_taken_out_of_it() -> None:
    text = '{"name": "look", "arguments": "{\\"city\\": \\"Ulm\\"}"}'

    assert read_calls(text, NAMES).calls == (Called("look", '{"city": "Ulm"}'),)


@pytest.mark.parametrize("text", ["<function=look></function>", '<tool_call>{"name":"look"}'])
def test_call_without_arguments_has_empty_ones(text: str) -> None:
    assert read_calls(text, NAMES).calls == (Called("look", "{}"),)


@pytest.mark.parametrize("text", [one.replace("look", "rm_rf") for one in WRITTEN])
def test_call_of_an_undeclared_tool_stays_text(text: str) -> None:
    reading = read_calls(text, NAMES)

    assert (reading.calls, reading.text, reading.is_broken) == ((), text, False)


def test_of_declared_and_undeclared_calls_the_latter_stay_text() -> None:
    other = '<function=rm_rf>{"a":1}</function>'

    reading = read_calls(f"{other}\n<function=look>{ARGUMENTS}</function>", NAMES)

    assert (reading.calls, reading.text.strip()) == ((CALL,), other)


@pytest.mark.parametrize(
    "text",
    [
        '<function=look>{"city": </function>',
        "<function=look>city=Ulm</function>",
        '<tool_call>{"name": "look", "arguments": {"city"',
        "<tool_call>look</tool_call>",
        '<tool_call>{"name": "look", "arguments": "Ulm"}</tool_call>',
        '<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"ci',
        '{"name": "look", "arguments": {"city": "Ul',
        '```json\n{"name": "look", "parameters": {"city": }}\n```',
        '<function=look>{"a":1}</function>' * (MAX_CALLS + 1),
    ],
)
def test_call_that_nobody_can_read_is_told(text: str) -> None:
    assert sign_of(text[:256], NAMES) is Sign.CALL
    assert read_calls(text, NAMES).is_broken


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "look", "age": 3}',
        '{"name": "look"}',
        "functions.look is a fine tool",
        '```json\n{"name": "look", "tools": 3}\n```',
    ],
)
def test_what_only_names_a_tool_is_text(text: str) -> None:
    reading = read_calls(text, NAMES)

    assert (reading.calls, reading.text, reading.is_broken) == ((), text, False)


@pytest.mark.parametrize(
    ("start", "sign"),
    [
        ("<", Sign.UNDECIDED),
        ("<tool_cal", Sign.UNDECIDED),
        ("<|tool_call", Sign.UNDECIDED),
        ("func", Sign.UNDECIDED),
        ("functions.look", Sign.UNDECIDED),
        ("functions.look:1", Sign.UNDECIDED),
        ("functions.look:1{", Sign.CALL),
        ("functions.look here", Sign.TEXT),
        ("`", Sign.UNDECIDED),
        ("```json", Sign.UNDECIDED),
        ("```json\n{", Sign.UNDECIDED),
        ("```python\ndef", Sign.TEXT),
        ("{", Sign.UNDECIDED),
        ('{"name": "someone"', Sign.TEXT),
        ('{"name": [' + "1" * 256, Sign.TEXT),
        ('{"ans', Sign.UNDECIDED),
        ('{"answer"', Sign.TEXT),
        ("{}", Sign.TEXT),
        ("{ 1", Sign.TEXT),
        ('```json\n{"a":', Sign.TEXT),
        ('{"type": "function", "fu', Sign.UNDECIDED),
        ("<b>", Sign.TEXT),
        ("Hello", Sign.TEXT),
        ("[1]", Sign.TEXT),
    ],
)
def test_start_of_a_text_says_what_it_may_become(start: str, sign: Sign) -> None:
    assert sign_of(start, NAMES) is sign


def test_without_a_declared_function_nothing_is_a_call() -> None:
    assert sign_of("<tool_call>", ()) is Sign.TEXT


@given(st.text(alphabet='<>{}`"\\ \nfunctio.=look:0|_calnmeargus', max_size=80))
def test_any_text_is_read_and_nothing_but_calls_leaves_it(text: str) -> None:
    reading = read_calls(text, NAMES)

    if not reading.calls:
        assert reading.text == text
    assert all(call.name in NAMES for call in reading.calls)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 65_536,
        '{"name": "look", "arguments": {"a": "' + "\\" * 65_536,
        "<function=" + "a" * 65_536,
        "functions." + "a:" * 32_768,
        "<tool_call>" + " " * 65_536,
        "<|tool_call_begin|>" * 4_000,
        '{"a":1}' * 10_000,
        '<function=rm>{"a":1}</function>' * 2_000,
        "```json " * 8_000,
    ],
)
def test_long_texts_take_linear_time(text: str) -> None:
    began_s = time.perf_counter()
    read_calls(text, NAMES)

    assert time.perf_counter() - began_s < 0.5
