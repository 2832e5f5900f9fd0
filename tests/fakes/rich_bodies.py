"""A request of each API that says everything it can, and what a hostile client puts into it."""

import copy
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

Path = tuple[str | int, ...]

SCHEMA: Final[Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["a"]},
        "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
}
PNG: Final = "data:image/png;base64,AAAA"
PDF: Final = "data:application/pdf;base64,AAAA"
CHAT: Final[Any] = {
    "model": "m",
    "stream": False,
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "name": "bob",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_data": PDF, "filename": "f"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "t",
            "refusal": "no",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"city":"x"}'},
                    "extra_content": {"google": {"thought_signature": "AAAA"}},
                }
            ],
            "images": [{"type": "image_url", "image_url": {"url": PNG}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": True,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": SCHEMA, "strict": True, "description": "d"},
    },
    "n": 1,
    "max_completion_tokens": 6,
    "temperature": 0.5,
    "seed": 1,
    "stop": ["x"],
    "logit_bias": {"1": 2},
    "logprobs": True,
    "top_logprobs": 2,
    "reasoning_effort": "low",
    "user": "u",
    "stream_options": {"include_usage": True},
    "functions": [{"name": "g", "parameters": {}}],
    "function_call": {"name": "g"},
}
MESSAGES: Final[Any] = {
    "model": "m",
    "max_tokens": 9,
    "stream": False,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                },
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "x"}]},
                    "citations": {"enabled": True},
                },
                {
                    "type": "search_result",
                    "source": "s",
                    "title": "t",
                    "content": [{"type": "text", "text": "x"}],
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "gw:abc"},
                {"type": "redacted_thinking", "data": "AAAA"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"city": "x"}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [
                        {"type": "text", "text": "r"},
                        {"type": "image", "source": {"type": "url", "url": "https://h/x"}},
                    ],
                }
            ],
        },
    ],
    "tools": [
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"type": "bash_20250124", "name": "bash"},
    ],
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "top_k": 4,
    "stop_sequences": ["x"],
    "metadata": {"user_id": "u"},
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
}
RESPONSES: Final[Any] = {
    "model": "m",
    "instructions": "s",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hi"},
                {"type": "input_image", "image_url": PNG, "detail": "low"},
                {"type": "input_file", "file_data": PDF, "filename": "f"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "t"}],
            "encrypted_content": "gw1abc",
        },
        {
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "x"},
                {"type": "refusal", "refusal": "n"},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "r"}],
        },
        {"type": "custom_tool_call", "call_id": "k", "name": "z", "input": "i"},
    ],
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "max_output_tokens": 99,
    "include": ["reasoning.encrypted_content"],
    "stream": False,
}
GEMINI: Final[Any] = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "hi"},
                {"inline_data": {"mimeType": "image/png", "data": "AAAA"}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://h/x"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "t", "thought": True, "thoughtSignature": "AAAA"},
                {"functionCall": {"name": "f", "args": {"city": "x"}, "id": "1"}},
                {"executableCode": {"language": "PYTHON", "code": "x"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "f",
                        "response": {"result": "r"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                    }
                }
            ],
        },
    ],
    "systemInstruction": {"parts": [{"text": "s"}]},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"city": {"type": "STRING", "nullable": True}},
                    },
                },
                {"name": "g", "parametersJsonSchema": SCHEMA},
            ]
        },
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "generationConfig": {
        "topK": 4,
        "maxOutputTokens": 99,
        "stopSequences": ["x"],
        "candidateCount": 1,
        "responseModalities": ["TEXT"],
        "thinking_config": {"thinking_budget": 5, "includeThoughts": True},
    },
}
COMPLETIONS: Final[Any] = {
    "model": "m",
    "prompt": "x",
    "n": 1,
    "best_of": 1,
    "echo": False,
    "suffix": None,
    "logprobs": None,
    "stop": ["x"],
    "stream": False,
    "stream_options": None,
}
EMBEDDINGS: Final[Any] = {
    "model": "m",
    "input": ["a", "b"],
    "dimensions": 3,
    "encoding_format": "float",
    "user": "u",
}
EMBED: Final[Any] = {
    "content": {"parts": [{"text": "a"}], "role": "user"},
    "task_type": "X",
    "outputDimensionality": 3,
    "embedContentConfig": {"outputDimensionality": 3},
}
BODIES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "/v1/chat/completions": CHAT,
        "/v1/messages": MESSAGES,
        "/v1/messages/count_tokens": MESSAGES,
        "/v1/responses": RESPONSES,
        "/v1/completions": COMPLETIONS,
        "/v1/embeddings": EMBEDDINGS,
        ":generateContent": GEMINI,
        ":streamGenerateContent": GEMINI,
        ":countTokens": {"generateContentRequest": GEMINI},
        ":embedContent": EMBED,
        ":batchEmbedContents": {"requests": [EMBED]},
    }
)
"""By the path it is sent to; those of Gemini's API begin with that of a model."""
ODD: Final = (
    *(b"null", b"true", b"-1", b"1.5", b"1" * 30, b"1e999", b"NaN", b"-Infinity"),
    *(b'""', b'"x"', b'"\\ud800"', b'"\\udc00x"', b'"\xff"', b'"\\u0000"', b'"gw1"', b'"gw:"'),
    *(b'"data:;base64,"', b'"data:,x"', b'"http://["', b'"data:image/png;base64,"'),
    *(b"[]", b"{}", b"[[]]", b"[null]", b"[1]", b'["x"]', b"[{}]", b'{"a":1,"a":2}'),
    *(b'{"type":null}', b'{"type":"text"}', b'{"type":"object","properties":[]}'),
    *(b'{"type":["object","null"],"properties":{"a":null}}', b'{"$ref":"#"}', b'{"anyOf":{}}'),
    *(b"[" * 900 + b"]" * 900, b'{"a":' * 900 + b"1" + b"}" * 900),
    *(b"[" * 9000 + b"]" * 9000, b'{"a":' * 9000 + b"1" + b"}" * 9000),
    *(b"[" + b"0," * 9000 + b"0]", b"[" + b"{}," * 9000 + b"{}]", b"", b"]", b'"'),
)
"""What a client may put where something else is expected, as bytes; some of it is no JSON."""
PLACE: Final = "\N{LEFT-POINTING ANGLE BRACKET}here\N{RIGHT-POINTING ANGLE BRACKET}"


def paths(document: Any, before: Path = ()) -> Iterator[Path]:
    """Every place in a document, itself among them."""
    yield before
    if isinstance(document, dict):
        for name, value in document.items():
            yield from paths(value, (*before, name))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from paths(value, (*before, place))


def spoilt(document: Any, path: Path, odd: bytes) -> bytes:
    """The document with something odd in one place."""
    whole = [copy.deepcopy(document)]
    inner: Any = whole
    steps: Path = (0, *path)
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = PLACE
    return msgspec.json.encode(whole[0]).replace(f'"{PLACE}"'.encode(), odd)
