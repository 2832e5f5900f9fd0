"""Pinned vectors of the cache key: a change of any of them makes every kept answer unknown."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.cache_key import (
    MOST_BYTES,
    MOST_FRACTIONS,
    Keyed,
    NoKeyError,
    canonical_form,
    digest_of,
)
from cluster_gw.server.explaining import surface_of

HI = b'"messages":[{"role":"user","content":"hi"}]'
FORM = b'{"messages":[{"content":"hi","role":"user"}],"model":"auto","surface":"chat","v":4}'


def decoded(body: bytes, surface: str = "chat") -> ChatRequest:
    request = surface_of(surface).decode_request(body)
    assert isinstance(request, ChatRequest), request
    return request


def form_of(body: bytes, surface: str = "chat", **more: Any) -> bytes:
    return canonical_form(Keyed(surface=surface, request=decoded(body, surface), **more))


def told(members: bytes) -> bytes:
    return form_of(b"{" + HI + b"," + members + b"}")


def test_the_form_and_the_digest_of_a_plain_request_are_these() -> None:
    assert form_of(b"{" + HI + b"}") == FORM
    assert digest_of(FORM) == "9a7f007d30bfdf8e28a37afd5c7a9c34341fc855d7ddbe63104dd5f2273e9ec6"


SAME = [
    b'"model":"auto"',
    b'"model":""',
    b'"model":null',
    b'"stream":true,"stream_options":{"include_usage":true}',
    b'"stream":false',
    b'"n":1',
    b'"top_p":1,"presence_penalty":0,"frequency_penalty":0.0',
    b'"top_p":1e0,"presence_penalty":-0.0,"frequency_penalty":0e7',
    b'"tools":[],"tool_choice":"none"',
    b'"stop":null,"seed":null,"max_tokens":null,"temperature":null',
    b'"stop":[]',
    b'"max_tokens":0,"tool_choice":null',
    b'"response_format":{"type":"text"},"logprobs":false',
    b'"user":"somebody","metadata":{"a":"b"},"store":false,"safety_identifier":"s"',
    b'"prompt_cache_key":"p","prompt_cache_retention":"24h"',
]


@pytest.mark.parametrize("members", SAME)
def test_what_changes_no_answer_is_no_part_of_the_key(members: bytes) -> None:
    assert told(members) == FORM


EQUAL = [
    (b'"temperature":0.7', b'"temperature":0.70'),
    (b'"temperature":1', b'"temperature":1.0'),
    (b'"temperature":1', b'"temperature":10E-1'),
    (b'"seed":12345678901234567890123', b'"seed":12345678901234567890123.0'),
    (b'"stop":"x"', b'"stop":["x"]'),
    (b'"stop":["a","b","c","d"]', b'"stop":["a","b","c","d","e"]'),
    (b'"max_tokens":5', b'"max_completion_tokens":5'),
    (b'"max_tokens":5', b'"max_completion_tokens":5,"max_tokens":5'),
    (b'"reasoning_effort":"low"', b'"reasoning":{"effort":"low"}'),
    (b'"logit_bias":{"1":2,"3":4}', b'"logit_bias":{"3":4e0, "1" : 2.0}'),
    (b'"top_k":40', b'"top_k":40.0'),
    (
        b'"tools":[{"type":"function","function":{"name":"f"}}]',
        b'"tool_choice":"auto","tools":[{"function":{"name":"f"},"type":"function"}]',
    ),
    (b'"note":"\xc3\xa9\xf0\x9f\x98\x80/"', b'"note":"\\u00e9\\ud83d\\ude00\\/"'),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_meaning_has_an_equal_key(one: bytes, other: bytes) -> None:
    assert told(one) == told(other)


DIFFERENT = [
    b'"model":"auto:fast"',
    b'"model":"Auto"',
    b'"temperature":0',
    b'"temperature":1',
    b'"temperature":0.1',
    b'"temperature":0.1000000000000000055511151231257827',  # the double of it, but not its value
    b'"seed":1',
    b'"seed":9007199254740992',
    b'"seed":9007199254740993',
    b'"n":2',
    b'"top_p":0.99',
    b'"top_k":true',
    b'"top_k":1',
    b'"max_tokens":5',
    b'"max_tokens":5,"max_completion_tokens":6',
    b'"max_tokens":6,"max_completion_tokens":5',
    b'"stop":["a","b","c","d"]',
    b'"stop":["b","a","c","d"]',
    b'"stop":"abcd"',
    b'"logprobs":true',
    b'"top_k":40',
    b'"top_k":"40"',
    b'"top_k":null',
    b'"client":"b"',
    b'"v":5',
    b'"surface":"messages"',
    b'"routes":["a"]',
    b'"compression":"off"',
    b'"other":{"top_k":40}',
    b'"reasoning_effort":"low"',
    b'"reasoning":{"effort":"low","max_tokens":9}',
    b'"reasoning":{"max_tokens":9}',
    b'"response_format":{"type":"json_object"}',
    b'"tools":[{"type":"function","function":{"name":"f"}}]',
    b'"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"',
    b'"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"',
    b'"tools":[{"type":"function","function":{"name":"f","strict":true}}]',
    b'"functions":[{"name":"f"}]',
    b'"models":["a/one"]',
    b'"provider":{"only":["a"]}',
    b'"provider":{"ignore":["a"]}',
    b'"provider":{"data_collection":"deny"}',
    b'"service_tier":"flex"',
]


def test_different_meanings_have_different_keys() -> None:
    forms = [FORM, *map(told, DIFFERENT)]
    assert len(set(forms)) == len(forms)


def test_who_asks_and_by_which_api_are_part_of_the_key() -> None:
    body = b"{" + HI + b"}"
    texts = b'{"prompt":"hi","max_tokens":128}'
    forms = {
        form_of(body),
        form_of(body, client="a"),
        form_of(body, client="b"),
        form_of(body, routes=("a/one",)),
        form_of(body, routes=()),
        form_of(body, vendor=(("anthropic-beta", "x"),)),
        form_of(body, compression="standard"),
        form_of(texts, "completions"),
        form_of(b'{"max_tokens":128,' + HI + b"}"),
        form_of(b'{"model":"auto","max_tokens":9,' + HI + b"}", "messages"),
        form_of(b'{"model":"auto","input":"hi"}', "responses"),
        form_of(b'{"contents":[{"parts":[{"text":"hi"}]}]}', "gemini"),
        form_of(b'{"model":"auto","input":"hi"}', "embeddings"),
    }
    assert len(forms) == 13


@pytest.mark.parametrize(
    ("surface", "one", "other"),
    [
        ("messages", b'{"max_tokens":9,%b}', b'{"metadata":{"user_id":"u"},"max_tokens":9,%b}'),
        (
            "messages",
            b'{"max_tokens":9,%b}',
            b'{"stream":true,"stop_sequences":[],"max_tokens":9,%b}',
        ),
        ("responses", b'{"input":"hi","top_p":1}', b'{"top_p":1.0,"stream":true,"input":"hi"}'),
        ("embeddings", b'{"model":"m","input":"x"}', b'{"input":"x","user":"u","model":"m"}'),
        (
            "embeddings",
            b'{"model":"m","input":"x"}',
            b'{"input":"x","encoding_format":"float","model":"m"}',
        ),
        (
            "gemini",
            b'{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"topK":4}}',
            b'{"generation_config":{"top_k":4.0},"contents":[{"parts":[{"text":"hi"}]}]}',
        ),
    ],
)
def test_the_other_apis_tell_by_value_too(surface: str, one: bytes, other: bytes) -> None:
    bodies = [body.replace(b"%b", HI) for body in (one, other)]
    assert form_of(bodies[0], surface) == form_of(bodies[1], surface)


def test_a_bound_of_the_gateways_own_stands_for_that_of_the_client() -> None:
    lowered = msgspec.structs.replace(
        decoded(b'{"max_tokens":900,' + HI + b"}"), max_tokens=5, is_bounded=True
    )
    assert canonical_form(Keyed(surface="chat", request=lowered)) == told(b'"max_tokens":5')


@pytest.mark.parametrize(
    ("members", "why"),
    [
        (b'"x":{"a":1,"a":2}', "ambiguous"),
        (b'"x":{"a":1,"\\u0061":2}', "ambiguous"),
        # Which member counts is hidden by a colon that is written as an escape elsewhere.
        (b'"x":[{"a":1,"a":2},"\\u003a"]', "ambiguous"),
        (b'"x":"\\u003A"', "ambiguous"),
        (b'"x":"\\ud83d"', "unreadable"),
        (b'"x":1e99999999999999999999999', "unreadable"),
        (b'"x":' + b"[" * 5000 + b"]" * 5000, "unreadable"),
        (b'"x":"' + b"x" * MOST_BYTES + b'"', "too_large"),
        (b'"x":[' + b"0.1," * MOST_FRACTIONS + b"0.1]", "unreadable"),
    ],
)
def test_what_has_no_one_meaning_or_takes_too_long_has_no_key(members: bytes, why: str) -> None:
    body = b"{" + HI + b"," + members + b"}"
    request = ChatRequest(
        dialect=decoded(b"{" + HI + b"}").dialect,
        model="",
        stream=False,
        fields={
            "messages": msgspec.Raw(b"[]"),
            "x": msgspec.Raw(body[len(HI) + 6 : -1]),
        },
    )
    with pytest.raises(NoKeyError, match=why):
        canonical_form(Keyed(surface="chat", request=request))


def test_a_member_that_stands_twice_at_the_top_counts_as_it_is_sent() -> None:
    assert told(b'"seed":1,"seed":2') == told(b'"seed":2')
