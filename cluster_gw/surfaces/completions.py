"""`POST /v1/completions`: OpenAI's legacy API, served as a chat of one message (rooms 2 and 9).

Upstreams see a chat request. What only a model without a chat could do is refused with a remedy.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Refusal, Text
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import chat_completions
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_answer import usage_json
from cluster_gw.surfaces.chat_bounds import CROWDED, is_crowded
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.chat_conversation import conversation_of
from cluster_gw.surfaces.chat_stream import WrittenStream
from cluster_gw.surfaces.completions_stream import TextStream, choice_json, says
from cluster_gw.surfaces.json_surface import JsonSurface
from cluster_gw.surfaces.refusals import excessive, refused, unread
from cluster_gw.surfaces.unsaid import unsaid_of
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    raw,
    read_answer_fields,
    read_any,
    read_fields,
    write,
)
from cluster_gw.wire.openai_chat import ANSWER_READER
from cluster_gw.wire.openai_completions import (
    COMPLETIONS_READER,
    PROMPT_READER,
    CompletionsBody,
)

DEFAULT_MAX_TOKENS: Final = 128
OURS: Final = ("prompt", "echo", "suffix", "logprobs", "best_of")
HEAD_MEMBERS: Final = ("id", "created", "model")
PREFIX: Final = f"{TextStream.prefix}-"
CHAT_PREFIX: Final = f"{WrittenStream.prefix}-"
CHAT: Final = ChatCompletions()
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {**chat_completions.REMEDIES, "prompt": "Send a text, or an array with one text."}
)


class Completions(JsonSurface):
    """Codec of the legacy completions API; see `surfaces.base.Surface`."""

    kind = "completions"

    @property
    def dialect(self) -> Dialect:
        """OpenAI: what goes on is a chat request."""
        return Dialect.OPENAI

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        try:
            if is_crowded(body):
                return excessive(CROWDED)
            fields = read_fields(body)
            facts = COMPLETIONS_READER.read(body)
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        prompt = prompt_of(facts)
        if isinstance(prompt, ErrorBody):
            return prompt
        return unservable(facts) or CHAT.decode_request(write(chat_fields(fields, prompt)))

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect."""
        return conversation_of(request)

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""
        return TextStream(head)

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """Everything but words."""
        return unsaid_of(answer, says)

    def encode_completion(
        self, completion: Completion, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """A buffered chat answer as one of text."""
        # Members that nobody read may hold bytes that are no text.
        given = read_answer_fields(completion.raw.decode("utf-8", "replace").encode())
        document: dict[str, Any] = {
            "object": "text_completion",
            **{name: given[name] for name in HEAD_MEMBERS if name in given},
            "choices": choices_of(completion),
        }
        if "id" in given:
            document["id"] = own_id(given["id"])
        if "usage" in given:
            document["usage"] = given["usage"]
        return write({**document, **(extensions or {})})

    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        document: dict[str, Any] = {
            "id": f"{PREFIX}{head.id}",
            "object": "text_completion",
            "created": head.created_s,
            "model": head.model,
            "choices": [
                choice_json(
                    place,
                    "".join(part.text for part in choice.parts if isinstance(part, Text | Refusal)),
                    choice.finish_reason,
                )
                for place, choice in enumerate(answer.choices)
            ],
        }
        if answer.usage is not None:
            document["usage"] = usage_json(answer.usage)
        return document


def own_id(given: msgspec.Raw) -> Any:
    """The id of a chat answer under the prefix that clients of this API know; odd ones stay."""
    if not bytes(given).startswith(b'"'):  # a number may even be one that no double has
        return given
    name: str = read_any(given)
    if name.startswith(PREFIX):
        return given
    return PREFIX + name.removeprefix(CHAT_PREFIX)


def choices_of(completion: Completion) -> list[dict[str, Any]]:
    """The choices of a chat answer; one that bends the format has that of its facts."""
    try:
        choices = ANSWER_READER.read(completion.raw).choices or []
    except (InvalidJsonError, UnexpectedShapeError):
        return [choice_json(0, completion.text, completion.finish_reason)]
    return [
        choice_json(
            place,
            ""
            if choice.message is None
            else choice.message.content or choice.message.refusal or "",
            choice.finish_reason,
        )
        for place, choice in enumerate(choices)
    ]


def prompt_of(facts: CompletionsBody) -> str | ErrorBody:
    """The one text that is to be gone on from."""
    try:
        given = PROMPT_READER.read(facts.prompt)
    except (InvalidJsonError, UnexpectedShapeError):
        message = f"prompt must be a text, not tokens. {REMEDIES['prompt']}"
        return refused("invalid_request", message, "prompt")
    texts = [given] if isinstance(given, str) else given
    if len(texts) != 1:
        message = (
            f"prompt holds {len(texts)} texts and one request answers one; send a request for each."
        )
        return refused("invalid_request", message, "prompt")
    return texts[0]


def unservable(facts: CompletionsBody) -> ErrorBody | None:
    """The error of what a chat cannot honour."""
    if facts.echo:
        return chatless("echo", "put the prompt before the answer yourself")
    if facts.suffix:
        return chatless("suffix", "say in the prompt what is to follow")
    if facts.logprobs is not None:
        return chatless("logprobs", "use POST /v1/chat/completions, whose logprobs have its form")
    if facts.best_of is not None and facts.best_of > (facts.n or 1):
        return chatless("best_of", "ask for all of them by n and choose yourself")
    if facts.best_of is not None and facts.best_of < (facts.n or 1):
        return refused("invalid_request", "best_of must not be less than n.", "best_of")
    return None


def chatless(name: str, remedy: str) -> ErrorBody:
    """The error of one member."""
    message = f"{name} cannot be honoured: models behind this gateway chat; {remedy}."
    return refused("invalid_request", message, name)


def chat_fields(fields: Fields, prompt: str) -> Fields:
    """The chat request that says the same."""
    chat = {name: value for name, value in fields.items() if name not in OURS}
    chat["messages"] = raw([{"role": "user", "content": prompt}])
    if bytes(chat.get("max_tokens", b"null")) == b"null":
        chat["max_tokens"] = raw(DEFAULT_MAX_TOKENS)
    return chat
