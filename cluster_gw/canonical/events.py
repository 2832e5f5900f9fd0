"""What an upstream says: one `StreamEvent` per frame of a stream, one `Completion` per answer.

An event keeps the vendor's own bytes (`raw`) so that a same-dialect hop relays them untouched.
Events are made by the thousand and hold no cycles, so the collector does not track them.
"""

import msgspec

from cluster_gw.canonical.conversation import Media
from cluster_gw.canonical.embedding import Vectors
from cluster_gw.canonical.failure import Fault


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Token counts as reported by the upstream; `total_tokens` is what limits are charged.

    Attributes:
        audio_prompt_tokens: of sounds among those of the prompt.
        audio_completion_tokens: of sounds among those of the answer.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_prompt_tokens: int = 0
    reasoning_tokens: int = 0
    audio_prompt_tokens: int = 0
    audio_completion_tokens: int = 0


class ToolCallDelta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fragment of one tool call; `index` tells parallel calls apart.

    Attributes:
        signature: the vendor's proof of the call, where it signs calls; opaque.
    """

    index: int = 0
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    signature: str = ""


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything one frame of a stream says.

    Attributes:
        raw: the payload of the frame, exactly as received (no `data:` prefix, no line ends).
        text: answer text of all choices in this frame, concatenated.
        reasoning: reasoning text of all choices, concatenated.
        tool_calls: fragments of tool calls in this frame.
        finish_reason: set when a choice ended in this frame; in every dialect in OpenAI's words:
            `stop`, `length`, `tool_calls`, `content_filter`.
        ended_choices: indexes of the choices that ended in this frame.
        usage: token counts, when the frame carries them.
        usage_only: the frame carries usage and nothing else (dropped if the client did not ask).
        fault: an error object inside the stream, or a frame that is not valid in its dialect.
        done: the protocol's own end marker (`[DONE]`).
        name: of the frame, in dialects whose frames have one (`event:`).
        signature: the vendor's proof of the thought that this frame belongs to.
        is_redacted: `signature` stands for a thought that is not shown.
        is_refusal: `text` says that the model will not.
        stop_sequence: the text that ended the answer, where the vendor says so.
        kept_as: the vendor's name of the answer, where it keeps it to be gone on from.
        is_structure: the frame only opens or closes what other frames say, or shows a tool of the
            vendor's own at work; dialects of many such frames would else look empty.
        has_media: the frame shows something, such as an image.
        media: what it shows, as far as it can be handed on.
        pieces: what each choice says in this frame, by its index; empty where the first one alone
            speaks, as in most frames. Writers that tell choices apart look here first.
        lost: what the frame says that nothing here stands for, by name: what tools of the vendor's
            own did, citations. Each name once a stream.
        unsaid: output characters of that.
        is_plain: the frame holds text, reasoning or usage and nothing else; most of them do, and
            whoever looks at the rest may then pass it over.
    """

    raw: bytes = b""
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None
    ended_choices: tuple[int, ...] = ()
    usage: Usage | None = None
    usage_only: bool = False
    fault: Fault | None = None
    done: bool = False
    is_plain: bool = False
    name: bytes = b""
    signature: str = ""
    is_redacted: bool = False
    is_refusal: bool = False
    stop_sequence: str | None = None
    is_structure: bool = False
    kept_as: str = ""
    has_media: bool = False
    media: tuple[Media, ...] = ()
    pieces: "tuple[tuple[int, StreamEvent], ...]" = ()
    lost: tuple[str, ...] = ()
    unsaid: int = 0


class Completion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A buffered answer: its untouched body and what gate and settlement need to know.

    Attributes:
        raw: the body as received (after content decoding).
        text: answer text of all choices, concatenated.
        characters: output characters of any kind: text, reasoning, tool calls.
        tool_calls: complete tool calls over all choices.
        finish_reason: of the first choice; None when the upstream gave none.
        usage: token counts, or None when missing.
        kept_as: the vendor's name of it, where it keeps it to be gone on from.
        has_media: it shows something, such as an image, or what a tool of the vendor's own did.
        vectors: of an answer to a request for embeddings; None for generation.
    """

    raw: bytes
    text: str = ""
    characters: int = 0
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    kept_as: str = ""
    has_media: bool = False
    vectors: Vectors | None = None

    @property
    def tool_call_count(self) -> int:
        """Complete tool calls over all choices."""
        return len(self.tool_calls)
