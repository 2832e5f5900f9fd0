"""A generateContent request as a conversation, for an upstream of another dialect."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

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
    ToolUse,
    Turn,
)
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.surfaces.gemini_calls import Calls
from cluster_gw.surfaces.gemini_facts import JSON_MEDIA_TYPE
from cluster_gw.wire.gemini import MARKED, SIGNED
from cluster_gw.wire.gemini_messages import (
    FULL_READER,
    CallingConfig,
    Declaration,
    FullBlob,
    FullBody,
    FullConfig,
    FullContent,
    FullPart,
    FullTool,
    ThinkingConfig,
)
from cluster_gw.wire.gemini_schema import from_gemini
from cluster_gw.wire.json_codec import (
    FIELDS_READER,
    Fields,
    JsonReader,
    write,
)

SILENT: Final = frozenset({"model", "store", "labels", "serviceTier"})
"""Members that say nothing to the model: nobody misses them."""
KNOWN: Final = frozenset(field.encode_name for field in msgspec.structs.fields(FullBody)) | SILENT
KNOWN_CONFIG: Final = frozenset(field.encode_name for field in msgspec.structs.fields(FullConfig))
KNOWN_PART: Final = frozenset(field.encode_name for field in msgspec.structs.fields(FullPart))
ABSENT: Final = frozenset({b"", b"null"})
LISTED: Final = JsonReader[list[Fields] | Fields](list[Fields] | Fields)
CHOICES: Final[Mapping[str, Choosing]] = MappingProxyType(
    {"AUTO": Choosing.AUTO, "NONE": Choosing.NONE, "ANY": Choosing.REQUIRED}
)
EFFORTS: Final = ((0, "none"), (1024, "low"), (8192, "medium"))
MOST_EFFORT: Final = "high"
NO_CONFIG: Final = FullConfig()


def conversation_of(request: ChatRequest) -> Conversation:
    """The whole of a request.

    Raises:
        UnexpectedShapeError: a member has another shape than the format's, or cannot be left out.
    """
    fields = request.fields
    body = FULL_READER.read(write(fields))
    lost = [name for name in fields if name not in KNOWN]
    lost += unread(fields, "generationConfig", KNOWN_CONFIG)
    calls = Calls()
    contents = [body.contents] if isinstance(body.contents, FullContent) else body.contents
    turns = [
        turn
        for place, content in enumerate(contents)
        if (turn := turn_of(content, f"contents[{place}]", calls, lost)).parts
    ]
    config = body.generation_config or NO_CONFIG
    lost += [f"modality {one}" for one in config.response_modalities or () if one != "TEXT"]
    tools = tools_of(body, fields, lost)
    given = body.tool_config.function_calling_config if body.tool_config is not None else None
    allowed = frozenset(given.allowed_function_names or ()) if given is not None else frozenset()
    return Conversation(
        turns=(*system_of(body, lost), *turns),
        tools=tuple(tool for tool in tools if not allowed or tool.name in allowed),
        tool_choice=choice_of(given),
        format=format_of(config),
        sampling=sampling_of(config, request),
        stream=request.stream,
        lost=tuple(lost),
    )


def unread(fields: Fields, name: str, known: frozenset[str]) -> list[str]:
    """Paths of the members of an object that nothing here stands for."""
    member = fields.get(name)
    if member is None or bytes(member) in ABSENT:
        return []
    return [f"{name}.{inner}" for inner in FIELDS_READER.read(member) if inner not in known]


def system_of(body: FullBody, lost: list[str]) -> list[Turn]:
    """What the model was told before everything else."""
    given = body.system_instruction
    if given is None:
        return []
    if isinstance(given, str):
        texts = [given]
    else:
        texts = [part.text or "" for part in given.all_parts]
        lost += [
            f"systemInstruction.parts[{place}]"
            for place, part in enumerate(given.all_parts)
            if part.text is None
        ]
    parts = tuple(Text(text=text) for text in texts if text)
    return [Turn(role=Role.SYSTEM, parts=parts)] if parts else []


def turn_of(content: FullContent, path: str, calls: Calls, lost: list[str]) -> Turn:
    """One content; what has no words in the internal language goes into `lost`."""
    role = Role.ASSISTANT if content.role == "model" else Role.USER
    parts: list[Part] = []
    for place, given in enumerate(content.all_parts):
        part = part_of(given, calls)
        if part is None:
            lost.append(f"{path}.parts[{place}]")
        elif not (isinstance(part, Text) and not part.text):
            parts.append(part)
    return Turn(role=role, parts=tuple(parts))


def part_of(given: FullPart, calls: Calls) -> Part | None:
    """One part; None for what only this vendor knows, such as code that it ran itself."""
    if given.function_call is not None:
        call = given.function_call
        return ToolUse(
            id=calls.begin(call.name, call.id),
            name=call.name,
            arguments=bytes(call.args).decode() if bytes(call.args) not in ABSENT else "{}",
            signature=given.thought_signature or "",
        )
    if given.function_response is not None:
        return calls.end(given.function_response)
    media = given.inline_data or given.file_data
    if media is not None:
        return media_of(media)
    if given.text is None:
        return None
    if given.thought:
        return Thinking(text=given.text, signature=outer_signature(given.thought_signature or ""))
    return Text(text=given.text)


def outer_signature(given: str) -> str:
    """A signature of a thought as it is known outside this dialect: with the mark of its vendor.

    The vendor's own SDK writes it in the alphabet of addresses, which another vendor may not know.
    """
    if given.startswith(MARKED):
        return given.replace("-", "+").replace("_", "/")
    return SIGNED + given if given else ""


def media_of(given: FullBlob) -> Media:
    """An image, a sound or a document."""
    if given.file_uri:
        return Media(media_type=given.mime_type, url=given.file_uri)
    # The vendor's own SDK writes the alphabet of addresses, which others do not read.
    data = given.data.replace("-", "+").replace("_", "/")
    return Media(media_type=given.mime_type, data=data, name=given.display_name or "")


def tools_of(body: FullBody, fields: Fields, lost: list[str]) -> list[Tool]:
    """What may be called; tools of other kinds are the vendor's own."""
    if body.tools is None:
        return []
    groups = LISTED.read(fields["tools"])
    for place, group in enumerate([groups] if isinstance(groups, dict) else groups):
        lost += [f"tools[{place}].{name}" for name in group if name != "functionDeclarations"]
    tools: Iterable[FullTool] = [body.tools] if isinstance(body.tools, FullTool) else body.tools
    return [tool_of(one) for tool in tools for one in tool.function_declarations or ()]


def tool_of(given: Declaration) -> Tool:
    """One function; its schema in the words of JSON Schema."""
    schema: msgspec.Raw | None = None
    if bytes(given.parameters_json_schema) not in ABSENT:
        schema = given.parameters_json_schema
    elif bytes(given.parameters) not in ABSENT:
        schema = from_gemini(given.parameters)
    return Tool(name=given.name, description=given.description or "", schema=schema)


def choice_of(given: CallingConfig | None) -> ToolChoice:
    """How free the model is; one allowed name that must be called is a choice of that one."""
    if given is None:
        return ToolChoice()
    how = CHOICES.get(given.mode or "AUTO", Choosing.AUTO)
    names = given.allowed_function_names or []
    if how is Choosing.REQUIRED and len(names) == 1:
        return ToolChoice(how=Choosing.NAMED, name=names[0])
    return ToolChoice(how=how)


def format_of(config: FullConfig) -> AnswerFormat | None:
    """Structured output, if any is wanted."""
    if bytes(config.response_json_schema) not in ABSENT:
        return AnswerFormat(schema=config.response_json_schema)
    if bytes(config.response_schema) not in ABSENT:
        return AnswerFormat(schema=from_gemini(config.response_schema))
    return AnswerFormat() if config.response_mime_type == JSON_MEDIA_TYPE else None


def sampling_of(config: FullConfig, request: ChatRequest) -> Sampling:
    """How the answer is drawn; the bound of the output is the request's, which may be ours."""
    thinking = config.thinking_config or ThinkingConfig()
    budget = thinking.thinking_budget
    if budget is not None and budget < 0:  # as much as the model likes, which is its default
        budget = None
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=None if config.top_k is None else round(config.top_k),
        stop=tuple(config.stop_sequences or ()),
        seed=config.seed,
        presence_penalty=config.presence_penalty,
        frequency_penalty=config.frequency_penalty,
        choices=request.choices,
        effort=effort_of(thinking.thinking_level, budget),
        thinking_tokens=budget,
        shows_thinking=thinking.include_thoughts,
        top_logprobs=(config.logprobs or 0) if config.response_logprobs else None,
    )


def effort_of(level: str | None, budget: int | None) -> str | None:
    """How much to think, for those who have no bound in tokens."""
    if level is not None and level != "THINKING_LEVEL_UNSPECIFIED":
        return level.lower()
    if budget is None:
        return None
    return next((effort for most, effort in EFFORTS if budget <= most), MOST_EFFORT)
