"""Nothing is lost in silence: what the other side has no words for is named.

The kinds of parts, times the codecs that write them. The tables of what arrives are those of
docs/compatibility.md.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import (
    Conversation,
    Media,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import SUPPORTED_DIALECTS
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import StreamHead, Surface
from cluster_gw.surfaces.embeddings import Embeddings
from cluster_gw.surfaces.gemini import GenerateContent

PAGE: Final = Path(__file__).parents[2] / "docs" / "compatibility.md"
WORD: Final = "bWFya2Vk"  # base64, so that it may stand for bytes as well
SIGNED: Final = MappingProxyType(
    {
        Dialect.ANTHROPIC: "Z3c6Y2xhdWRl",
        Dialect.GEMINI: "Z3c6Z2VtaW5p",
        Dialect.OPENAI_RESPONSES: "Z3c6b3BlbmFp",
    }
)
CODECS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "O": OpenAIChatProvider(),
        "R": OpenAIResponsesProvider(),
        "A": AnthropicProvider(),
        "G": GeminiProvider(),
    }
)
WRITERS: Final[Mapping[str, Surface]] = MappingProxyType(
    {
        **{
            path.removeprefix("/v1/"): surface
            for path, surface in SURFACES.items()
            if not isinstance(surface, Embeddings)
        },
        "Gemini's": GenerateContent("m", stream=True),
    }
)


def shown(media_type: str, *, by_address: bool = False) -> Media:
    if by_address:
        return Media(media_type=media_type, url=f"https://h/{WORD}")
    return Media(media_type=media_type, data=WORD)


CALL: Final = ToolUse(id="call_1", name="f")
SHOWN: Final[Mapping[str, Part]] = MappingProxyType(
    {
        "image": shown("image/png"),
        "image by its address": shown("image/png", by_address=True),
        "sound": shown("audio/wav"),
        "PDF": shown("application/pdf"),
        "PDF by its address": shown("application/pdf", by_address=True),
        "other document": shown("application/zip"),
    }
)
SAID: Final[Mapping[str, Part]] = MappingProxyType(
    {
        "text": Text(text=WORD),
        "refusal": Refusal(text=WORD),
        "thought": Thinking(text=WORD),
        "thought that is not shown": Thinking(signature=f"Z3c6eA{WORD}", is_redacted=True),
        "call": ToolUse(id="call_1", name=WORD),
    }
)


def turns(kind: str, part: Part) -> tuple[Turn, ...]:
    """A conversation that holds the part where its kind belongs."""
    ask = Turn(role=Role.USER, parts=(Text(text="hi"),))
    if kind.startswith("result"):
        return (
            ask,
            Turn(role=Role.ASSISTANT, parts=(CALL,)),
            Turn(role=Role.USER, parts=(part,)),
        )
    if kind.endswith("of the operator"):
        return (Turn(role=Role.SYSTEM, parts=(Text(text="so"), part)), ask)
    if kind.endswith("of the model") or (kind in SAID and kind != "text"):
        return (ask, Turn(role=Role.ASSISTANT, parts=(Text(text="so"), part)), ask)
    return (Turn(role=Role.USER, parts=(part,)),)


def result(*parts: Text | Media, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id="call_1", name="f", parts=parts, is_error=is_error)


ASKED: Final[Mapping[str, Part]] = MappingProxyType(
    {
        **SAID,
        **SHOWN,
        "result of a tool": result(Text(text=WORD)),
        "result with an image": result(Text(text="so"), shown("image/png")),
        "result with a PDF": result(Text(text="so"), shown("application/pdf")),
        "image of the model": shown("image/png"),
        "image of the operator": shown("image/png"),
    }
)


def chats(*content: Any, role: str = "user", **more: Any) -> tuple[str, dict[str, Any]]:
    ask = {"role": "user", "content": "hi"}
    return "chat/completions", {"messages": [ask, {"role": role, "content": list(content), **more}]}


def messages(*content: Any, role: str = "user") -> tuple[str, dict[str, Any]]:
    ask = {"role": "user", "content": "hi"}
    told = [ask, {"role": role, "content": list(content)}]
    return "messages", {"max_tokens": 9, "messages": told}


def responds(*items: Any) -> tuple[str, dict[str, Any]]:
    return "responses", {"input": [{"role": "user", "content": "hi"}, *items]}


def generates(*parts: Any, role: str = "user") -> tuple[str, dict[str, Any]]:
    return "Gemini's", {"contents": [{"parts": [{"text": "hi"}]}, {"role": role, "parts": parts}]}


DATA: Final = {"type": "base64", "media_type": "image/png", "data": WORD}
ITEMS: Final = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools", "custom_tool_call", "custom_tool_call_output", "compaction"),
    *("local_shell_call", "apply_patch_call", "nobody_knows_it"),
)
BLOCKS: Final = (
    *("server_tool_use", "web_search_tool_result", "code_execution_tool_result", "mcp_tool_use"),
    *("mcp_tool_result", "container_upload", "nobody_knows_it"),
)
PARTS: Final = ("executableCode", "codeExecutionResult", "videoMetadata", "nobodyKnowsIt")
READ: Final = (
    chats({"type": "text", "text": WORD}),
    chats({"type": "image_url", "image_url": {"url": f"https://h/{WORD}"}}),
    chats({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{WORD}"}}),
    chats({"type": "input_audio", "input_audio": {"data": WORD, "format": "wav"}}),
    chats({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{WORD}"}}),
    chats({"type": "file", "file": {"file_id": WORD}}),
    chats({"type": "video_url", "video_url": {"url": WORD}}),
    chats({"type": "nobody_knows_it", "it": WORD}),
    chats({"type": "refusal", "refusal": WORD}, role="assistant"),
    chats(role="assistant", refusal=WORD),
    chats(role="assistant", reasoning_content=WORD),
    chats(role="assistant", reasoning=WORD),
    chats(role="assistant", audio={"id": WORD}),
    chats({"type": "text", "text": "so"}, name=WORD),
    chats(
        role="assistant",
        images=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{WORD}"}}],
    ),
    chats(role="assistant", function_call={"name": WORD, "arguments": "{}"}),
    chats(role="assistant", tool_calls=[{"id": "c", "type": "custom", "custom": {"name": WORD}}]),
    chats({"type": "text", "text": WORD}, role="tool", tool_call_id="c"),
    messages({"type": "text", "text": WORD}),
    messages({"type": "image", "source": DATA}),
    messages({"type": "image", "source": {"type": "url", "url": f"https://h/{WORD}"}}),
    messages({"type": "image", "source": {"type": "file", "file_id": WORD}}),
    messages({"type": "document", "source": {**DATA, "media_type": "application/pdf"}}),
    messages({"type": "document", "source": {"type": "text", "data": WORD}}),
    messages(
        {
            "type": "search_result",
            "source": "h",
            "title": "t",
            "content": [{"type": "text", "text": WORD}],
        }
    ),
    messages({"type": "tool_result", "tool_use_id": "c", "content": WORD}),
    messages({"type": "thinking", "thinking": WORD, "signature": "x"}, role="assistant"),
    messages({"type": "redacted_thinking", "data": WORD}, role="assistant"),
    *(messages({"type": kind, "id": WORD}, role="assistant") for kind in BLOCKS),
    responds({"role": "user", "content": [{"type": "input_text", "text": WORD}]}),
    responds(
        {"role": "user", "content": [{"type": "input_image", "image_url": f"https://{WORD}"}]}
    ),
    responds({"role": "user", "content": [{"type": "input_file", "file_url": f"https://{WORD}"}]}),
    responds({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": WORD}}]}),
    responds({"role": "user", "content": [{"type": "nobody_knows_it", "it": WORD}]}),
    responds({"type": "reasoning", "summary": [{"type": "summary_text", "text": WORD}]}),
    responds({"type": "reasoning", "summary": [], "encrypted_content": WORD}),
    responds({"type": "function_call", "call_id": "c", "name": WORD, "arguments": "{}"}),
    responds({"type": "function_call_output", "call_id": "c", "output": WORD}),
    *(responds({"type": kind, "id": "x", "result": WORD}) for kind in ITEMS),
    generates({"text": WORD}),
    generates({"text": WORD, "thought": True}, role="model"),
    generates({"inlineData": {"mimeType": "image/png", "data": WORD}}),
    generates({"fileData": {"mimeType": "image/png", "fileUri": f"https://h/{WORD}"}}),
    generates({"functionCall": {"name": WORD, "args": {}}}, role="model"),
    generates({"functionResponse": {"name": "f", "response": {"result": WORD}}}),
    *(generates({kind: {"it": WORD}}, role="model") for kind in PARTS),
)
"""A request of each surface for each kind of part that its vendor documents, and for one more."""


def asked_arrives(kind: str, codec: Provider) -> bool:
    """Whether a part reaches an upstream; fails where it is lost and nobody says so."""
    given = codec.encode_conversation(Conversation(turns=turns(kind, ASKED[kind])), "m")
    if WORD.encode() in given.body:
        return True
    assert given.lost or given.changed, f"{kind} is lost in silence"
    return False


def told_arrives(kind: str, surface: Surface) -> bool:
    """Whether a part of an answer reaches a client; fails where it is lost and nobody says so."""
    answer = Answer(choices=(Choice(parts=(Text(text="so"), ANSWERED[kind])),))
    head = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
    arrives = WORD.encode() in surface.encode_answer(answer, head)
    assert arrives is not bool(surface.unsaid(answer))
    return arrives


ANSWERED: Final[Mapping[str, Part]] = MappingProxyType({**SAID, **SHOWN})


def table(title: str, kinds: Mapping[str, Part], marks: Mapping[str, dict[str, bool]]) -> str:
    """A table of Markdown: what arrives of each kind."""
    columns = list(marks)
    rows = [
        [kind, *("yes" if marks[column][kind] else "named" for column in columns)] for kind in kinds
    ]
    lines = [[title, *columns], ["---"] * (len(columns) + 1), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


@pytest.mark.parametrize("dialect", SIGNED)
def test_a_thought_comes_back_to_the_vendor_that_signed_it(dialect: Dialect) -> None:
    thought = Thinking(text=WORD, signature=f"{SIGNED[dialect]}eA==")
    codec = next(codec for codec in CODECS.values() if codec.dialect is dialect)

    body = codec.encode_conversation(Conversation(turns=turns("thought", thought)), "m").body

    assert WORD.encode() in body


@pytest.mark.parametrize(("path", "body"), READ, ids=range(len(READ)))
def test_a_reader_understands_a_part_or_names_it(path: str, body: dict[str, Any]) -> None:
    surface = WRITERS[path]
    request = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)

    conversation = surface.read_conversation(request)

    assert WORD.encode() in msgspec.json.encode(conversation.turns) or conversation.lost


def test_the_tables_know_every_codec() -> None:
    assert {codec.dialect for codec in CODECS.values()} == set(SUPPORTED_DIALECTS)


def test_what_is_asked_arrives_or_is_named_as_the_page_says() -> None:
    marks = {
        name: {kind: asked_arrives(kind, codec) for kind in ASKED} for name, codec in CODECS.items()
    }

    assert table("part of a request", ASKED, marks) in PAGE.read_text(encoding="utf-8")


def test_what_is_answered_arrives_or_is_named_as_the_page_says() -> None:
    marks = {
        name: {kind: told_arrives(kind, surface) for kind in ANSWERED}
        for name, surface in WRITERS.items()
    }

    assert table("part of an answer", ANSWERED, marks) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("name", WRITERS)
def test_what_a_stream_shows_arrives_or_is_named_in_a_comment(name: str, kind: str) -> None:
    surface, media = WRITERS[name], SHOWN[kind]
    assert isinstance(media, Media)
    stream = surface.stream_encoder(
        StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
    )

    sent = stream.encode(StreamEvent(media=(media,), has_media=True)) + stream.done()

    arrives = WORD.encode() in sent
    assert arrives is told_arrives(kind, surface)
    assert arrives or f": dropped answer: {media.kind}\n".encode() in sent


@pytest.mark.parametrize("name", ["chat/completions", "completions", "Gemini's"])
def test_one_answer_is_the_first_however_the_upstream_numbers_it(name: str) -> None:
    asked = ChatRequest(dialect=Dialect.OPENAI, model="m", stream=True, fields={})
    stream = WRITERS[name].stream_encoder(
        StreamHead(id="0" * 32, model="m", created_s=1, is_native=False, request=asked)
    )
    said = StreamEvent(text=WORD, pieces=((1, StreamEvent(text=WORD)),))
    end = StreamEvent(finish_reason="stop", pieces=((1, StreamEvent(finish_reason="stop")),))

    sent = stream.encode(said) + stream.encode(end) + stream.done()

    assert sent.count(WORD.encode()) == 1
    assert b'"index":1' not in sent


@pytest.mark.parametrize("name", ["chat/completions", "completions", "Gemini's"])
def test_each_choice_of_a_stream_is_told_apart(name: str) -> None:
    surface = WRITERS[name]
    stream = surface.stream_encoder(
        StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
    )
    call = ToolCallDelta(index=0, id="c", name="f", arguments="{}")
    pieces = [
        (0, StreamEvent(text="first")),
        (1, StreamEvent(text="second")),
        (1, StreamEvent(tool_calls=(call,), finish_reason="tool_calls")),
        (0, StreamEvent(finish_reason="stop")),
    ]

    sent = [stream.encode(StreamEvent(pieces=(piece,))) for piece in pieces] + [stream.done()]

    member = "candidates" if name == "Gemini's" else "choices"
    lines = [line for line in b"".join(sent).split(b"\n") if line.startswith(b"data: {")]
    documents = [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]
    said = [choice for document in documents for choice in document[member]]
    for index, word in enumerate(("first", "second")):
        own = [choice for choice in said if choice["index"] == index]
        other = ("second", "first")[index].encode()
        assert word.encode() in msgspec.json.encode(own)
        assert other not in msgspec.json.encode(own)
        ends = [one.get("finishReason") or one.get("finish_reason") for one in own]
        assert [end is not None for end in ends].count(True) == 1
