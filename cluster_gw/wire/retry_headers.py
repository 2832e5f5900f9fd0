"""What an error answer says about asking again, in headers."""

from typing import Final

from cluster_gw.errors import ErrorBody
from cluster_gw.units import MS_PER_S

WAIT_STATUSES: Final = frozenset({429, 503})
NO_RETRY: Final = (b"x-should-retry", b"false")
CONFLICT: Final = 409
FIRST_SERVER_ERROR: Final = 500


def retry_headers(error: ErrorBody) -> list[tuple[bytes, bytes]]:
    """`Retry-After` in whole seconds, rounded up, and in ms beside it; on every 429 and 503.

    SDKs repeat every 5xx and 409 by themselves; one that would only fail again tells them not to.
    """
    wait_ms = error.retry_after_ms
    if wait_ms is None:
        if error.status not in WAIT_STATUSES:
            is_repeated = error.status >= FIRST_SERVER_ERROR or error.status == CONFLICT
            return [NO_RETRY] if is_repeated and not error.retryable else []
        wait_ms = MS_PER_S
    seconds = max(1, -(-wait_ms // MS_PER_S))
    return [(b"retry-after", b"%d" % seconds), (b"retry-after-ms", b"%d" % wait_ms)]
