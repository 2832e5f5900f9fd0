"""A messages request as a conversation, for an upstream of another dialect."""

from collections.abc import Mapping, Sequence
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
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.wire.anthropic_conversation import (
    FULL_READER,
    FullBlock,
    FullMessage,
    FullMessages,
    FullSource,
    InnerBlock,
)
from cluster_gw.wire.anthropic_messages import FOREIGN, FOREIGN_CALL, SIGNED
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.openai_messages import present

SILENT: Final = frozenset(
    {"model", "models", "provider", "cache_control", "service_tier", "inference_geo", "speed"}
    | {"diagnostics"}
)
"""Members that say nothing to the model, or were obeyed already: nobody misses them."""
KNOWN: Final = (
    frozenset(field.encode_name for field in msgspec.structs.fields(FullMessages)) | SILENT
)
ROLES: Final = MappingProxyType({"assistant": Role.ASSISTANT, "system": Role.SYSTEM})
CHOICES: Final[Mapping[str, Choosing]] = MappingProxyType(
    {
        "auto": Choosing.AUTO,
        "any": Choosing.REQUIRED,
        "tool": Choosing.NAMED,
        "none": Choosing.NONE,
    }
)
EFFORTS: Final = MappingProxyType({"max": "xhigh"})
LOW_TOKENS: Final = 4096
MEDIUM_TOKENS: Final = 16_384
PLAIN: Final = frozenset({None, "custom"})


def conversation_of(request: ChatRequest) -> Conversation:
    """The whole of a request.

    Raises:
        UnexpectedShapeError: a member has another shape than the format's.
    """
    body = FULL_READER.read(write(request.fields))
    lost = [name for name in request.fields if name not in KNOWN]
    turns = [
        turn_of(message, f"messages[{place}]", lost) for place, message in enumerate(body.messages)
    ]
    tools = tools_of(body, lost)
    return Conversation(
        turns=(*system_of(body), *turns),
        tools=tools,
        tool_choice=choice_of(body),
        format=format_of(body, lost),
        sampling=sampling_of(body, request, lost),
        user=None if body.metadata is None else body.metadata.user_id,
        stream=request.stream,
        lost=tuple(lost),
    )


def system_of(body: FullMessages) -> tuple[Turn, ...]:
    """The system prompt as a turn of its own, first; none without one."""
    system = body.system
    texts = [system] if isinstance(system, str) else [block.text for block in system or ()]
    parts = tuple([Text(text=text) for text in texts if text])
    return (Turn(role=Role.SYSTEM, parts=parts),) if parts else ()


def turn_of(message: FullMessage, path: str, lost: list[str]) -> Turn:
    """One message; what has no words in the internal language goes into `lost`."""
    role = ROLES.get(message.role, Role.USER)
    if isinstance(message.content, str):
        parts: list[Part] = [Text(text=message.content)] if message.content else []
        return Turn(role=role, parts=tuple(parts))
    parts, proof = [], ""
    for place, block in enumerate(message.content):
        if block.type == "thinking" and block.signature.startswith(FOREIGN_CALL):
            proof = block.signature.removeprefix(FOREIGN_CALL)
            if block.thinking:
                parts.append(Thinking(text=block.thinking))
            continue
        part = part_of(block, f"{path}.content[{place}]", lost, proof)
        if isinstance(part, ToolUse):
            proof = ""
        if part is not None:
            parts.append(part)
    return Turn(role=role, parts=tuple(parts))


def part_of(block: FullBlock, path: str, lost: list[str], proof: str) -> Part | None:
    """One block; None for an empty one, and for what only this vendor knows.

    `proof` is another vendor's signature of the call that comes next.
    """
    match block.type:
        case "thinking":
            return Thinking(text=block.thinking, signature=signature_of(block.signature))
        case "redacted_thinking":
            return Thinking(signature=signature_of(block.data), is_redacted=True)
        case "tool_use":
            return use_of(block, proof)
        case "tool_result":
            return result_of(block, path, lost)
        case _:
            if block.type != "text" and present(block.citations) is not None:
                lost.append(f"{path}.citations")
            inner = InnerBlock(
                type=block.type,
                text=block.text,
                source=block.source,
                title=block.title,
                content=None if isinstance(block.content, dict) else block.content,
            )
            return inner_of(inner, path, lost)


def signature_of(given: str) -> str:
    """A signature as it is known outside this dialect: with the mark of its vendor."""
    if given.startswith(FOREIGN):
        return given.removeprefix(FOREIGN)
    return SIGNED + given if given else ""


def use_of(block: FullBlock, proof: str) -> ToolUse:
    """A call."""
    arguments = present(block.input)
    return ToolUse(
        id=block.id,
        name=block.name,
        arguments="{}" if arguments is None else bytes(arguments).decode(),
        signature=proof,
    )


def result_of(block: FullBlock, path: str, lost: list[str]) -> ToolResult:
    """What a tool gave back."""
    content = block.content
    parts: list[Text | Media] = []
    if isinstance(content, str):
        parts = [Text(text=content)] if content else []
    elif isinstance(content, list):
        for place, inner in enumerate(content):
            part = inner_of(inner, f"{path}.content[{place}]", lost)
            if part is not None:
                parts.append(part)
    return ToolResult(
        call_id=block.tool_use_id, parts=tuple(parts), is_error=block.is_error is True
    )


def inner_of(inner: InnerBlock, path: str, lost: list[str]) -> Text | Media | None:
    """One block inside a result."""
    match inner.type:
        case "text":
            return Text(text=inner.text) if inner.text else None
        case "image" | "document":
            return media_of(inner.type, inner.source, inner.title, path, lost)
        case "search_result":
            return found_of(inner)
        case other:
            lost.append(f"{path} ({other})")
            return None


def media_of(
    kind: str, source: FullSource | str | None, title: str | None, path: str, lost: list[str]
) -> Text | Media | None:
    """An image or a document; a document of plain text is text. None for a file the vendor has."""
    if not isinstance(source, FullSource) or source.type == "file":
        lost.append(f"{path} ({kind} of a file)")
        return None
    if source.type == "text":
        return Text(text=source.data)
    if source.type == "content":
        return Text(text=texts_of(source.content))
    fallback = "image/*" if kind == "image" else "application/pdf"
    return Media(
        media_type=source.media_type or fallback,
        url=source.url,
        data="" if source.url else source.data,
        name=title or "",
    )


def found_of(inner: InnerBlock) -> Text:
    """A result of the client's own search, as text with its title and where it was found."""
    where = inner.source if isinstance(inner.source, str) else ""
    return Text(text="\n".join(filter(None, (inner.title, where, texts_of(inner.content)))))


def texts_of(content: str | Sequence[InnerBlock] | None) -> str:
    """All text of a content."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([inner.text or "" for inner in content])


def tools_of(body: FullMessages, lost: list[str]) -> tuple[Tool, ...]:
    """What may be called; tools with a type of their own are run by the vendor, or known to it."""
    tools: list[Tool] = []
    for place, tool in enumerate(body.tools or ()):
        if tool.type not in PLAIN:
            lost.append(f"tools[{place}] ({tool.type})")
            continue
        tools.append(
            Tool(
                name=tool.name,
                description=tool.description or "",
                schema=present(tool.input_schema),
                is_strict=tool.strict,
            )
        )
    return tuple(tools)


def choice_of(body: FullMessages) -> ToolChoice:
    """How free the model is."""
    given = body.tool_choice
    if given is None:
        return ToolChoice()
    serial = given.disable_parallel_tool_use
    how = CHOICES.get(given.type, Choosing.AUTO)
    return ToolChoice(
        how=how,
        name=given.name if how is Choosing.NAMED else "",
        parallel=None if serial is None else not serial,
    )


def format_of(body: FullMessages, lost: list[str]) -> AnswerFormat | None:
    """Structured output, if any is wanted."""
    config = body.output_config
    given = (config.format if config is not None else None) or body.output_format
    if given is None:
        return None
    schema = present(given.schema)
    if given.type != "json_schema" or schema is None:
        lost.append(f"output_config.format ({given.type})")
        return None
    return AnswerFormat(name="answer", schema=schema, is_strict=True)


def sampling_of(body: FullMessages, request: ChatRequest, lost: list[str]) -> Sampling:
    """How the answer is drawn; the bound of the output is the request's, which may be ours."""
    thinking, config = body.thinking, body.output_config
    effort = None if config is None or config.effort is None else config.effort
    budget: int | None = None
    shows: bool | None = None
    if thinking is not None:
        if thinking.type == "enabled":
            budget = thinking.budget_tokens
            effort = effort or (None if budget is None else effort_of(budget))
        elif thinking.type == "disabled":
            budget, effort = 0, None
        elif thinking.type != "adaptive":
            lost.append(f"thinking ({thinking.type})")
        shows = {"summarized": True, "omitted": False}.get(thinking.display or "")
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=tuple(body.stop_sequences or ()),
        effort=None if effort is None else EFFORTS.get(effort, effort),
        thinking_tokens=budget,
        shows_thinking=shows,
    )


def effort_of(budget_tokens: int) -> str:
    """The effort that a budget of thoughts comes to."""
    if budget_tokens <= LOW_TOKENS:
        return "low"
    return "medium" if budget_tokens <= MEDIUM_TOKENS else "high"
