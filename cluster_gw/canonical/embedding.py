"""Embeddings in the internal language: what is asked for, what a model does, what came back.

There is one form of a request, OpenAI's; upstreams of every dialect are asked out of it. What only
Gemini's form can say is kept beside it, for upstreams that have such words.
"""

from enum import StrEnum

import msgspec


class EmbeddingForm(StrEnum):
    """How an answer holds its vectors."""

    OPENAI = "openai"
    GEMINI_BATCH = "gemini-batch"
    GEMINI_SINGLE = "gemini-single"


class EmbeddingAsk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a request for embeddings asks for.

    Attributes:
        count: inputs, at least 1; as many vectors are wanted, in their order.
        token_counts: of each input, where they are token numbers; empty where they are texts.
        dimensions: length of each vector; None leaves it to the model.
        is_base64: vectors as base64 of little-endian float32 instead of arrays of numbers.
        form: of the answer.
        contents: each input as a client of Gemini's form gave it, members by their names; else
            empty.
        unsaid: members of `contents` that OpenAI's form has no words for, by name.
    """

    count: int
    token_counts: tuple[int, ...] = ()
    dimensions: int | None = None
    is_base64: bool = False
    form: EmbeddingForm = EmbeddingForm.OPENAI
    contents: tuple[dict[str, msgspec.Raw], ...] = ()
    unsaid: tuple[str, ...] = ()


class EmbeddingModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a model that makes vectors is declared to do.

    Attributes:
        family: whoever else is of it makes the same vectors.
        dimensions: length of its vectors; None when nobody said.
        sizes: shorter lengths that may be asked for; None when nobody said, so all may.
        max_input_tokens: of each input; None when unknown.
        max_inputs: of a request; None when unknown.
        takes_tokens: inputs may be token numbers.
    """

    family: str
    dimensions: int | None = None
    sizes: tuple[int, ...] | None = None
    max_input_tokens: int | None = None
    max_inputs: int | None = None
    takes_tokens: bool = True

    def may_give(self, dimensions: int) -> bool:
        """Whether vectors of a length may be asked for."""
        if dimensions == self.dimensions:
            return True
        if self.dimensions is not None and dimensions > self.dimensions:
            return False
        return self.sizes is None or dimensions in self.sizes


class Vectors(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The vectors of an answer, in the order of its inputs.

    Attributes:
        items: each an array of numbers, or a string of base64, as JSON.
        model: as the upstream calls it; empty when it does not.
        form: of the body they came in, where it has them in this order; None for any other.
    """

    items: tuple[msgspec.Raw, ...]
    model: str = ""
    form: EmbeddingForm | None = EmbeddingForm.OPENAI
