"""The tree of faults the gateway itself answers with.

    GatewayError(status, type, code)
    ├── ClientFault     the request cannot be served as it is
    ├── CapacityFault   nothing could serve it now
    ├── UpstreamFault   every attempt failed
    └── ClusterFault    a promise of our own cluster broke

Expected results of single steps (a refusal, a rejected peek) are values, not exceptions; a
`GatewayError` is what ends a request. It is rendered in the caller's dialect by `surfaces`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

import msgspec


@final
class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The one error object, before it is rendered in a dialect."""

    status: int
    type: str
    code: str
    message: str
    param: str | None = None
    retryable: bool = False
    retry_after_ms: int | None = None
    cause: str | None = None
    combo: str | None = None
    attempts: Sequence[Mapping[str, Any]] = ()
    skipped: Sequence[Mapping[str, Any]] = ()


class GatewayError(Exception):
    """Ends a request with an error the client sees."""

    def __init__(self, body: ErrorBody) -> None:
        super().__init__(f"{body.status} {body.code}: {body.message}")
        self.body = body


class ClientFault(GatewayError):
    """The client must change the request."""


class CapacityFault(GatewayError):
    """No candidate could take the request now."""


class UpstreamFault(GatewayError):
    """Every attempt that was made failed."""


class ClusterFault(GatewayError):
    """Redis or our own contract failed."""


class StoreLostError(Exception):
    """Redis did not answer in time or refused the call; whether the call was applied is unknown."""


class RecordUnreadableError(StoreLostError):
    """What stands in a record of Redis is not what we write there; nothing was applied.

    Attributes:
        keys: that record; several where only that one of them cannot be read is known.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__("a record in redis cannot be read")
        self.keys = tuple(keys)


class ScriptContractError(Exception):
    """A script answered something its header does not allow: a bug, never a limit."""


class ConfigInvalidError(Exception):
    """The configuration cannot be used; `faults` holds one line per fault, `path: message`."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(map(writable, faults))
        super().__init__("\n".join(self.faults))


def writable(text: str) -> str:
    """A text with what is no Unicode in it, such as a byte of a file's name, spelt out."""
    return text.encode(errors="backslashreplace").decode()


def faults_of(error: Exception) -> list[str]:
    """What to log of a configuration that was not taken: its faults.

    Of any other exception, a bug of ours, only the type: its text may hold what stands in the file.
    """
    if isinstance(error, ConfigInvalidError):
        return list(error.faults)
    return [f"configuration: cannot be used, a bug of this version ({type(error).__name__})"]
