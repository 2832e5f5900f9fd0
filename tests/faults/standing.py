"""What earlier cases say of a provider and its models, counted from what the providers were asked.

The rules are the shipped ones as documented: a model of a key rests after a refusal, three failures
in a row cut it off, failures of three models with no success since the first cut the provider off.
Of each failure it is known whether it surely counts, so there are two answers: that nobody may be
called is certain, or it is possible.
"""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

CUT_OFF: Final = 3  # failures in a row, and models of a provider
CERTAIN_REST_S: Final = 3.0  # the shortest rest is 5 s
CERTAIN_CUT_S: Final = 20.0  # of the 30 s that a breaker is open
SURE_FAILURES: Final = frozenset({500, 502, 503, 529})
RESTS: Final = frozenset({402, 403, 404, 429})
REFUSALS: Final = frozenset({401, 410})
OURS: Final = frozenset({400, 413, 422})
MUTE: Final = "close_without_reply"


class Sign(StrEnum):
    """What a call says of whom was called."""

    SUCCESS = "success"
    SURE = "sure"  # it failed, and that counts for the model and for its provider
    MAYBE = "maybe"  # it failed, and that may count
    REST = "rest"  # it surely rests
    REFUSED = "refused"  # it may rest, or be gone for good
    NEUTRAL = "neutral"
    UNKNOWN = "unknown"  # anything may have happened


FAILURES: Final = frozenset({Sign.SURE, Sign.MAYBE, Sign.UNKNOWN})


class Call(NamedTuple):
    """One call of a provider, when it had ended."""

    model: str
    at_s: float
    sign: Sign


def sign_of(faults: Sequence[dict[str, Any]]) -> Sign:
    """What a call that these faults ended says."""
    kinds = {fault["kind"]: fault for fault in faults}
    code = kinds.get("status", {}).get("code")
    if code in SURE_FAILURES or MUTE in kinds:
        return Sign.SURE
    if code in RESTS:
        return Sign.REST
    if code in REFUSALS:
        return Sign.REFUSED
    return Sign.NEUTRAL if code in OURS else Sign.MAYBE


class Standing:
    """All calls so far, by provider."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, list[Call]] = defaultdict(list)

    def note(self, provider: str, call: Call) -> None:
        """A call has ended."""
        self._calls[provider].append(call)

    def must_be_barred(self, provider: str, model: str, now_s: float) -> bool:
        """Whether a call would certainly be wrong."""
        of_model = self._of_model(provider, model)
        rested = any(
            call.sign is Sign.REST and now_s - call.at_s < CERTAIN_REST_S for call in of_model
        )
        in_a_row = _since(of_model, Sign.SUCCESS, *set(Sign) - {Sign.SURE, Sign.NEUTRAL})
        sure = [call.at_s for call in in_a_row if call.sign is Sign.SURE]
        first_s: dict[str, float] = {}
        for call in _since(self._calls[provider], Sign.SUCCESS, Sign.UNKNOWN):
            if call.sign is Sign.SURE:
                first_s.setdefault(call.model, call.at_s)
        began_s = [times[0] for times in (sure, sorted(first_s.values())) if len(times) >= CUT_OFF]
        # Cut off with the third, and surely still, however long after the first that was.
        return rested or any(now_s - at_s < CERTAIN_CUT_S for at_s in began_s)

    def codes_for(self, provider: str, model: str) -> set[str]:
        """Every reason that there may be not to call; none when it has to be called."""
        of_model = self._of_model(provider, model)
        signs = {call.sign for call in of_model}
        failed = [call for call in _since(of_model, Sign.SUCCESS) if call.sign in FAILURES]
        lately = _since(self._calls[provider], Sign.SUCCESS)
        found = set()
        if signs & {Sign.REST, Sign.REFUSED, Sign.UNKNOWN}:
            found |= {"cooldown"}
            # What is called after a rest is on trial, and cut off by one failure.
            found |= {"breaker_open"} if failed else set()
        if signs & {Sign.REFUSED, Sign.UNKNOWN}:
            found |= {"key_invalid", "model_retired"}
        if len(failed) >= CUT_OFF:
            found |= {"breaker_open"}
        if len({call.model for call in lately if call.sign in FAILURES}) >= CUT_OFF:
            found |= {"provider_open"}
        return found

    def _of_model(self, provider: str, model: str) -> list[Call]:
        return [call for call in self._calls[provider] if call.model == model]


def _since(calls: Sequence[Call], *signs: Sign) -> list[Call]:
    """The calls after the last one with one of these signs."""
    last = max((place for place, call in enumerate(calls) if call.sign in signs), default=-1)
    return list(calls[last + 1 :])
