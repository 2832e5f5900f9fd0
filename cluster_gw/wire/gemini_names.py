"""Members of Gemini's format by their other names: `system_instruction` for `systemInstruction`.

The vendor takes both forms, and its own examples use both. What a client makes up itself, such as
the names in a schema or in the arguments of a call, is nobody's to rename and stays as it is.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.wire.json_codec import read_any, write

# No quantifier gives back: a body of long words would be read again and again.
FIRST: Final = re.compile(rb'"[a-z]++_[a-z_]++"\s*+:')


class Named(msgspec.Struct, frozen=True):
    """An object of the format.

    Attributes:
        names: its members with two names, from the one to the other.
        inner: those of its members that are such objects, or arrays of them.
    """

    names: Mapping[str, str]
    inner: Mapping[str, "Named"]


def named(*snake: str, **inner: Named) -> Named:
    """An object with members of these names."""
    names = {name: camel(name) for name in snake if "_" in name}
    names.update({name: camel(name) for name in inner if "_" in name})
    found = {camel(name): shape for name, shape in inner.items()}
    return Named(MappingProxyType(names), MappingProxyType(found))


def camel(name: str) -> str:
    """`mime_type` as `mimeType`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


BLOB: Final = named("mime_type", "file_uri", "display_name")
PART: Final = named(
    "thought_signature",
    "executable_code",
    "code_execution_result",
    "media_resolution",
    inline_data=BLOB,
    file_data=BLOB,
    video_metadata=named("start_offset", "end_offset"),
    function_call=named(),
    function_response=named("will_continue", parts=named(inline_data=BLOB, file_data=BLOB)),
)
CONTENT: Final = named(parts=PART)
REQUEST: Final = named(
    "cached_content",
    "safety_settings",
    "service_tier",
    contents=CONTENT,
    system_instruction=CONTENT,
    tools=named(
        "google_search",
        "google_search_retrieval",
        "code_execution",
        "url_context",
        "computer_use",
        "file_search",
        "google_maps",
        function_declarations=named(
            "parameters_json_schema", "response_json_schema", "behavior", "response"
        ),
    ),
    tool_config=named(
        "retrieval_config", function_calling_config=named("allowed_function_names", "mode")
    ),
    generation_config=named(
        "candidate_count",
        "max_output_tokens",
        "stop_sequences",
        "top_p",
        "top_k",
        "presence_penalty",
        "frequency_penalty",
        "response_mime_type",
        "response_schema",
        "response_json_schema",
        "response_modalities",
        "response_logprobs",
        "media_resolution",
        "image_config",
        "speech_config",
        thinking_config=named("thinking_budget", "include_thoughts", "thinking_level"),
    ),
)
COUNTING: Final = named(contents=CONTENT, generate_content_request=REQUEST)


def in_camel_case(body: bytes, shape: Named = REQUEST) -> bytes:
    """The body with its members by their usual names; the same bytes where they are so already.

    Raises:
        InvalidJsonError: no JSON.
    """
    if not has_other_names(body):
        return body
    document = read_any(body)
    return write(document) if renamed(document, shape) else body


def has_other_names(body: bytes) -> bool:
    """Whether a body may have members by their other names."""
    return b"_" in body and FIRST.search(body) is not None


def renamed(document: Any, shape: Named) -> bool:
    """Rename in place; whether there was anything to rename."""
    if isinstance(document, list):
        # Each of them, not up to the first. The format has no arrays in arrays, of any depth.
        return sum(renamed(one, shape) for one in document if isinstance(one, dict)) > 0
    if not isinstance(document, dict):
        return False
    found = False
    for name in [name for name in document if name in shape.names]:
        value = document.pop(name)
        document.setdefault(shape.names[name], value)
        found = True
    for name, inner in shape.inner.items():
        if name in document:
            found = renamed(document[name], inner) or found
    return found
