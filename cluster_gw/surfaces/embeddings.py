"""`POST /v1/embeddings`: OpenAI's embeddings API towards clients (rooms 2 and 9).

What upstreams of other dialects answer is written in this form before it comes here, so an answer
is always passed on.
"""

from collections.abc import Mapping, Sequence, Sized
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import wishes
from cluster_gw.surfaces.chat_bounds import MAX_ITEMS, is_crowded, without_strings
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.refusals import refused, unread
from cluster_gw.surfaces.wishes import take_wishes
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_fields,
    write,
)
from cluster_gw.wire.openai_embeddings import EMBEDDINGS_READER, MAX_INPUTS, EmbeddingsBody

MAX_VALUES: Final = 1_000_000  # a few times what the vendor takes; more would hold up the worker
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "input": "Send a string, an array of strings, an array of token numbers or of such arrays.",
        "model": "Name an embedding model; GET /v1/models marks them.",
        "dimensions": "Send a whole number above 0, or leave it out.",
        "encoding_format": 'Send "float" or "base64", or leave it out.',
    }
)

Input = str | list[str | int | list[int]]


class Embeddings(ChatCompletions):
    """Codec of the embeddings API; errors look as those of the chat API."""

    kind = "embeddings"

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        if holds_too_much(body):
            return invalid("input", f"holds more than {MAX_VALUES} values; send several requests")
        try:
            fields = read_fields(body)
            facts = EMBEDDINGS_READER.read(body)
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        return find_problem(facts) or request_of(fields, facts)

    def encode_vectors(self, items: Sequence[msgspec.Raw], model: str, usage: Usage) -> bytes:
        """The body of an answer that no upstream wrote as it is wanted."""
        return vectors_json(items, model, usage)


def holds_too_much(body: bytes) -> bool:
    """Whether a body surely holds more values than any request has, told without reading it."""
    if body.count(b'"') > 2 * MAX_ITEMS and is_crowded(body):
        return True  # taking so many strings out of it to count would hold up the worker, too
    return body.count(b",") > MAX_VALUES and without_strings(body).count(b",") > MAX_VALUES


def find_problem(body: EmbeddingsBody) -> ErrorBody | None:
    """What types do not say of a request."""
    if body.models:
        return invalid("models", "is not taken: vectors of different models do not mix")
    if not body.model:
        return invalid("model", "is missing")
    return find_bad_input(body.input)


def find_bad_input(given: Input) -> ErrorBody | None:
    """What is wrong with the inputs."""
    if not given:
        return invalid("input", "is empty")
    other = place_of_other_kind(given)
    if other is not None:
        return invalid(f"input[{other}]", "is of another kind than input[0]")
    inputs = inputs_of(given)
    if len(inputs) > MAX_INPUTS:
        return invalid("input", f"holds {len(inputs)} inputs; the limit is {MAX_INPUTS}")
    empty = next((place for place, one in enumerate(inputs) if not one), None)
    return None if empty is None else invalid(f"input[{empty}]", "is empty")


def place_of_other_kind(given: Input) -> int | None:
    """Where an array holds something else than at its start; None where it is all alike."""
    kinds = () if isinstance(given, str) else map(type, given)
    return next((place for place, kind in enumerate(kinds) if kind is not type(given[0])), None)


def inputs_of(given: Input) -> Sequence[Sized]:
    """The inputs one by one: texts, or token numbers; a text or an array of numbers is one."""
    if isinstance(given, str) or isinstance(given[0], int):
        return [given]
    return [one for one in given if not isinstance(one, int)]


def request_of(fields: Fields, body: EmbeddingsBody) -> ChatRequest:
    """The request in the internal language."""
    inputs = inputs_of(body.input)
    is_text = isinstance(inputs[0], str)
    sizes = tuple(map(len, inputs))
    return ChatRequest(
        dialect=Dialect.OPENAI,
        model=body.model or "",
        stream=False,
        input_characters=sizes if is_text else (),
        user=body.user,
        wishes=None if body.provider is None else take_wishes(fields, body),
        embedding=EmbeddingAsk(
            count=len(inputs),
            token_counts=() if is_text else sizes,
            dimensions=body.dimensions,
            is_base64=body.encoding_format == "base64",
        ),
        fields=fields,
    )


def invalid(param: str, problem: str) -> ErrorBody:
    """A 400 that names the place, the problem and, where there is one, a remedy."""
    remedy = REMEDIES.get(param.rpartition(".")[2].partition("[")[0])
    message = f"{param} {problem}."
    return refused("invalid_request", f"{message} {remedy}" if remedy else message, param)


def vectors_json(items: Sequence[msgspec.Raw], model: str, usage: Usage) -> bytes:
    """The body of an answer that no upstream wrote as it is wanted."""
    data: list[dict[str, Any]] = [
        {"object": "embedding", "index": place, "embedding": item}
        for place, item in enumerate(items)
    ]
    tokens = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.total_tokens}
    return write({"object": "list", "data": data, "model": model, "usage": tokens})
