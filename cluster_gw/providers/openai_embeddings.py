"""The upstream codec of OpenAI's embeddings; every plainly compatible provider has them so."""

from collections.abc import Iterable, Sequence

import msgspec

from cluster_gw.canonical.conversation import Translated
from cluster_gw.canonical.embedding import EmbeddingForm, EmbeddingModel, Vectors
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers import quirks
from cluster_gw.providers.codec import unread_fault
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_errors import document_of, malformed_fault, told_fault
from cluster_gw.providers.openai_facts import usage_of
from cluster_gw.providers.openai_stream import NO_ERROR
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    raw,
)
from cluster_gw.wire.openai_embeddings import VECTORS_READER, EmbeddingBody, VectorsBody


class OpenAIEmbeddingsProvider(OpenAIChatProvider):
    """Codec of one model of one provider; headers, errors and quotas are those of its chat API.

    Args:
        model: what it is declared to do.
        quirk_names: names out of `quirks.QUIRKS`.
    """

    path = "/embeddings"

    def __init__(self, model: EmbeddingModel, quirk_names: Iterable[str] = ()) -> None:
        super().__init__(quirk_names)
        self._model = model

    def _api_of(self, base_url: str) -> str:
        """A base that names the chat API is meant as that above it."""
        return super()._api_of(base_url.rstrip("/").removesuffix(OpenAIChatProvider.path))

    def fields_of(self, request: ChatRequest, model: str, notes: quirks.Notes | None) -> Fields:
        """The client's own members with the upstream's model and the provider's names.

        A length that the model has in any case is not asked for where no other may be: those that
        cannot do it refuse the member.
        """
        fields = dict(request.fields)
        fields["model"] = raw(model)
        if self._model.sizes == ():
            fields.pop("dimensions", None)
        return quirks.apply(self._quirk, fields, wants_tools=False, notes=notes)

    @property
    def has_notes(self) -> bool:
        """Clients of other forms say what this one has no words for."""
        return True

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same, and what has no words there."""
        noted = super().encode_noted(request, model)
        unsaid = () if request.embedding is None else request.embedding.unsaid
        return msgspec.structs.replace(noted, lost=(*unsaid, *noted.lost)) if unsaid else noted

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A 200 as its vectors, or the fault it is in truth."""
        try:
            answer = VECTORS_READER.read(body)
        except (UnexpectedShapeError, UnpairedSurrogateError) as error:
            return no_vectors(body, str(error), secret)
        except InvalidJsonError:
            return unread_fault(content_type, body)
        has_error = answer.error is not None and bytes(answer.error) not in NO_ERROR
        if has_error or not answer.data:
            return no_vectors(body, "the answer holds no vectors", secret)
        return vectors_of(body, answer, answer.data)


def vectors_of(
    body: bytes, answer: VectorsBody, data: Sequence[EmbeddingBody]
) -> Completion | Fault:
    """The vectors in the order of their inputs; without any index they came in it."""
    indexes = [one.index for one in data]
    expected = list(range(len(data)))
    is_native = indexes == expected
    if not is_native and any(index is not None for index in indexes):
        if sorted(-1 if index is None else index for index in indexes) != expected:
            return malformed_fault("the indexes of the vectors have gaps or repeat themselves")
        data = sorted(data, key=lambda one: one.index or 0)
    return Completion(
        raw=body,
        usage=usage_of(answer.usage),
        vectors=Vectors(
            items=tuple([one.embedding for one in data]),
            model=answer.model or "",
            form=EmbeddingForm.OPENAI if is_native else None,
        ),
    )


def no_vectors(body: bytes, problem: str, secret: str | None) -> Fault:
    """The fault of an answer that holds an error, or nothing that can be read."""
    return told_fault(document_of(body), secret) or malformed_fault(problem)
