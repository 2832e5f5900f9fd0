"""The values of a client's holds: what is asked, what is left, what was used.

Import them from `store.clients`; they live here so that its parts can share them.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.units import ClientId, LeaseId

TOKEN_GATES: Final = frozenset({ClientGate.TPM, ClientGate.MONTHLY_TOKENS, ClientGate.TOO_LARGE})


class Claim(msgspec.Struct, kw_only=True, gc=False):
    """What one request asks for of its client's allowance.

    Attributes:
        id: the operation id, the same however often it is sent, unless its hold was undone.
        tokens: the estimate; all of it is held.
        prompt_tokens: the part that stays counted when the hold expires.
        micro_usd: the estimate in money.
        prompt_micro_usd: as `prompt_tokens`.
        second: in which it was counted, once that is known.
        is_local: held by this worker itself while Redis was away.
    """

    id: LeaseId
    client: ClientId
    allowance: Allowance
    tokens: int
    prompt_tokens: int
    micro_usd: int
    prompt_micro_usd: int
    second: int = 0
    is_local: bool = False

    def size(self, gate: ClientGate) -> int:
        """How much of what a gate limits; the same for all claims where one request counts one."""
        if gate in TOKEN_GATES:
            return self.tokens
        return self.micro_usd if gate is ClientGate.MONTHLY_USD else 0


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a client has left this minute, as the script told at `at_s` (monotonic seconds).

    Attributes:
        requests_left: -1 where nothing is limited, like `tokens_left`.
        requests_reset_ms: until all requests are back.
        tokens_reset_ms: until all tokens are back.
    """

    allowance: Allowance
    at_s: float
    requests_left: int
    requests_reset_ms: int
    tokens_left: int
    tokens_reset_ms: int


class ClientRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a client was not let in, and how long until it may be; never an error."""

    gate: ClientGate
    retry_after_ms: int
    standing: Standing


class Used(msgspec.Struct, kw_only=True, gc=False):
    """What a request has used so far: the sum over its attempts as charged."""

    requests: int = 0
    tokens: int = 0
    micro_usd: int = 0

    @property
    def counts_request(self) -> bool:
        """Whether anything was sent; the client's request counts once, however many attempts."""
        return self.requests > 0
