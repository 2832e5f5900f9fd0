"""A conversation in the internal language: what a request says when it changes its wire format.

A hop within one dialect never makes one: the client's own members travel on. A hop to another
dialect goes through here, so that each dialect needs one reader and one writer. What one dialect
has and this language has not is named in `lost`, never dropped in silence.
"""

from enum import StrEnum

import msgspec


class Role(StrEnum):
    """Who speaks; results of tools are said by the user."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Text(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """Plain text."""

    text: str


class Media(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """An image, a document or a sound, by its address or by its bytes.

    Attributes:
        media_type: such as `image/png`, `application/pdf`, `audio/wav`; empty when unknown.
        url: where it lies; empty when `data` is given.
        data: base64; empty when `url` is given.
        name: of the file, where it has one.
        detail: how closely an image is looked at, in OpenAI's words; empty for the default.
    """

    media_type: str = ""
    url: str = ""
    data: str = ""
    name: str = ""
    detail: str = ""

    @property
    def kind(self) -> str:
        """`image`, `audio`, or `document` for everything else."""
        kind = self.media_type.partition("/")[0]
        return kind if kind in {"image", "audio"} else "document"


class Thinking(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What the model thought before it spoke.

    Attributes:
        text: in words; empty when the vendor hides it.
        signature: the vendor's proof of it, opaque; must come back unchanged, to this vendor only.
        is_redacted: `signature` stands for a thought that is not shown.
    """

    text: str = ""
    signature: str = ""
    is_redacted: bool = False


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """A call of a tool.

    Attributes:
        arguments: JSON text of an object, as the model wrote it.
        signature: as of a thought, where the vendor signs calls.
    """

    id: str
    name: str
    arguments: str = "{}"
    signature: str = ""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """What a tool gave back.

    Attributes:
        call_id: of the call it answers.
        name: of the tool; empty where the dialect does not say it.
        parts: text and media.
        is_error: the tool failed.
    """

    call_id: str
    name: str = ""
    parts: "tuple[Text | Media, ...]" = ()
    is_error: bool = False


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """The model's words when it will not."""

    text: str


Part = Text | Media | Thinking | ToolUse | ToolResult | Refusal


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one side says at once."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All plain text of it."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def shown_kinds(self) -> list[str]:
        """The kinds of what it shows rather than says."""
        return [part.kind for part in self.parts if isinstance(part, Media)]


class Tool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A function the model may call.

    Attributes:
        schema: JSON schema of its arguments, an object; raw, since nobody here reads it.
        is_strict: arguments must fit exactly; None where the client did not say.
    """

    name: str
    description: str = ""
    schema: msgspec.Raw | None = None
    is_strict: bool | None = None


class Choosing(StrEnum):
    """How free the model is in calling tools."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    NAMED = "named"


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which tools may or must be called.

    Attributes:
        name: of the one that must be, with `NAMED`.
        parallel: whether several at once; None for the vendor's default.
    """

    how: Choosing = Choosing.AUTO
    name: str = ""
    parallel: bool | None = None


class AnswerFormat(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Structured output: any JSON object, or one of a schema.

    Attributes:
        schema: None for any object.
    """

    name: str = ""
    schema: msgspec.Raw | None = None
    is_strict: bool | None = None
    description: str = ""


class Sampling(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the answer is drawn; None leaves it to the vendor.

    Attributes:
        max_tokens: of the output.
        stop: texts that end it.
        effort: `none`, `minimal`, `low`, `medium`, `high` or `xhigh`: how much to think.
        thinking_tokens: the same as a bound; 0 for not at all.
        shows_thinking: whether thoughts are wanted in the answer.
        top_logprobs: most likely tokens to tell per place; 0 for that of the token itself.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    choices: int = 1
    effort: str | None = None
    thinking_tokens: int | None = None
    shows_thinking: bool | None = None
    top_logprobs: int | None = None


class Conversation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole request.

    Attributes:
        turns: in order; system turns stand where the client put them.
        format: None for free text.
        user: the client's label of its end user.
        lost: members of the client's own dialect that nothing here stands for, by name.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    format: AnswerFormat | None = None
    sampling: Sampling = Sampling()
    user: str | None = None
    stream: bool = False
    lost: tuple[str, ...] = ()


class Translated(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A conversation in the wire format of an upstream.

    Attributes:
        body: the request.
        lost: what this upstream has no words for, by name: `top_k`, `messages[2].audio`.
        changed: what it was given otherwise than asked, with both: `temperature 1.7 -> 1.0`.
    """

    body: bytes
    lost: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
