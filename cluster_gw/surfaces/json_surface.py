"""What surfaces share: answers written whole, and the gateway's own errors in OpenAI's form."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.events import Completion
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_errors import error_body
from cluster_gw.surfaces.chat_stream import extended
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_comment, encode_data

KEEPALIVE: Final = encode_comment(b"keep-alive")


class JsonSurface(ABC):
    """Codec of one client API, as far as most are alike; see `surfaces.base.Surface`."""

    def encode_keepalive(self) -> bytes:
        """A comment line."""
        return KEEPALIVE

    def status_of(self, error: ErrorBody) -> int:
        """As it is."""
        return error.status

    def encode_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The body of an error answer."""
        return error_body(error, request_id)

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """One data event with the error object; no end marker may follow."""
        return encode_data(error_body(error, request_id))

    def encode_completion(
        self, completion: Completion, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body of a buffered answer, untouched unless there is something to add."""
        return extended(completion.raw, extensions) if extensions else completion.raw

    def encode_answer(
        self, answer: Answer, head: StreamHead, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body of a buffered answer that came in another dialect."""
        return write({**self._answer_json(answer, head), **(extensions or {})})

    @abstractmethod
    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        """The members of such an answer."""
