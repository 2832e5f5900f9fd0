"""Requests between Anthropic's dialect and others: what both have words for stays as it is."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
    Part,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.messages import Messages
from cluster_gw.wire.anthropic_messages import SIGNED

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
IDS = st.text("abcXYZ019_-", min_size=1, max_size=8)
ARGUMENTS = st.dictionaries(WORDS, st.integers(0, 9), max_size=2).map(
    lambda given: msgspec.json.encode(given).decode()
)
RAW = msgspec.Raw(b'{"type":"object","properties":{"a":{}}}')
TEXTS = st.builds(Text, text=WORDS)
IMAGES = st.builds(
    Media, media_type=st.sampled_from(["image/png", "image/webp"]), data=st.just("aGk=")
)
MEDIA = st.one_of(
    IMAGES,
    st.just(Media(media_type="image/*", url="https://x.example/a.png")),
    st.builds(Media, media_type=st.just("application/pdf"), data=st.just("aGk="), name=WORDS),
)
RESULTS = st.builds(
    ToolResult,
    call_id=IDS,
    parts=st.lists(TEXTS | MEDIA, max_size=2).map(tuple),
    is_error=st.booleans(),
)
CALLS = st.builds(ToolUse, id=IDS, name=IDS, arguments=ARGUMENTS)
PROOFS = IDS.map(lambda proof: SIGNED + proof)
THOUGHTS = st.one_of(
    st.builds(Thinking, text=WORDS, signature=PROOFS),
    st.builds(Thinking, signature=PROOFS, is_redacted=st.just(True)),
)


def turns_of(role: Role, parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Turn]:
    return st.builds(
        Turn, role=st.just(role), parts=st.lists(parts, min_size=1, max_size=3).map(tuple)
    )


def results_first(turn: Turn) -> Turn:
    """In this dialect results stand before all else."""

    def is_other(part: Part) -> bool:
        return not isinstance(part, ToolResult)

    return Turn(role=turn.role, parts=tuple(sorted(turn.parts, key=is_other)))


USERS = turns_of(Role.USER, TEXTS | MEDIA | RESULTS).map(results_first)
MODELS = turns_of(Role.ASSISTANT, TEXTS | CALLS | THOUGHTS)
SYSTEMS = st.lists(turns_of(Role.SYSTEM, TEXTS), max_size=1)
TOOLS = st.lists(
    st.builds(
        Tool,
        name=IDS,
        description=st.just("") | WORDS,
        schema=st.just(RAW),
        is_strict=st.none() | st.booleans(),
    ),
    max_size=2,
).map(tuple)
CHOICES = st.one_of(
    st.builds(
        ToolChoice,
        how=st.sampled_from([Choosing.AUTO, Choosing.REQUIRED]),
        parallel=st.none() | st.booleans(),
    ),
    st.just(ToolChoice(how=Choosing.NONE)),
    st.builds(ToolChoice, how=st.just(Choosing.NAMED), name=IDS),
)
FORMATS = st.none() | st.just(AnswerFormat(name="answer", schema=RAW, is_strict=True))
CHANCES = st.floats(0, 1, allow_subnormal=False)
SAMPLINGS = st.one_of(
    st.builds(
        Sampling,
        max_tokens=st.integers(1, 9999),
        temperature=st.none() | CHANCES,
        top_k=st.none() | st.integers(1, 99),
        stop=st.lists(WORDS, max_size=2).map(tuple),
    ),
    st.builds(Sampling, max_tokens=st.integers(1, 9999), top_p=CHANCES),
    st.builds(
        lambda budget, effort: Sampling(
            max_tokens=60_000, thinking_tokens=budget, effort=effort, shows_thinking=True
        ),
        *(st.sampled_from([1024]), st.just("low")),
    ),
    st.just(Sampling(max_tokens=60_000, thinking_tokens=8192, effort="medium")),
)


def heard(surface: Surface, body: bytes) -> Conversation:
    request = surface.decode_request(body)
    assert isinstance(request, ChatRequest)
    return surface.read_conversation(request)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Whatever this dialect has words for."""
    turns = draw(st.lists(USERS | MODELS, min_size=1, max_size=4))
    tools, choice, sampling = draw(TOOLS), draw(CHOICES), draw(SAMPLINGS)
    if sampling.thinking_tokens:  # refused beside a forced tool, and after calls without thoughts
        turns, choice = [*turns, Turn(role=Role.USER, parts=(Text(text="x"),))], ToolChoice()
    return Conversation(
        turns=(*draw(SYSTEMS), *turns),
        tools=tools,
        tool_choice=choice if tools else ToolChoice(),
        format=draw(FORMATS),
        sampling=sampling,
        user=draw(st.none() | WORDS),
        stream=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=200)
@given(conversations())
def test_what_this_dialect_has_words_for_is_read_back_as_it_was(
    conversation: Conversation,
) -> None:
    codec = AnthropicProvider()

    translated = codec.encode_conversation(conversation, "m")

    assert (translated.lost, translated.changed) == ((), ())
    assert codec.encode_conversation(conversation, "m") == translated
    assert heard(Messages(), translated.body) == conversation


USER_LINES = st.one_of(
    st.builds(Turn, role=st.just(Role.USER), parts=st.tuples(TEXTS)),
    st.builds(Turn, role=st.just(Role.USER), parts=st.tuples(TEXTS, IMAGES)),
    st.builds(
        lambda call, text: Turn(role=Role.USER, parts=(ToolResult(call_id=call, parts=(text,)),)),
        IDS,
        TEXTS,
    ),
)
MODEL_LINES = st.builds(
    lambda text, calls: Turn(role=Role.ASSISTANT, parts=(text, *calls)),
    TEXTS,
    st.lists(CALLS, max_size=2),
)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(USER_LINES, MODEL_LINES), min_size=1, max_size=3),
    TOOLS,
    CHOICES,
    FORMATS,
    st.integers(1, 9999),
    st.none() | CHANCES,
    st.lists(WORDS, max_size=2).map(tuple),
)
def test_a_request_by_way_of_openais_dialect_comes_back_the_same(
    lines: list[tuple[Turn, Turn]],
    tools: tuple[Tool, ...],
    choice: ToolChoice,
    form: AnswerFormat | None,
    most: int,
    temperature: float | None,
    stop: tuple[str, ...],
) -> None:
    conversation = Conversation(
        turns=tuple(turn for pair in lines for turn in pair),
        tools=tools,
        tool_choice=choice if tools else ToolChoice(),
        format=form,
        sampling=Sampling(max_tokens=most, temperature=temperature, stop=stop),
        user="u",
    )
    first = heard(Messages(), AnthropicProvider().encode_conversation(conversation, "m").body)

    across = OpenAIChatProvider().encode_conversation(first, "m")
    again = AnthropicProvider().encode_conversation(heard(ChatCompletions(), across.body), "m")

    assert across.lost == ()
    assert (again.lost, again.changed) == ((), ())
    assert heard(Messages(), again.body) == conversation
