"""What an attempt is charged when its estimate is replaced by fact (decision 0014).

A request counts unless nothing was sent. An upstream that answered with an error status did no
work, so its tokens return. A call that was cut off without a verdict keeps what the upstream must
have seen, because returning it would admit more than the provider allows.
"""

from enum import StrEnum
from typing import Final, TypeGuard

import msgspec

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.limits.demand import Demand, estimate_tokens

MOST_TOKENS: Final = 100_000_000  # far above any context window
NO_WORK_DONE: Final = frozenset({FaultKind.HTTP_STATUS, FaultKind.CONTENT_TYPE})


class TokenSource(StrEnum):
    """Where a token count comes from."""

    REPORTED = "reported"
    ESTIMATED = "estimated"
    NONE = "none"


class Charge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fact of one attempt.

    Attributes:
        counts_request: False only when nothing was sent.
        tokens: what the windows keep.
        output_tokens: the part of them that is output, which has a price of its own.
        cached_tokens: of the rest, as reported: what the provider had kept.
        reasoning_tokens: of the output, as reported.
        source: where `tokens` comes from.
    """

    counts_request: bool
    tokens: int
    source: TokenSource
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


NO_SOURCE: Final = TokenSource.NONE
REPORTED: Final = TokenSource.REPORTED  # a name of the module is found ten times sooner
NOTHING_SENT: Final = Charge(counts_request=False, tokens=0, source=NO_SOURCE)
NO_TOKENS: Final = Charge(counts_request=True, tokens=0, source=NO_SOURCE)


def is_believable(usage: Usage | None) -> TypeGuard[Usage]:
    """Whether reported counts may be charged; an absurd total would empty every window."""
    return usage is not None and 0 < usage.total_tokens <= MOST_TOKENS


def charge_answer(usage: Usage | None, characters: int, demand: Demand) -> Charge:
    """Charge a whole answer: reported usage, else the prompt estimate and the characters seen.

    Args:
        usage: as reported; a total nobody can believe counts as missing.
        characters: output characters seen.
        demand: the estimate under which the attempt was admitted.
    """
    if is_believable(usage):
        output_tokens = output_of(usage)
        cached, reasoning = usage.cached_prompt_tokens, usage.reasoning_tokens
        return Charge(
            counts_request=True,
            tokens=usage.total_tokens,
            source=REPORTED,
            output_tokens=output_tokens,
            cached_tokens=cached and min(max(cached, 0), usage.total_tokens - output_tokens),
            reasoning_tokens=reasoning and min(max(reasoning, 0), output_tokens),
        )
    output_tokens = estimate_tokens(characters)
    return Charge(
        counts_request=True,
        tokens=demand.input_tokens + output_tokens,
        source=TokenSource.ESTIMATED,
        output_tokens=output_tokens,
    )


def output_of(usage: Usage) -> int:
    """Tell which part of the total is output.

    Whatever is not prompt, so that reasoning counted in the total only is paid, too; the reported
    output where the prompt is missing.
    """
    total, prompt = usage.total_tokens, usage.prompt_tokens
    output = total - prompt if prompt else usage.completion_tokens
    return output if 0 <= output <= total else min(max(output, 0), total)


def charge_failure(
    fault: Fault, usage: Usage | None, characters: int | None, demand: Demand
) -> Charge:
    """Charge an attempt without an answer.

    Args:
        fault: how it ended.
        usage: as reported before the end, if at all.
        characters: output characters seen of a stream; None when the output could not be watched,
            so that the whole estimate stays.
        demand: the estimate under which the attempt was admitted.
    """
    if fault.sent is Sent.NOT_SENT:
        return NOTHING_SENT
    if is_believable(usage):
        return charge_answer(usage, 0, demand)
    if fault.kind in NO_WORK_DONE or (fault.kind is FaultKind.IN_BAND and not characters):
        return NO_TOKENS
    if characters is None:
        return Charge(
            counts_request=True,
            tokens=demand.total_tokens,
            source=TokenSource.ESTIMATED,
            output_tokens=demand.output_tokens,
        )
    return charge_answer(None, characters, demand)
