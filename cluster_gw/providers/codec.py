"""What the codecs of all dialects share: a provider's addresses, headers, errors and quotas."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urljoin

from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.quota import Observation
from cluster_gw.providers import quirks
from cluster_gw.providers.openai_errors import (
    content_fault,
    document_of,
    malformed_fault,
    status_fault,
    told_fault,
)
from cluster_gw.providers.quota_headers import read_quota

JSON_TYPES: Final = frozenset({"", "application/json", "text/json"})
NOT_STREAM_TYPES: Final = frozenset(
    {"application/json", "text/json", "text/html", "application/xhtml+xml", "text/xml"}
    | {"application/xml", "application/problem+json"}
)
BASE_HEADERS: Final = (("content-type", "application/json"), ("user-agent", "cluster-gw"))


class ProviderCodec(ABC):
    """Codec of one provider, as far as its dialect does not matter; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    models_path: ClassVar[str] = "/models"  # of the list of models, below the base

    def __init__(self, quirk_names: Iterable[str] = ()) -> None:
        self._quirk = quirks.combine(quirk_names)

    @abstractmethod
    def url(self, base_url: str, model: str) -> str:
        """The full URL of a generation call with a buffered answer."""

    def stream_url(self, base_url: str, model: str) -> str:
        """The same."""
        return self.url(base_url, model)

    def check_url(self, base_url: str) -> str | None:
        """The list of models, or what the provider has in its place; None where that is metered."""
        if self._quirk.metered_checks:
            return None
        path = self._quirk.check_path or self.models_path
        api = self._api_of(base_url)
        return urljoin(f"{api}/", path) if path.startswith("..") else api + path

    def request_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        """Headers of a call; those of the provider stand for usual ones of the same name."""
        own = {name for name, _ in self._quirk.headers}
        base = tuple([(name, value) for name, value in BASE_HEADERS if name not in own])
        return (*base, *self._dialect_headers(secret), *self._quirk.headers)

    def is_stream(self, content_type: str) -> bool:
        """Whether to decode as a stream; vendors label streams in many ways, so few are refused."""
        return content_type.partition(";")[0].strip().lower() not in NOT_STREAM_TYPES

    def decode_not_stream(self, body: bytes, content_type: str, secret: str | None = None) -> Fault:
        """The fault of a 200 that answered a streaming request with something else."""
        told = self._told_fault(document_of(body), self._token_of(secret))
        return told or content_fault(content_type, body, "an event stream")

    def read_quota(self, headers: Mapping[str, str], now_ms: int) -> tuple[Observation, ...]:
        """What an answer states about the provider's limits."""
        return read_quota(headers, now_ms, requests_by_day=self._quirk.requests_by_day)

    def decode_error(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        now_ms: int,
        secret: str | None = None,
    ) -> Fault:
        """An answer with an error status as a fault."""
        return status_fault(status, headers, body, now_ms, self._token_of(secret))

    @abstractmethod
    def _api_of(self, base_url: str) -> str:
        """The address below which the API's paths stand."""

    @abstractmethod
    def _dialect_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        """The credential in its header, and what else the dialect wants."""

    def _told_fault(self, document: Any, secret: str | None) -> Fault | None:
        """The fault that a document inside a good status tells of; None where it tells of none."""
        return told_fault(document, secret)

    def _token_of(self, secret: str | None) -> str | None:
        """What an upstream may echo of a credential."""
        return secret


def unread_fault(content_type: str, body: bytes) -> Fault:
    """The fault of a buffered answer that is no JSON."""
    if content_type.partition(";")[0].strip().lower() in JSON_TYPES:
        return malformed_fault("the answer is no JSON")
    return content_fault(content_type, body, "JSON")
