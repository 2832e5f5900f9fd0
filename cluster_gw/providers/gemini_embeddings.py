"""The upstream codec of Gemini's embeddings: `batchEmbedContents`, for one text as for many.

Requests come in OpenAI's form, the one form of them (decision 0053), and that is this codec's
dialect; what a client of Gemini's own form said beside it goes along.
Headers, errors and quotas are those of Gemini's chat API.
"""

from collections.abc import Iterable
from typing import Any, Final

from cluster_gw.canonical.conversation import Translated
from cluster_gw.canonical.embedding import EmbeddingForm, EmbeddingModel, Vectors
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers.codec import unread_fault
from cluster_gw.providers.gemini import GeminiProvider, path_of, told_fault
from cluster_gw.providers.gemini_facts import usage_of
from cluster_gw.providers.openai_errors import document_of, malformed_fault
from cluster_gw.wire.gemini_embeddings import EMBEDDED_READER, LENGTH_READER, TEXTS_READER
from cluster_gw.wire.json_codec import Fields, InvalidJsonError, UnexpectedShapeError, write

LENGTH: Final = "outputDimensionality"
CARRIED: Final = frozenset({"model", "input", "dimensions", "encoding_format"})


class GeminiEmbeddingsProvider(GeminiProvider):
    """Codec of one model; see `providers.base.Provider`.

    Args:
        model: what it is declared to do; it takes texts only.
        quirk_names: names out of `quirks.QUIRKS`.
    """

    def __init__(self, model: EmbeddingModel, quirk_names: Iterable[str] = ()) -> None:
        super().__init__(quirk_names)
        self._model = model

    @property
    def dialect(self) -> Dialect:
        """That of requests for embeddings: OpenAI's."""
        return Dialect.OPENAI

    def url(self, base_url: str, model: str) -> str:
        """The full URL of a call; the credential is never in it."""
        return f"{self._api_of(base_url)}/{path_of(model)}:batchEmbedContents"

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """One request of the batch for each text."""
        given = () if request.embedding is None else request.embedding.contents
        if given:
            return write({"requests": [self._own(fields, model) for fields in given]})
        texts = TEXTS_READER.read(request.fields["input"])
        length = request.fields.get("dimensions")
        common: dict[str, Any] = {"model": path_of(model)}
        if length is not None and LENGTH_READER.read(length) is not None:
            common[LENGTH] = length
        if self._model.sizes == ():
            common.pop(LENGTH, None)
        asked = [
            {**common, "content": {"parts": [{"text": text}]}}
            for text in ([texts] if isinstance(texts, str) else texts)
        ]
        return write({"requests": asked})

    def _own(self, fields: Fields, model: str) -> dict[str, Any]:
        """A request of a batch by the client's own members, in the name of the upstream's model."""
        own: dict[str, Any] = {**fields, "model": path_of(model)}
        if self._model.sizes == ():
            own.pop(LENGTH, None)
        return own

    @property
    def has_notes(self) -> bool:
        """Many members have no words there."""
        return True

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same, and what has no words there."""
        return Translated(body=self.encode_request(request, model), lost=lost_of(request))

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A 200 as its vectors, or the fault it is in truth."""
        try:
            answer = EMBEDDED_READER.read(body)
        except UnexpectedShapeError as error:
            return no_vectors(body, str(error), secret)
        except InvalidJsonError:
            return unread_fault(content_type, body)
        found = answer.embeddings or ([] if answer.embedding is None else [answer.embedding])
        if not found:
            return no_vectors(body, "the answer holds no vectors", secret)
        is_batch = answer.embeddings is not None and answer.embedding is None
        form = EmbeddingForm.GEMINI_BATCH if is_batch else None
        return Completion(
            raw=body,
            usage=usage_of(answer.usage_metadata),
            vectors=Vectors(items=tuple([one.values for one in found]), form=form),
        )


def no_vectors(body: bytes, problem: str, secret: str | None) -> Fault:
    """The fault of an answer that holds an error, or nothing that can be read."""
    return told_fault(document_of(body), secret) or malformed_fault(problem)


def lost_of(request: ChatRequest) -> tuple[str, ...]:
    """Members of a request that this API has no words for."""
    return tuple([name for name in request.fields if name not in CARRIED])
