"""Laws of Gemini's dialect: its codec, its surface, and both with what others speak."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
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
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.surfaces.gemini_stream import ArrayFraming, EventFraming
from tests.laws.streams import check_any_split, check_one_end, heard

CODEC = GeminiProvider()
SURFACE = GenerateContent("m")
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
NATIVE = StreamHead(id="0" * 32, model="m", created_s=1)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
NAMES = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
OBJECTS = st.dictionaries(NAMES, st.integers(0, 9) | WORDS, max_size=2)
COUNTS = st.integers(0, 50)
USAGES = st.fixed_dictionaries(
    {},
    optional={
        "promptTokenCount": COUNTS,
        "candidatesTokenCount": COUNTS,
        "thoughtsTokenCount": COUNTS,
        "cachedContentTokenCount": COUNTS,
        "totalTokenCount": COUNTS,
    },
)
SPOKEN = st.one_of(
    st.builds(lambda text: {"text": text}, WORDS),
    st.builds(lambda text: {"text": text, "thought": True, "thoughtSignature": "c2ln"}, WORDS),
    st.builds(lambda args: {"functionCall": {"name": "f", "args": args}}, OBJECTS),
    st.just({"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
    st.just({"executableCode": {"code": "1"}}),
)
CANDIDATES = st.builds(
    lambda index, parts, end: {"index": index, "content": {"parts": parts}, **end},
    st.integers(0, 1),
    st.lists(SPOKEN, max_size=3),
    st.sampled_from(
        [
            {},
            *({"finishReason": word} for word in ("STOP", "SAFETY", "MAX_TOKENS")),
            {"finishReason": "MALFORMED_FUNCTION_CALL"},
        ]
    ),
)
FRAMES = st.one_of(
    st.builds(
        lambda candidates, usage: {"candidates": candidates, "usageMetadata": usage},
        st.lists(CANDIDATES, max_size=2),
        USAGES,
    ),
    st.just({"promptFeedback": {"blockReason": "SAFETY"}}),
    st.just({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}),
    st.just([{"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}]),
    st.just({"candidates": 5}),
).map(msgspec.json.encode)
LINES = st.one_of(
    FRAMES.map(lambda frame: b"data: " + frame + b"\n\n"),
    FRAMES.map(lambda frame: b"data:" + frame + b"\r\n\r\n"),
    st.sampled_from([b": ping\n\n", b"data: [DONE]\n\n", b"data: {bad\n\n", b"event: ping\n"]),
)


def decoded(chunks: Sequence[bytes]) -> tuple[list[StreamEvent], int]:
    return heard(CODEC, chunks)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=8), st.data())
def test_every_split_of_a_stream_gives_the_same_events(
    lines: list[bytes], data: st.DataObject
) -> None:
    check_any_split(CODEC, b"".join(lines), data)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=8))
def test_a_stream_has_at_most_one_end_and_its_usage_never_falls(lines: list[bytes]) -> None:
    events, _ = decoded(lines)

    check_one_end(events)
    usages = [event.usage for event in events if event.usage]
    for earlier, later in itertools.pairwise(usages):
        for name in Usage.__struct_fields__:
            assert getattr(earlier, name) <= getattr(later, name)
    for event in events:
        if event.is_plain:
            rest = msgspec.structs.replace(event, raw=b"", text="", reasoning="", usage=None)
            assert rest == StreamEvent(is_plain=True)
    for usage in usages:
        assert usage.total_tokens >= usage.prompt_tokens + usage.completion_tokens


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=8), st.booleans())
def test_a_client_of_the_same_dialect_gets_the_frames_as_they_were(
    lines: list[bytes], as_array: bool
) -> None:
    events, _ = decoded(lines)
    framing = ArrayFraming if as_array else EventFraming
    stream = GenerateContent("m", stream=True, framing=framing).stream_encoder(NATIVE)

    sent = b"".join([stream.encode(event) for event in events]) + stream.done()

    kept = [msgspec.json.decode(e.raw) for e in events if e.raw and e.fault is None]
    if as_array:
        assert msgspec.json.decode(sent) == kept
    else:
        frames = [one.removeprefix(b"data: ") for one in sent.split(b"\n\n")[:-1]]
        assert [msgspec.json.decode(one) for one in frames] == kept


DELTAS = st.builds(
    lambda index, args: ToolCallDelta(
        index=index, id=f"id{index}", name="f", arguments=msgspec.json.encode(args).decode()
    ),
    st.integers(0, 3),
    OBJECTS,
)
COUNTED = Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5)
EVENTS = st.one_of(
    st.builds(StreamEvent, text=WORDS),
    st.builds(StreamEvent, reasoning=WORDS),
    st.builds(
        StreamEvent, usage=st.just(Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5))
    ),
)


@given(
    st.lists(EVENTS, max_size=8),
    st.lists(DELTAS, max_size=4, unique_by=lambda one: one.index),
    st.sampled_from(["stop", "length", "content_filter"]),
    st.integers(1, 3),
)
def test_a_stream_of_another_dialect_says_the_same_when_written(
    events: list[StreamEvent], calls: list[ToolCallDelta], reason: str, pieces: int
) -> None:
    fragments = [StreamEvent(tool_calls=(piece,)) for call in calls for piece in cut(call, pieces)]
    end = StreamEvent(finish_reason=reason, ended_choices=(0,))
    stream = GenerateContent("m", stream=True).stream_encoder(HEAD)

    sent = b"".join([stream.encode(one) for one in [*events, *fragments, end]]) + stream.done()

    got, _ = decoded([sent])
    assert "".join(e.text for e in got) == "".join(e.text for e in events)
    assert "".join(e.reasoning for e in got) == "".join(e.reasoning for e in events)
    said = sorted((one.id, one.arguments) for e in got for one in e.tool_calls)
    assert said == sorted((one.id, one.arguments) for one in calls)
    ended = "tool_calls" if calls and reason == "stop" else reason
    assert [e.finish_reason for e in got if e.finish_reason] == [ended]
    assert got[-1].done
    assert got[-2].usage == next((e.usage for e in events if e.usage), None)


def cut(call: ToolCallDelta, pieces: int) -> list[ToolCallDelta]:
    """The fragments of a call as OpenAI's dialect has them: id and name come with the first."""
    size = max(1, len(call.arguments) // pieces)
    texts = [call.arguments[at : at + size] for at in range(0, len(call.arguments), size)]
    first = msgspec.structs.replace(call, arguments=texts[0])
    return [first, *(ToolCallDelta(index=call.index, arguments=text) for text in texts[1:])]


ANSWERED = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Thinking, text=WORDS),
    st.builds(
        ToolUse,
        id=NAMES,
        name=NAMES,
        arguments=OBJECTS.map(lambda args: msgspec.json.encode(args).decode()),
        signature=st.sampled_from(["", "c2ln"]),
    ),
)


@given(st.lists(st.lists(ANSWERED, min_size=1, max_size=4), min_size=1, max_size=2))
def test_an_answer_of_another_dialect_says_the_same_when_written(said: list[list[Part]]) -> None:
    answer = Answer(
        id=HEAD.id,
        choices=tuple(
            Choice(
                parts=tuple(parts),
                finish_reason="tool_calls"
                if any(isinstance(p, ToolUse) for p in parts)
                else "stop",
            )
            for parts in said
        ),
        usage=Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5, reasoning_tokens=1),
    )

    completion = CODEC.decode_completion(SURFACE.encode_answer(answer, HEAD), "application/json")

    assert isinstance(completion, Completion)
    assert CODEC.read_answer(completion) == answer


ROUNDS = st.builds(
    lambda words, call, result, more: [
        Turn(role=Role.USER, parts=(Text(text=words), *more)),
        Turn(role=Role.ASSISTANT, parts=(Text(text=words), call)),
        Turn(
            role=Role.USER,
            parts=(
                ToolResult(
                    call_id=call.id,
                    name=call.name,
                    parts=(Text(text=result),),
                    is_error=result == "bad",
                ),
            ),
        ),
    ],
    WORDS,
    st.builds(
        ToolUse,
        id=NAMES,
        name=NAMES,
        arguments=OBJECTS.map(lambda args: msgspec.json.encode(args).decode()),
        signature=st.sampled_from(["", "c2ln"]),
    ),
    st.sampled_from(["dry", "bad", '{"rain":1}']),
    st.lists(
        st.sampled_from(
            [
                Media(media_type="image/png", data="aGk="),
                Media(media_type="application/pdf", url="https://h/a.pdf"),
            ]
        ),
        max_size=1,
    ),
)
SCHEMA = msgspec.Raw(b'{"type":"object","properties":{"a":{"type":"string"}}}')
LOOSE = msgspec.Raw(b'{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{}}}')
SCHEMAS = st.sampled_from([None, SCHEMA, LOOSE])
CONVERSATIONS = st.builds(
    lambda system, rounds, tools, choice, form, sampling, stream: Conversation(
        turns=(*system, *(turn for one in rounds for turn in one)),
        tools=tuple(tools),
        tool_choice=choice if tools else ToolChoice(),
        format=form,
        sampling=sampling,
        stream=stream and sampling.choices == 1,
    ),
    st.sampled_from([(), (Turn(role=Role.SYSTEM, parts=(Text(text="be kind"),)),)]),
    st.lists(ROUNDS, min_size=1, max_size=2),
    st.lists(
        st.builds(
            Tool, name=NAMES, description=WORDS, schema=st.sampled_from([None, SCHEMA, LOOSE])
        ),
        max_size=2,
        unique_by=lambda tool: tool.name,
    ),
    st.sampled_from(
        [ToolChoice(), ToolChoice(how=Choosing.NONE), ToolChoice(how=Choosing.REQUIRED)]
    ),
    st.sampled_from(
        [None, AnswerFormat(), AnswerFormat(schema=SCHEMA), AnswerFormat(schema=LOOSE)]
    ),
    st.builds(
        Sampling,
        max_tokens=st.none() | st.integers(1, 99),
        temperature=st.none() | st.sampled_from([0.0, 1.5]),
        top_p=st.none() | st.just(0.5),
        top_k=st.none() | st.integers(1, 50),
        stop=st.sampled_from([(), ("a", "b")]),
        seed=st.none() | st.integers(0, 9),
        presence_penalty=st.none() | st.just(0.25),
        frequency_penalty=st.none() | st.just(0.25),
        choices=st.integers(1, 3),
        top_logprobs=st.none() | st.integers(0, 3),
        shows_thinking=st.none() | st.booleans(),
    ),
    st.booleans(),
)


@settings(deadline=None, max_examples=150)
@given(CONVERSATIONS)
def test_a_conversation_comes_back_from_its_request_as_it_was(conversation: Conversation) -> None:
    if conversation.tools:  # the model takes one of both
        conversation = msgspec.structs.replace(conversation, format=None)
    translated = CODEC.encode_conversation(conversation, "gemini-2.5-flash")
    surface = GenerateContent("gemini-2.5-flash", stream=conversation.stream)

    request = surface.decode_request(translated.body)

    assert (translated.lost, translated.changed) == ((), ())
    assert isinstance(request, ChatRequest)
    assert surface.read_conversation(request) == conversation


@settings(deadline=None, max_examples=100)
@given(CONVERSATIONS)
def test_a_conversation_goes_through_openais_dialect_and_back(conversation: Conversation) -> None:
    first = CODEC.encode_conversation(conversation, "gemini-2.5-flash").body
    surface = GenerateContent("m", stream=conversation.stream)
    request = surface.decode_request(first)
    assert isinstance(request, ChatRequest)

    chat_body = (
        OpenAIChatProvider().encode_conversation(surface.read_conversation(request), "m").body
    )
    chat_request = ChatCompletions().decode_request(chat_body)
    assert isinstance(chat_request, ChatRequest)
    back = ChatCompletions().read_conversation(chat_request)

    def said(one: Conversation) -> list[tuple[Role, list[str]]]:
        return [(turn.role, [words(part) for part in turn.parts]) for turn in one.turns]

    def words(part: Part) -> str:
        if isinstance(part, ToolResult):
            texts = [inner.text for inner in part.parts if isinstance(inner, Text)]
            return f"{part.call_id}: {texts}"
        if isinstance(part, ToolUse):
            return f"{part.id} {part.name} {part.arguments}"
        return part.text if isinstance(part, Text) else type(part).__name__

    parts = [part for turn in conversation.turns for part in turn.parts]
    if not any(isinstance(part, Media) and part.url for part in parts):
        assert said(back) == said(conversation)
    assert [tool.name for tool in back.tools] == [tool.name for tool in conversation.tools]
    assert back.sampling.max_tokens == conversation.sampling.max_tokens
    assert back.tool_choice.how == conversation.tool_choice.how


BODIES = st.fixed_dictionaries(
    {
        "contents": st.lists(
            st.builds(
                lambda role, parts: {"role": role, "parts": parts},
                st.sampled_from(["user", "model"]),
                st.lists(SPOKEN, min_size=1, max_size=3),
            ),
            min_size=1,
            max_size=3,
        )
    },
    optional={
        "systemInstruction": st.just({"parts": [{"text": "s"}]}),
        "generationConfig": st.dictionaries(NAMES, st.integers(0, 3), max_size=2),
        "xUnknown": st.recursive(st.none() | st.integers(), st.lists, max_leaves=4),
        "model": st.just("models/other"),
    },
)


@settings(deadline=None, max_examples=150)
@given(BODIES, st.sampled_from(["gemini-2.5-flash", "gemini-3-pro", "gemma-3-27b"]))
def test_encoding_is_repeatable_and_keeps_what_need_not_change(
    body: dict[str, Any], model: str
) -> None:
    request = SURFACE.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    before = dict(request.fields)

    first = CODEC.encode_request(request, model)

    assert CODEC.encode_request(request, model) == first
    assert request.fields == before
    sent = msgspec.json.decode(first)
    if model == "gemini-2.5-flash":
        assert sent == {name: value for name, value in body.items() if name != "model"}
    if model == "gemma-3-27b":
        assert "systemInstruction" not in sent
    assert sent.get("xUnknown") == body.get("xUnknown")
