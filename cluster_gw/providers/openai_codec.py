"""What the codecs of OpenAI's APIs share: one path below the base, and a bearer token."""

from collections.abc import Iterable
from typing import ClassVar

from cluster_gw.providers import quirks
from cluster_gw.providers.codec import ProviderCodec


class OpenAICodec(ProviderCodec):
    """Codec of one of OpenAI's APIs on one provider; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    path: ClassVar[str]  # of the API, below the base

    def __init__(self, quirk_names: Iterable[str] = ()) -> None:
        super().__init__(quirk_names)
        self._is_plain = self._quirk == quirks.Quirk()

    def url(self, base_url: str, model: str = "") -> str:  # noqa: ARG002 - it is in the body
        """The full URL of a generation call; a base that already names it is left alone."""
        return self._api_of(base_url) + self.path

    def _api_of(self, base_url: str) -> str:
        return base_url.rstrip("/").removesuffix(self.path)

    def _dialect_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        token = self._token_of(secret)
        return (("authorization", f"Bearer {token}"),) if token else ()

    def _token_of(self, secret: str | None) -> str | None:
        return quirks.token_of(self._quirk, secret)
