"""The values of admission: what is asked, what is granted, what is reported back.

Import them from `store.admission`; they live here so that its parts can share them.
"""

from collections.abc import Sequence
from typing import Final, final

import msgspec

from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.caps import PLAIN_WEIGHT, Caps
from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.core.limits.cooldown import Cooldown
from cluster_gw.core.limits.price import Price
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.core.routing.statistics import Sample
from cluster_gw.units import KeyId, LeaseId

SLOT_SECONDS: Final = 8
"""How many seconds that are over share a field of a window (`lua/lib/window.lua`)."""
SLOT_FIELDS: Final = 9
"""In how many fields 62 of them are."""


class TargetLimits(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A target as admission sees it; built once per catalog, not per request.

    Attributes:
        host: what fails as a whole: the provider, or `provider@endpoint` of a relay; the provider
            where nothing else is said.
        caps: of the key over all its models.
        token_weight: of the model in its key's daily tokens, thousandths.
        share: the client that asks, where it may take a part of each window only.
        price: of its tokens; None where it is not known.
    """

    provider: str
    account: str
    key: KeyId
    model: str
    day_reset: str
    model_limits: Limits
    key_limits: Limits
    account_limits: Limits = Limits()
    caps: Caps = Caps()
    token_weight: int = PLAIN_WEIGHT
    host: str = ""
    share: ClientShare | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        """Fill the host in: it is looked at with every answer."""
        if not self.host:
            msgspec.structs.force_setattr(self, "host", self.provider)


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Admitted capacity.

    Attributes:
        admitted_at_s: the worker's monotonic clock when the reply arrived.
        requests_left: what the tightest window had left this minute, -1 when none is limited.
        tokens_left: the same in tokens.
        second: in which it was counted, by the server's clock; 0 when unknown.
        generation: of the target's breaker.
        is_trial: its end decides whether others may follow.
        reserved_at_ms: by the server's clock; to the second where nothing of health is recorded.
        is_recorded: something of the target's health was recorded then.
        is_local: granted by this worker itself while Redis was away.
    """

    id: LeaseId
    target: TargetLimits
    estimate_tokens: int
    prompt_tokens: int
    admitted_at_s: float
    requests_left: int = -1
    tokens_left: int = -1
    second: int = 0
    generation: int = 0
    is_trial: bool = False
    reserved_at_ms: int = 0
    is_recorded: bool = False
    is_local: bool = False


@final
class Refusal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a target was not admitted and how long until it may be; never an error.

    Attributes:
        scope: `model`, `key` or `account`.
        is_held_back: there may be room, but not before other workers have told Redis what they did
            without it.
    """

    gate: Gate
    scope: str
    retry_after_ms: int
    is_held_back: bool = False


FAILURE: Final = Evidence.FAILURE


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the end of a lease says about the health of its target.

    Attributes:
        evidence: for the breaker.
        breaker: the policy it is judged by.
        cooldown: a rest of the target or its key; None for none.
        is_exempt: none of it holds unless it is the third such end in a row
            (`core.limits.streak`).
    """

    evidence: Evidence = Evidence.NEUTRAL
    breaker: BreakerPolicy = BreakerPolicy()
    cooldown: Cooldown | None = None
    is_exempt: bool = False

    def is_remembered(self) -> bool:
        """Whether it says something even of a target that nothing is recorded of."""
        return self.cooldown is not None or self.evidence is FAILURE


EXEMPT: Final = "exempt"  # a failure, if it is not forgiven
RESTS: Final = "rests"  # neutral, but for a rest
NO_OUTCOME: Final = Outcome()


class Consumed(msgspec.Struct, frozen=True, gc=False):
    """What a call counts for in the usage, beside what its windows take (`store/usage.py`).

    Attributes:
        client: who asked.
        output_tokens: of the tokens of its settlement.
        cached_tokens: of its prompt, as reported.
        reasoning_tokens: of its output, as reported.
        family: of the error that it ended in; empty for an answer.
    """

    client: str
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    family: str = ""


class Settlement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fact that replaces an estimate.

    Attributes:
        counts_request: False only when nothing was sent upstream.
        tokens: what was used; 0 for a failed attempt without reported usage.
        outcome: `success`, or a failure class.
        health: what it says about the target.
        sample: what it adds to the target's statistics; None for nothing.
        consumed: what it counts for in the usage; None for nothing, as when it was given back.
    """

    counts_request: bool
    tokens: int
    outcome: str
    health: Outcome = NO_OUTCOME
    sample: Sample | None = None
    consumed: Consumed | None = None


def slot_name(second: int) -> str:
    """The field of a window that holds a second that is over; a guess saves the script a look."""
    return f"s{second // SLOT_SECONDS % SLOT_FIELDS}"


def age_name(age_s: float) -> str:
    """The same for a lease that Redis may never have heard of: how old it is, in whole seconds.

    Rounded down, so that it stays counted for longer rather than shorter.
    """
    return f"a{max(0, int(age_s))}"


def outcome_text(lease: Lease | None, health: Outcome, limits: Sequence[int]) -> str:
    """What `settle` is told of health; `lua/lib/health_outcome.lua` has the words.

    Args:
        lease: None when the admission's reply never came.
        health: how it ended.
        limits: requests and tokens a day for each window, -1 for none.
    """
    generation, reserved_at_ms = (lease.generation, lease.reserved_at_ms) if lease else (0, 0)
    rest, breaker, evidence = health.cooldown, health.breaker, str(health.evidence)
    if not health.is_remembered():
        return f"{evidence} {generation} {reserved_at_ms}"
    if health.is_exempt:
        evidence = EXEMPT
    elif health.evidence is Evidence.NEUTRAL:
        evidence = RESTS
    known = f"{generation} {reserved_at_ms} {breaker.threshold} {breaker.cooldown_ms}"
    text = f"{evidence} {known}"
    if rest is None:
        return text
    words = (
        *(rest.scope, rest.source, rest.reason, rest.wait_ms, rest.until_ms, rest.stated_ms),
        *(rest.climb, rest.step_cap_ms, *limits),
    )
    return f"{text} {' '.join(map(str, words))}"
