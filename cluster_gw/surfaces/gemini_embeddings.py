"""`POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents` (rooms 2 and 9).

A request becomes one of OpenAI's form, the one form of them (decision 0053). What only Gemini's can
say travels beside it and reaches upstreams of that dialect.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingForm
from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import wishes
from cluster_gw.surfaces.embeddings import MAX_VALUES, holds_too_much
from cluster_gw.surfaces.gemini import MODELS, GenerateContent
from cluster_gw.surfaces.gemini_facts import parts_of
from cluster_gw.surfaces.refusals import refused, unread
from cluster_gw.surfaces.wishes import PROVIDER, take_wishes
from cluster_gw.wire.gemini_embeddings import (
    BATCH_NAMES,
    BATCH_READER,
    EMBED_NAMES,
    EMBED_READER,
    ITEMS_READER,
    WISHES_READER,
    EmbedBody,
    WishingBody,
)
from cluster_gw.wire.gemini_names import in_camel_case
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    raw,
    read_fields,
    write,
)

REQUESTS: Final = "requests"
BATCH_MEMBERS: Final = frozenset({REQUESTS, PROVIDER, "model"})
WISHES: Final = frozenset({PROVIDER, "models"})
SAID: Final = frozenset({"content", "model", "outputDimensionality"})
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "content": 'Send a content such as {"parts": [{"text": "hello"}]}.',
        "parts": 'Send an array of parts, such as [{"text": "hello"}].',
        REQUESTS: "Send an array of requests as embedContent takes them.",
        "outputDimensionality": "Send a whole number above 0, or leave it out.",
    }
)


class EmbedContent(GenerateContent):
    """Codec of one call for one vector; errors look as those of `generateContent`.

    Args:
        model: as the path has it.
    """

    kind = "gemini-embed"

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        if holds_too_much(body):
            message = f"The body holds more than {MAX_VALUES} values; send several requests."
            return refused("invalid_request", message, None)
        try:
            return self._decode(body)
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)

    def encode_vectors(self, items: Sequence[msgspec.Raw], model: str, usage: Usage) -> bytes:
        """The body of an answer that no upstream wrote as it is wanted."""
        del model  # this API does not tell it
        return write({"embedding": {"values": items[0]}, "usageMetadata": usage_json(usage)})

    def _decode(self, body: bytes) -> ChatRequest | ErrorBody:
        body = in_camel_case(body, EMBED_NAMES)
        fields, facts = read_fields(body), EMBED_READER.read(body)
        wishes = WISHES_READER.read(body)
        if wishes.models:
            message = "models is not taken: vectors of different models do not mix."
            return refused("invalid_request", message, "models")
        fields = {name: value for name, value in fields.items() if name not in WISHES}
        return find_problem(facts, "", self._model) or request_of(
            [fields], [facts], self._model, wishes, EmbeddingForm.GEMINI_SINGLE
        )


class BatchEmbedContents(EmbedContent):
    """Codec of one call for many vectors."""

    kind = "gemini-embed-batch"

    def encode_vectors(self, items: Sequence[msgspec.Raw], model: str, usage: Usage) -> bytes:
        """The body of an answer that no upstream wrote as it is wanted."""
        del model  # this API does not tell it
        found = [{"values": item} for item in items]
        return write({"embeddings": found, "usageMetadata": usage_json(usage)})

    def _decode(self, body: bytes) -> ChatRequest | ErrorBody:
        body = in_camel_case(body, BATCH_NAMES)
        outer, asked = read_fields(body), BATCH_READER.read(body).requests
        wishes = WISHES_READER.read(body)
        unknown = next((name for name in outer if name not in BATCH_MEMBERS), None)
        if unknown is not None:  # the vendor's own words
            return refused("invalid_request", f'Unknown name "{unknown}": Cannot find field.', None)
        for place, one in enumerate(asked):
            problem = find_problem(one, f"{REQUESTS}[{place}].", self._model)
            if problem is not None:
                return problem
            if one.length != asked[0].length:
                path = f"{REQUESTS}[{place}].outputDimensionality"
                message = f"{path} differs from that of {REQUESTS}[0]; send a batch for each."
                return refused("invalid_request", message, path)
        items = ITEMS_READER.read(outer[REQUESTS])
        return request_of(items, asked, self._model, wishes, EmbeddingForm.GEMINI_BATCH)


def find_problem(body: EmbedBody, path: str, model: str) -> ErrorBody | None:
    """What types do not say of one content.

    Args:
        body: the request for its vector.
        path: what stands before the names of its members.
        model: of the call, which every request of a batch has to be for.
    """
    if body.model is not None and body.model.removeprefix(MODELS) != model:
        message = f"{path}model is not that of the path, {MODELS}{model}."
        return refused("invalid_request", message, f"{path}model")
    parts = parts_of(body.content)
    other = next((place for place, part in enumerate(parts) if part.text is None), None)
    if other is not None:
        where = f"{path}content.parts[{other}]"
        return refused("invalid_request", f"{where} is no text; send only text.", where)
    if not any(part.text for part in parts):
        where = f"{path}content"
        message = f"{where} holds no text. {REMEDIES['content']}"
        return refused("invalid_request", message, where)
    return None


def request_of(
    items: Sequence[Fields],
    asked: Sequence[EmbedBody],
    model: str,
    wishes: WishingBody,
    form: EmbeddingForm,
) -> ChatRequest:
    """The request in the internal language; `items` are the same as `asked`, raw."""
    texts = [text_of(one) for one in asked]
    length = asked[0].length
    fields = {"model": raw(model), "input": raw(texts)}
    if length is not None:
        fields["dimensions"] = raw(length)
    before = f"{REQUESTS}[]." if form is EmbeddingForm.GEMINI_BATCH else ""
    unsaid = dict.fromkeys(name for item in items for name in item if name not in SAID)
    return ChatRequest(
        dialect=Dialect.OPENAI,
        model=model,
        stream=False,
        input_characters=tuple(map(len, texts)),
        wishes=None if wishes.provider is None else take_wishes({}, wishes),
        embedding=EmbeddingAsk(
            count=len(texts),
            dimensions=length,
            form=form,
            contents=tuple(items),
            unsaid=tuple([before + name for name in unsaid]),
        ),
        fields=fields,
    )


def text_of(body: EmbedBody) -> str:
    """All text of a content; its parts stand on lines of their own."""
    return "\n".join([part.text for part in parts_of(body.content) if part.text])


def usage_json(usage: Usage) -> dict[str, Any]:
    """Token counts."""
    return {"promptTokenCount": usage.prompt_tokens, "totalTokenCount": usage.total_tokens}
