"""No secret survives redaction, ordinary text does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire.redact import MAX_CHARACTERS, redact


@pytest.mark.parametrize(
    ("text", "leak"),
    [
        ("Incorrect API key provided: sk-proj-abc123def. You can", "abc123def"),
        ("key gsk_abcDEF123456789 is invalid", "abcDEF"),
        ("Authorization: Bearer tok.en-value", "tok.en"),
        ("bearer abc", "abc"),
        ("GET https://h/v1?alt=sse&key=AIzaSyD-1234567&x=1", "AIzaSyD"),
        ("https://user:pa55@host/path", "pa55"),
        ('{"api_key": "short"}', "short"),
        ("x-api-key: plain-value-here", "plain-value"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.sig-part", "sig-part"),
        ("sk-ab******xyz was refused", "ab*"),
        ("value a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6 end", "a1b2c3"),
        ("password=hunter22", "hunter22"),
    ],
)
def test_what_looks_like_a_secret_is_struck_out(text: str, leak: str) -> None:
    assert leak not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "The model meta-llama-llama-4-maverick-17b-128e-instruct is down",
        "Rate limit reached for requests per minute: limit 30, used 30",
        "maximum context length is 131072 tokens, got 140000",
        "no key-value pairs",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_whitespace_and_control_characters_collapse_to_one_line() -> None:
    assert redact("a\n\n\tb\x00c\r\n  d") == "a b c d"


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert redact("word " * 200)[-1] == "…"
    assert len(redact("word " * 200)) == MAX_CHARACTERS
    assert redact("x" * 9000) == ""


@settings(deadline=None, max_examples=200)
@given(
    st.text("abcdefgh0123456789-_.", min_size=4, max_size=40).filter(
        lambda s: s not in "[redacted]"
    ),
    st.text(max_size=60),
    st.text(max_size=60),
)
def test_a_known_secret_never_appears(secret: str, before: str, after: str) -> None:
    struck = redact(f"{before}{secret}{after} {secret}", None, secret)

    assert secret not in struck.replace("[redacted]", "")
    assert len(struck) <= MAX_CHARACTERS
    assert "\n" not in struck
