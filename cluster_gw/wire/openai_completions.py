"""The parts of OpenAI's legacy completions format that the gateway reads."""

from typing import Annotated, Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import MAX_CHOICES


class CompletionsBody(msgspec.Struct):
    """What is read of a request; the rest is that of a chat request and is checked as one.

    Attributes:
        prompt: raw, since arrays of tokens and of texts are told apart by what can be done.
    """

    prompt: msgspec.Raw
    echo: bool | None = None
    suffix: str | None = None
    logprobs: int | None = None
    best_of: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)] | None = None


COMPLETIONS_READER: Final = JsonReader[CompletionsBody](CompletionsBody)
PROMPT_READER: Final = JsonReader[str | list[str]](str | list[str])
