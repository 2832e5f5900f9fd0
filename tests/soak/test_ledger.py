"""The judge finds what is wrong, so that its silence means something."""

from pathlib import Path

import pytest

from cluster_gw.core.limits.windows import Gate
from tests.soak.judge import most_at_once, most_within, utilisation, violations
from tests.soak.ledger import Ledger
from tests.soak.subjects import CYCLE_MS, MEAN_USED, START_MS, Subject, rpm_of, scopes, subjects

HOUR_MS = 3_600_000
RPM = rpm_of(1000)
EVERY = subjects(1000)
SCOPES = scopes(EVERY)


def of_gate(gate: Gate) -> list[Subject]:
    """The targets of the last group that a gate limits."""
    found = [one for one in EVERY if one.gate is gate]
    return [one for one in found if one.group == found[-1].group]


def book(path: Path, at_ms: list[int], *, number: int = 0, tokens: int = 1) -> Ledger:
    """One admission of a subject at each of these times, a little of all others beside them."""
    lines = [f"G o{n} {n} {START_MS} {START_MS} 0 1 1 {START_MS + 1}" for n in range(len(EVERY))]
    for n, at in enumerate(at_ms):
        lines += [
            f"G l{n} {number} {at} {at} {at // 1000} {tokens} 0 {at + 60_000}",
            f"S l{n} {tokens} {at}",
            f"S l{n} 999999 {at + 1}",
        ]
    (path / "c1").write_text("\n".join([*lines, ""]))
    ledger = Ledger(path)
    ledger.read_on()
    return ledger


@pytest.mark.parametrize(
    ("more", "found"), [(0, []), (1, [f"{SCOPES[0].name} rpm: {RPM + 1} of {RPM}"])]
)
def test_one_request_too_many_in_a_minute_is_found(
    tmp_path: Path, more: int, found: list[str]
) -> None:
    times = [START_MS + 1000] * (RPM - 1) + [START_MS + 59_999] * more

    assert violations(book(tmp_path, times), EVERY, SCOPES) == found


def test_one_token_too_many_in_a_rolling_day_is_found(tmp_path: Path) -> None:
    subject = next(one for one in EVERY if one.gate is Gate.TPD)
    times = [START_MS + 1, START_MS + 24 * HOUR_MS]

    ledger = book(tmp_path, times, number=subject.number, tokens=subject.limit // 2 + 1)

    assert violations(ledger, EVERY, SCOPES) == [
        f"{subject.limited_by} tpd: {subject.limit // 2 * 2 + 2} of {subject.limit}"
    ]


def test_targets_that_share_a_limit_are_summed(tmp_path: Path) -> None:
    first, second = of_gate(Gate.RPM)
    times = [START_MS + 1] * RPM

    assert violations(book(tmp_path, times, number=first.number), EVERY, SCOPES) == [
        f"{second.limited_by} rpm: {RPM + 2} of {RPM}"  # and the one that each target has
    ]


def test_weighted_tokens_of_a_day_and_tokens_of_a_month_are_those_of_utc(tmp_path: Path) -> None:
    heavy = of_gate(Gate.PROVIDER_DAILY_TOKEN_CAP)[1]
    light = heavy.limit * 1000 // heavy.target.token_weight
    midnight_ms = START_MS + 14 * HOUR_MS
    times = [midnight_ms, midnight_ms + 24 * HOUR_MS - 1]

    ledger = book(tmp_path, times, number=heavy.number, tokens=light // 2 + MEAN_USED)

    weighted = 2 * (light // 2 + MEAN_USED) * heavy.target.token_weight
    assert violations(ledger, EVERY, SCOPES) == [
        f"{heavy.limited_by} caps tpd: {weighted} of {1000 * heavy.limit}"
    ]


@pytest.mark.parametrize(("ended", "is_found"), [("K", False), ("F", True)])
def test_request_of_a_killed_caller_ends_with_it_and_its_slot_when_it_is_freed(
    tmp_path: Path, ended: str, is_found: bool
) -> None:
    (subject,) = [one for one in EVERY if one.gate is Gate.CONCURRENCY][:1]
    ends_ms = START_MS + 120_000
    lines = [
        f"G {caller}-{n} {subject.number} {at} {at} 0 1 1 {ends_ms}"
        for caller, at in (("c1", START_MS + 2), ("c2", START_MS + 5))
        for n in range(subject.limit)
    ]
    (tmp_path / "c0").write_text("\n".join([*lines, f"{ended} c1 {START_MS + 5}", ""]))
    ledger = Ledger(tmp_path)
    ledger.read_on()

    found = [f"{subject.limited_by} concurrency: {2 * subject.limit} of {subject.limit}"] * is_found
    assert violations(ledger, EVERY, SCOPES) == found


def test_half_a_window_unused_is_told_and_a_second_settlement_is_only_counted(
    tmp_path: Path,
) -> None:
    cycles = 4
    times = [START_MS + CYCLE_MS * n for n in range(cycles) for _ in range(RPM // 2)]

    ledger = book(tmp_path, times)

    assert 0.45 < utilisation(ledger, EVERY, SCOPES[:1])["model rpm"] < 0.5
    assert (ledger.duplicates, max(ledger.used.values())) == (len(times), 1)


def test_a_span_is_half_open() -> None:
    assert most_within([(0, 1), (60_000, 1)], 60_000) == 1
    assert most_within([(0, 1), (59_999, 1)], 60_000) == 2


def test_what_ends_as_another_begins_is_not_at_once_with_it() -> None:
    assert most_at_once([(0, 5), (5, 9)]) == 1
    assert most_at_once([(0, 6), (5, 9), (5, 7)]) == 3
