"""A Responses request as a conversation, for an upstream of another dialect."""

from collections.abc import Iterable, Iterator
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
from cluster_gw.surfaces.responses_signature import Kept, Signed, unwrapped
from cluster_gw.wire.json_codec import UnexpectedShapeError, write
from cluster_gw.wire.media import document_in, image_at
from cluster_gw.wire.openai_messages import present
from cluster_gw.wire.openai_responses_input import (
    FULL_RESPONSES_READER,
    FlatChoice,
    FullItem,
    FullResponsesBody,
    ItemPart,
)

JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})
ROLES: Final = MappingProxyType(
    {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}
)
SILENT: Final = frozenset(
    {"model", "models", "provider", "stream_options", "store", "metadata", "service_tier"}
    | {"background"}
)
"""Members that say nothing to the model, or were obeyed already: nobody misses them."""
KNOWN: Final = (
    frozenset(field.encode_name for field in msgspec.structs.fields(FullResponsesBody)) | SILENT
)
ENCRYPTED: Final = "reasoning.encrypted_content"
FUNCTION: Final = "function"
COMPUTER_TOOLS: Final = frozenset({"computer", "computer_use", "computer_use_preview"})
COMPUTER_ITEMS: Final = frozenset({"computer_call", "computer_call_output"})
COMPUTER_PROBLEM: Final = "needs an upstream of the Responses API: no other one uses computers"
CHOICES: Final = MappingProxyType({one.value: one for one in Choosing if one is not Choosing.NAMED})


def conversation_of(request: ChatRequest) -> Conversation:
    """The whole of a request.

    Raises:
        UnexpectedShapeError: a member has another shape than the format's, or a computer is to be
            used, which cannot be left out.
    """
    body = FULL_RESPONSES_READER.read(write(request.fields))
    lost = [name for name in request.fields if name not in KNOWN]
    turns = list(turns_of(body, lost))
    tools = tools_of(body, lost)
    lost += lost_options(body)
    return Conversation(
        turns=(
            *(turn for turn in turns if turn.role is Role.SYSTEM),
            *merged(turn for turn in turns if turn.role is not Role.SYSTEM),
        ),
        tools=tools,
        tool_choice=choice_of(body, tools, lost),
        format=format_of(body, lost),
        sampling=sampling_of(body, request),
        user=body.user if body.user is not None else body.safety_identifier,
        stream=request.stream,
        lost=tuple(lost),
    )


def turns_of(body: FullResponsesBody, lost: list[str]) -> Iterator[Turn]:
    """One turn for each item that says something."""
    instructions, given = body.instructions, body.input
    if isinstance(instructions, str) and instructions:
        yield Turn(role=Role.SYSTEM, parts=(Text(text=instructions),))
    elif isinstance(instructions, list):
        yield from turns_of_items(instructions, "instructions", lost)
    if isinstance(given, str):
        yield Turn(role=Role.USER, parts=(Text(text=given),) if given else ())
    else:
        yield from turns_of_items(given or (), "input", lost)


def turns_of_items(items: Iterable[FullItem], member: str, lost: list[str]) -> Iterator[Turn]:
    """Turns of the items of one member."""
    call_signature = ""
    for place, item in enumerate(items):
        path = f"{member}[{place}]"
        if item.type == "reasoning":
            kept = unwrapped(item.encrypted_content or "")
            if kept.kind is Kept.CALL:
                call_signature = kept.signature
            else:
                yield Turn(role=Role.ASSISTANT, parts=(thinking_of(item, kept),))
        elif item.type == "function_call":
            yield Turn(role=Role.ASSISTANT, parts=(call_of(item, path, call_signature),))
            call_signature = ""
        elif item.type == "function_call_output":
            result = ToolResult(
                call_id=item.call_id or "",
                parts=tuple(
                    part
                    for part in content_of(item.output, f"{path}.output", lost)
                    if isinstance(part, Text | Media)
                ),
            )
            yield Turn(role=Role.USER, parts=(result,))
        elif item.type == "message":
            parts = tuple(content_of(item.content, f"{path}.content", lost))
            yield Turn(role=ROLES.get(item.role, Role.USER), parts=parts)
        elif item.type in COMPUTER_ITEMS:
            raise UnexpectedShapeError(path, COMPUTER_PROBLEM)
        else:
            lost.append(f"{path}: {item.type}")


def merged(turns: Iterable[Turn]) -> Iterator[Turn]:
    """What one side says in several items at once is one turn; messages of a user stay apart."""
    for key, run in groupby(turns, key=kind_of):
        if key == "user":
            yield from run
        else:
            together = list(run)
            parts = tuple(part for turn in together for part in turn.parts)
            yield Turn(role=together[0].role, parts=parts)


def kind_of(turn: Turn) -> str:
    """Who speaks: the model, a tool, or a user."""
    if turn.role is Role.ASSISTANT:
        return "assistant"
    is_result = bool(turn.parts) and isinstance(turn.parts[0], ToolResult)
    return "result" if is_result else "user"


def thinking_of(item: FullItem, kept: Signed) -> Thinking:
    """A thought: its summary, or its words where the vendor shows them."""
    given = item.summary or (item.content if isinstance(item.content, list) else None) or ()
    return Thinking(
        text="\n\n".join([part.text for part in given if part.text]),
        signature=kept.signature,
        is_redacted=kept.kind is Kept.REDACTED,
    )


def call_of(item: FullItem, path: str, signature: str) -> ToolUse:
    """A call of a function."""
    if item.call_id is None or item.name is None:
        missing = "call_id" if item.call_id is None else "name"
        raise UnexpectedShapeError(f"{path}.{missing}", "is missing")
    return ToolUse(
        id=item.call_id, name=item.name, arguments=item.arguments or "{}", signature=signature
    )


def content_of(given: object, path: str, lost: list[str]) -> list[Part]:
    """The parts of a content."""
    if isinstance(given, str):
        return [Text(text=given)] if given else []
    parts: list[Part] = []
    for place, one in enumerate(given if isinstance(given, list) else ()):
        part = part_of(one)
        if part is None:
            lost.append(f"{path}[{place}]")
        else:
            parts.append(part)
    return parts


def part_of(given: ItemPart) -> Part | None:
    """One part; None for what only this vendor knows."""
    if given.refusal is not None:
        return Refusal(text=given.refusal)
    if given.image_url is not None:
        return image_at(given.image_url, given.detail or "")
    if given.input_audio is not None:
        audio = given.input_audio
        return Media(media_type=f"audio/{audio.format}", data=audio.data)
    if given.file_data is not None or given.file_url is not None:
        return file_of(given)
    return None if given.text is None else Text(text=given.text)


def file_of(given: ItemPart) -> Media:
    """A document, by its bytes or its address."""
    name = given.filename or ""
    if given.file_data is None:
        return Media(media_type="application/pdf", url=given.file_url or "", name=name)
    return document_in(given.file_data, name)


def tools_of(body: FullResponsesBody, lost: list[str]) -> tuple[Tool, ...]:
    """The functions that may be called; the vendor's own tools exist nowhere else."""
    tools: list[Tool] = []
    for place, tool in enumerate(body.tools or ()):
        if tool.type in COMPUTER_TOOLS:
            raise UnexpectedShapeError(f"tools[{place}]", COMPUTER_PROBLEM)
        if tool.type != FUNCTION or tool.name is None:
            lost.append(f"tools[{place}]: {tool.type}")
            continue
        tools.append(
            Tool(
                name=tool.name,
                description=tool.description or "",
                schema=present(tool.parameters),
                is_strict=tool.strict,
            )
        )
    return tuple(tools)


def choice_of(body: FullResponsesBody, tools: tuple[Tool, ...], lost: list[str]) -> ToolChoice:
    """Which functions may or must be called; a choice of what is lost is none."""
    given, parallel = body.tool_choice, body.parallel_tool_calls
    if isinstance(given, FlatChoice):
        if given.type == FUNCTION and given.name:
            return ToolChoice(how=Choosing.NAMED, name=given.name, parallel=parallel)
        lost.append(f"tool_choice: {given.type}")
        given = given.mode
    how = CHOICES.get(given or "auto", Choosing.AUTO) if tools else Choosing.AUTO
    return ToolChoice(how=how, parallel=parallel)


def format_of(body: FullResponsesBody, lost: list[str]) -> AnswerFormat | None:
    """Structured output, if any is wanted; kinds other than JSON are lost."""
    given = None if body.text is None else body.text.format
    if given is None or given.type == "text":
        return None
    if given.type not in JSON_FORMATS:
        lost.append(f"text.format ({given.type})")
        return None
    return AnswerFormat(
        name=given.name,
        schema=present(given.schema),
        is_strict=given.strict,
        description=given.description or "",
    )


def sampling_of(body: FullResponsesBody, request: ChatRequest) -> Sampling:
    """How the answer is drawn; the bound of the output is the request's, which may be ours."""
    thought = body.reasoning
    shows = thought is not None and (thought.summary or thought.generate_summary)
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        effort=None if thought is None else thought.effort,
        shows_thinking=True if shows else None,
    )


def lost_options(body: FullResponsesBody) -> Iterator[str]:
    """Members that are read and yet have no words elsewhere."""
    if body.text is not None and body.text.verbosity is not None:
        yield "text.verbosity"
    if body.truncation not in {None, "disabled"}:
        yield "truncation"
    for name in body.include or ():
        if name != ENCRYPTED:
            yield f"include: {name}"
