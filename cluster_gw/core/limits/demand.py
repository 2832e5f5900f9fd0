"""How much a request will probably take, before anyone knows."""

from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest

CHARACTERS_PER_TOKEN: Final = 4
IMAGE_TOKENS: Final = 1000
DEFAULT_OUTPUT_TOKENS: Final = 1000
OUTPUT_RESERVE_CAP_TOKENS: Final = 2000  # a huge max_tokens must not exclude every model

MARGIN_PART: Final = 4  # characters of a token differ by language and kind of text


class Demand(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Estimated tokens of one request."""

    input_tokens: int
    output_tokens: int

    @property
    def total_tokens(self) -> int:
        """What is reserved: input and output reserve."""
        return self.input_tokens + self.output_tokens

    @property
    def safe_tokens(self) -> int:
        """What it takes if the estimate of its input is a quarter too low, which happens."""
        return self.total_tokens + -(-self.input_tokens // MARGIN_PART)


def estimate_demand(request: ChatRequest) -> Demand:
    """Estimate: a quarter of the characters per message, 1,000 an image, a capped output.

    Vectors are no output: embeddings take their input alone.
    """
    text = 0
    for count in request.input_characters:
        text += -(-count // CHARACTERS_PER_TOKEN)
    if request.embedding is not None:
        return Demand(input_tokens=text + sum(request.embedding.token_counts), output_tokens=0)
    per_choice = min(request.max_tokens or DEFAULT_OUTPUT_TOKENS, OUTPUT_RESERVE_CAP_TOKENS)
    return Demand(
        input_tokens=text + IMAGE_TOKENS * request.image_count,
        output_tokens=per_choice * request.choices,
    )


def longest_input(request: ChatRequest) -> int:
    """Tokens of the longest input of a request for embeddings, by estimate where it is a text."""
    counts = () if request.embedding is None else request.embedding.token_counts
    texts = (estimate_tokens(characters) for characters in request.input_characters)
    return max((*counts, *texts), default=0)


def estimate_tokens(characters: int) -> int:
    """Tokens of a text of `characters` when the upstream reported none."""
    return -(-characters // CHARACTERS_PER_TOKEN)
