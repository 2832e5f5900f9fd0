"""Twenty targets with all four windows each; which of the windows limits differs."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from cluster_gw.core.limits.windows import ROLLING, Gate, Limits
from cluster_gw.store.admission import TargetLimits
from cluster_gw.store.keys import Keys
from cluster_gw.units import KeyId

KEYS: Final = Keys("gw1")
COUNT: Final = 20
GATES: Final = (Gate.RPM, Gate.TPM, Gate.RPD, Gate.TPD)
ZONES: Final = (ROLLING, "America/Los_Angeles", "UTC", ROLLING, "Asia/Kolkata")
START_MS: Final = round(datetime(2026, 11, 30, 10, tzinfo=UTC).timestamp() * 1000)
END_MS: Final = START_MS + 50 * 3_600_000  # two rolling days of 25 hours, three calendar days
CYCLE_MS: Final = 62_000  # a minute as the ring counts it
CYCLES: Final = 40  # in which targets that a minute limits use up their share, at least
LEAST_RPM: Final = 250
SMALLEST: Final = 50
LARGEST: Final = 400
MEAN_USED: Final = 190  # of demands between the two, of which nearly all is used
NEVER: Final = 10**9


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and what will keep it from more.

    Attributes:
        gate: the window that limits.
        limit: of that window, requests or tokens.
        until_ms: nobody asks for it afterwards.
    """

    number: int
    target: TargetLimits
    gate: Gate
    limit: int
    until_ms: int

    @property
    def windows(self) -> list[str]:
        """The keys of its counters: of the model, and of the key where that has limits."""
        slot = KEYS.slot(self.target.provider, self.target.account)
        names = [KEYS.model_window(slot, self.target.key, self.target.model)]
        if not self.target.key_limits.is_unlimited():
            names.append(KEYS.key_window(slot, self.target.key))
        return names


def subjects(share: int) -> list[Subject]:
    """All twenty, so that about `share` admissions are possible for each."""
    return [_subject(number, share) for number in range(COUNT)]


def rpm_of(share: int) -> int:
    """Requests a minute, of every target."""
    return max(LEAST_RPM, share // CYCLES)


def _subject(number: int, share: int) -> Subject:
    gate, kind = GATES[number % 4], number // 4
    rpm, a_day = rpm_of(share), gate in {Gate.RPD, Gate.TPD}
    tokens = gate in {Gate.TPM, Gate.TPD}
    requests = share // 2 if a_day else rpm
    limit = requests * (MEAN_USED if tokens else 1)
    wide = Limits(rpm=rpm if a_day else NEVER, rpd=NEVER, tpm=rpm * LARGEST, tpd=NEVER)
    tight = msgspec.structs.replace(wide, **{gate.value: limit})
    of_the_key = kind % 2 == 1  # some are limited by the window of the key over all its models
    return Subject(
        number=number,
        target=TargetLimits(
            provider="p",
            account=f"a{number}",
            key=KeyId(f"k{number}"),
            model="m",
            day_reset=ZONES[kind],
            model_limits=wide if of_the_key else tight,
            key_limits=tight if of_the_key else Limits(),
        ),
        gate=gate,
        limit=limit,
        until_ms=END_MS if a_day else START_MS + -(-share // rpm) * CYCLE_MS,
    )
