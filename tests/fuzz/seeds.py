"""Where fuzzing starts: recorded streams, and what each codec itself writes."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
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
from cluster_gw.canonical.events import Usage
from cluster_gw.wire.sse import encode_data
from tests.fuzz.codecs import SECRET, head, streaming, surfaces

GOLDEN = Path(__file__).parents[1] / "golden"
MAX_BYTES = 4096
CUTS = bytes(range(0, 256, 37))  # all lengths of pieces, all surfaces
SCHEMA = msgspec.Raw(b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}')

TALK = Conversation(
    turns=(
        Turn(role=Role.SYSTEM, parts=(Text(text="Be short."),)),
        Turn(
            role=Role.USER,
            parts=(
                Text(text="hi"),
                Media(media_type="image/png", data="aGk="),
                Media(media_type="image/png", url="https://h/p.png"),
            ),
        ),
        Turn(
            role=Role.ASSISTANT,
            parts=(
                Thinking(text="hm", signature="c2ln"),
                Text(text="so"),
                ToolUse(id="c1", name="f", arguments='{"a":"1"}'),
            ),
        ),
        Turn(role=Role.USER, parts=(ToolResult(call_id="c1", name="f", parts=(Text(text="ok"),)),)),
    ),
    tools=(Tool(name="f", description="d", schema=SCHEMA, is_strict=True),),
    tool_choice=ToolChoice(how=Choosing.NAMED, name="f", parallel=False),
    format=AnswerFormat(name="n", schema=SCHEMA, is_strict=True),
    sampling=Sampling(
        max_tokens=9, temperature=0.5, top_p=0.5, top_k=4, stop=("x",), seed=1, effort="low"
    ),
    user="u",
    stream=True,
)
ANSWER = Answer(
    id="a1",
    choices=(
        Choice(
            parts=(
                Thinking(text="hm", signature="c2ln"),
                Text(text="so"),
                ToolUse(id="c1", name="f", arguments='{"a":"1"}'),
            ),
            finish_reason="tool_calls",
        ),
    ),
    usage=Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7, cached_prompt_tokens=1),
)
MORE = (
    b'{"model":"m","prompt":"hi","suffix":null,"echo":false,"best_of":1,"n":1}',
    b'{"model":"m","input":["a","b"],"dimensions":3,"encoding_format":"base64"}',
    b'{"model":"m","input":[[1,2],[3]]}',
    b'{"content":{"parts":[{"text":"a"},{"text":"b"}]},"output_dimensionality":3}',
    b'{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]}}]}',
    b'{"data":[{"index":1,"embedding":[1,2,3]},{"index":0,"embedding":"AACAPw=="}],"model":"m"}',
    b'{"embeddings":[{"values":[1,2,3]}]}',
    (
        b'{"choices":[{"message":{"content":"\\ud83d","tool_calls":[{"id":"a","function":'
        b'{"name":"f","arguments":"{"}}]},"finish_reason":"stop"}],"usage":{"total_tokens":"3"}}'
    ),
)
ODD_TEXTS = (
    "<think>First this.</think>\n\nThen that.",
    '<think>hm</think><tool_call>{"name": "look", "arguments": {"a": [1]}}</tool_call>',
    '<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"a":"[1]"}<|tool_call_end|>',
    '<function=look>{"a": "\\\\"}</function><function=other>{}</function>',
    '```json\n{"name": "free", "parameters": {"x": "}"}}\n```',
    '{"a": "[1, {\\"b\\": 2}]"}',
    '"{\\"a\\": []}"',
    'Here you are: {"a": 1}, or [2].',
)
ERRORS = (
    b'{"error":{"message":"bad key %s","type":"t","code":"c","param":null}}' % SECRET.encode(),
    b'{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}',
    (
        b'[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":'
        b'[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}]'
    ),
    b'{"message":"m","detail":[{"loc":["body"],"msg":"%s"}]}' % SECRET.encode(),
    b"<html><title>502 Bad Gateway</title></html>",
)


def seeds(target: str) -> Iterator[bytes]:
    """Inputs of one target, each with its first byte."""
    for place, body in enumerate(bodies(target.partition("-")[0])):
        yield CUTS[place % len(CUTS)].to_bytes(1, "big") + body


def bodies(kind: str) -> Iterator[bytes]:
    """What comes in from outside, for targets of one kind."""
    yield b""
    if kind in {"stream", "sse", "content"}:
        yield from [path.read_bytes()[:MAX_BYTES] for path in sorted(GOLDEN.glob("*/*.sse"))]
    if kind in {"answer", "stream"}:
        told = head(is_native=False)
        yield from [surface.encode_answer(ANSWER, told) for surface in surfaces().values()]
    if kind == "stream":
        yield from [text.encode() for text in ODD_TEXTS]
        yield from [
            encode_data(msgspec.json.encode({"choices": [{"delta": {"content": text}}]}))
            for text in ODD_TEXTS
        ]
    if kind in {"answer", "error"}:
        yield from ERRORS
    if kind in {"answer", "request"}:
        yield from MORE
    if kind == "request":
        yield from [codec.encode_conversation(TALK, "m").body for codec in streaming().values()]
