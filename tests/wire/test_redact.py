"""No secret survives redaction, ordinary text does."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire.redact import MAX_CHARACTERS, redact, without_keys
from tests.fakes.disguise import DISGUISES, secret


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


READABLE = 16
"""Characters in a row of a disguised secret that tell less than twelve of its own."""


def left_of(written: str, struck: str, size: int) -> str:
    """A part of what was written that can be read still; empty where there is none."""
    text = "".join(struck.split())
    dense = "".join(c for c in written if c.isprintable() and not c.isspace())
    parts = (dense[at : at + size] for at in range(len(dense) - size + 1))
    return next((part for part in parts if part in text), "")


@pytest.mark.parametrize("name", DISGUISES)
def test_a_known_secret_is_found_in_every_disguise(name: str) -> None:
    dice = random.Random(name)
    for _ in range(20):
        key, other = secret(dice), secret(dice)
        written = DISGUISES[name](key, dice)

        struck = redact(f"cannot call: {written} was refused", other, None, key)

        assert left_of(written, struck, READABLE) == "", (key, written, struck)
        assert struck.startswith("cannot call: ")
        assert struck.endswith("refused")


@pytest.mark.parametrize(
    "text",
    [
        "GET /v1?key%3DAIzaSyD-1234567%26x=1",
        "Authorization%3A%20Bearer%20opaque.token",
        "authorization=Bearer+opaque.token",
        '{\\"api_key\\": \\"opaque.token\\"}',
        "&quot;password&quot;:&quot;opaque.token&quot;",
        "https%3A%2F%2Fuser%3Aopaque.token%40host%2F",
        "\\u0042earer opaque.token",
        "SK-PROJ-ABCDEFGHIJKL",
        "c2stcHJvai1BYmNEZUYwMTIzNDU2Nzg5MDEyMzQ1Njc4OTA=",
    ],
)
def test_a_secret_that_nobody_knows_is_found_by_its_shape_under_escapes(text: str) -> None:
    struck = redact(text)

    assert "[redacted]" in struck
    for leak in ("opaque.token", "1234567", "ABCDEF", "cHJvai1"):
        assert leak not in struck


def test_ends_of_a_long_key_may_stay_and_more_of_it_may_not() -> None:
    key = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCD"

    assert redact("bad key ...wxyzABCD", key) == "bad key ...wxyzABCD"
    assert redact("bad key ...opqrstuvwxyzABCD", key) == "bad key ...[redacted]"


def test_what_many_keys_begin_with_is_no_secret() -> None:
    keys = [f"team-gateway-production-{number:020d}" for number in range(40)]

    assert redact("team-gateway is over its quota", *keys) == "team-gateway is over its quota"
    assert redact(f"{keys[7]} is over its quota", *keys) == "[redacted] is over its quota"


def test_a_short_secret_is_struck_only_as_it_is() -> None:
    assert (
        redact("late stuff tests Pass pass-", "test", "pass1")
        == "late stuff [redacted]s Pass pass-"
    )


@pytest.mark.parametrize(
    "text",
    [
        'combos[0].strategy: unknown "sk-proj-Q7wErTy0123456789"; use one of "priority"',
        "The model 'gw-0123456789abcdefABCDEF' does not exist",
        "Nothing is served at /v1beta/AIzaSyA0123456789abcdefghi.",
        "file /eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.sig cannot be read",
    ],
)
def test_a_key_in_the_words_that_a_text_of_ours_quotes_is_struck(text: str) -> None:
    struck = without_keys(text)

    assert re.search(r"0123456789|JIUzI1|sig", struck) is None
    assert struck[:6] == text[:6]
    assert struck[-1] == text[-1]


@pytest.mark.parametrize(
    "text",
    [
        "keys[0].secret: must not be empty; GW_PROVIDER_KEY_OPENROUTER_PRODUCTION_2 is not set",
        'clients[0].key_sha256: must be 64 hexadecimal digits; did you mean "key_share"?',
        "The model 'hf-meta-llama-3-8b' does not exist; 'sk-learn' does not either.",
    ],
)
def test_names_in_texts_of_ours_are_left_alone(text: str) -> None:
    assert without_keys(text) == text


def test_a_cut_halves_no_word() -> None:
    text = redact("some words " * 26 + "ab-unknown-secret of somebody else")

    assert text.endswith(" some words…")
