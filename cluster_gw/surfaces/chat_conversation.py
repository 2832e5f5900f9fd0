"""A chat completions request as a conversation, for an upstream of another dialect."""

from collections.abc import Iterator
from itertools import groupby
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
    Part,
    Refusal,
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
from cluster_gw.wire.json_codec import Fields, write
from cluster_gw.wire.media import document_in, image_at
from cluster_gw.wire.openai_messages import (
    FULL_READER,
    MEMBERS_READER,
    CalledFunction,
    FullBody,
    FullMessage,
    FullPart,
    FunctionSpec,
    NamedTool,
    present,
)

ROLES: Final = MappingProxyType({"system": Role.SYSTEM, "developer": Role.SYSTEM})
RESULT_ROLES: Final = frozenset({"tool", "function"})
SILENT: Final = frozenset(
    {"model", "models", "provider", "stream_options", "store", "metadata", "service_tier"}
)
"""Members that say nothing to the model, or were obeyed already: nobody misses them."""
KNOWN: Final = frozenset(field.encode_name for field in msgspec.structs.fields(FullBody)) | SILENT
SAYS_NOTHING: Final = frozenset({b"null", b"[]", b"{}", b'""'})
RESULTS: Final = frozenset({b'"tool"', b'"function"'})
KNOWN_RESULT: Final = frozenset(field.encode_name for field in msgspec.structs.fields(FullMessage))
KNOWN_MESSAGE: Final = KNOWN_RESULT - {"name"}  # of one who speaks
JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})
CHOICES: Final = MappingProxyType(
    {
        "auto": Choosing.AUTO,
        "none": Choosing.NONE,
        "required": Choosing.REQUIRED,
        "any": Choosing.REQUIRED,
    }
)


def conversation_of(request: ChatRequest) -> Conversation:
    """The whole of a request.

    Raises:
        UnexpectedShapeError: a member has another shape than the format's.
    """
    given = write(request.fields)
    body = FULL_READER.read(given)
    lost = [name for name in request.fields if name not in KNOWN]
    lost += unread_members(MEMBERS_READER.read(given).messages)
    lost += [f"tools[{at}]" for at, tool in enumerate(body.tools or ()) if tool.function is None]
    turns = tuple(
        turn_of(message, f"messages[{place}]", lost) for place, message in enumerate(body.messages)
    )
    return Conversation(
        turns=merged(turns),
        tools=tools_of(body),
        tool_choice=choice_of(body),
        format=format_of(body, lost),
        sampling=sampling_of(body, request),
        user=body.user,
        stream=request.stream,
        lost=tuple(lost),
    )


def unread_members(messages: list[Fields]) -> Iterator[str]:
    """Paths of what stands in messages and nothing here stands for."""
    for place, message in enumerate(messages):
        known = KNOWN_RESULT if bytes(message["role"]) in RESULTS else KNOWN_MESSAGE
        for name, value in message.items():
            if name not in known and bytes(value) not in SAYS_NOTHING:
                yield f"messages[{place}].{name}"


def turn_of(message: FullMessage, path: str, lost: list[str]) -> Turn:
    """One message; what has no words in the internal language goes into `lost`."""
    parts = content_of(message, path, lost)
    if message.role in RESULT_ROLES:
        result = ToolResult(
            call_id=message.tool_call_id or message.name or "",
            name=message.name or "",
            parts=tuple(part for part in parts if isinstance(part, Text | Media)),
        )
        return Turn(role=Role.USER, parts=(result,))
    if message.role != "assistant":
        return Turn(role=ROLES.get(message.role, Role.USER), parts=tuple(parts))
    if thought := message.reasoning_content or message.reasoning:
        parts.insert(0, Thinking(text=thought))
    parts += [part for one in message.images or () if (part := part_of(one)) is not None]
    if message.refusal:
        parts.append(Refusal(text=message.refusal))
    for number, call in enumerate(message.tool_calls or ()):
        if call.function is not None:
            use = use_of(call.function, call.id or f"call_{number}")
            parts.append(msgspec.structs.replace(use, signature=call.signature))
        else:
            lost.append(f"{path}.tool_calls[{number}]")
    if message.function_call is not None:  # the old way has no ids: the name stands for it
        parts.append(use_of(message.function_call, message.function_call.name))
    return Turn(role=Role.ASSISTANT, parts=tuple(parts))


def use_of(function: CalledFunction, call_id: str) -> ToolUse:
    """One call."""
    return ToolUse(id=call_id, name=function.name, arguments=function.arguments or "{}")


def content_of(message: FullMessage, path: str, lost: list[str]) -> list[Part]:
    """The parts of a message's content."""
    content = message.content
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    parts: list[Part] = []
    for place, given in enumerate(content):
        part = Text(text=given) if isinstance(given, str) else part_of(given)
        if part is None:
            lost.append(f"{path}.content[{place}]")
        else:
            parts.append(part)
    return parts


def part_of(given: FullPart) -> Part | None:
    """One part; None for what only this vendor knows, such as the id of a file it keeps."""
    if given.refusal is not None:
        return Refusal(text=given.refusal)
    if given.image_url is not None:
        image = given.image_url
        url, detail = (image, "") if isinstance(image, str) else (image.url, image.detail or "")
        return image_at(url, detail)
    if given.input_audio is not None:
        audio = given.input_audio
        return Media(media_type=f"audio/{audio.format}", data=audio.data)
    if given.file is not None and given.file.file_data is not None:
        return document_in(given.file.file_data, given.file.filename or "")
    return None if given.text is None else Text(text=given.text)


def merged(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Results that follow each other are one turn: the calls were made in one."""
    joined: list[Turn] = []
    for is_result, run in groupby(turns, key=has_results_only):
        if is_result:
            parts = tuple([part for turn in run for part in turn.parts])
            joined.append(Turn(role=Role.USER, parts=parts))
        else:
            joined += run
    return tuple(joined)


def has_results_only(turn: Turn) -> bool:
    """Whether tools alone speak."""
    return bool(turn.parts) and all(isinstance(part, ToolResult) for part in turn.parts)


def tools_of(body: FullBody) -> tuple[Tool, ...]:
    """What may be called; tools of other kinds are the vendor's own."""
    given: list[FunctionSpec] = [
        tool.function for tool in body.tools or () if tool.function is not None
    ]
    return tuple(
        Tool(
            name=one.name,
            description=one.description or "",
            schema=present(one.parameters),
            is_strict=one.strict,
        )
        for one in [*given, *(body.functions or ())]
    )


def choice_of(body: FullBody) -> ToolChoice:
    """How free the model is."""
    given = body.tool_choice if body.tool_choice is not None else body.function_call
    parallel = body.parallel_tool_calls
    if isinstance(given, NamedTool):
        name = given.function.name if given.function is not None else given.name
        if name:
            return ToolChoice(how=Choosing.NAMED, name=name, parallel=parallel)
        return ToolChoice(parallel=parallel)
    return ToolChoice(how=CHOICES.get(given or "auto", Choosing.AUTO), parallel=parallel)


def format_of(body: FullBody, lost: list[str]) -> AnswerFormat | None:
    """Structured output, if any is wanted; kinds of single providers are lost."""
    given = body.response_format
    if given is None or given.type == "text":
        return None
    if given.type not in JSON_FORMATS:
        lost.append(f"response_format ({given.type})")
        return None
    spec = given.json_schema
    if spec is None:
        return AnswerFormat()
    return AnswerFormat(
        name=spec.name,
        schema=present(spec.schema),
        is_strict=spec.strict,
        description=spec.description or "",
    )


def sampling_of(body: FullBody, request: ChatRequest) -> Sampling:
    """How the answer is drawn; the bound of the output is the request's, which may be ours."""
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=stop,
        seed=body.seed,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        choices=request.choices,
        effort=body.reasoning_effort,
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )
