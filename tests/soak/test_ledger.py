"""The judge finds what is wrong, so that its silence means something."""

from pathlib import Path

import pytest

from cluster_gw.core.limits.windows import Gate
from tests.soak.ledger import Ledger, most_within, utilisation, violations
from tests.soak.subjects import COUNT, CYCLE_MS, START_MS, rpm_of, subjects

HOUR_MS = 3_600_000
RPM = rpm_of(1000)


def book(path: Path, at_ms: list[int], *, number: int = 0, tokens: int = 1) -> Ledger:
    """One admission of a subject at each of these times, a little of all others beside them."""
    lines = [f"G o{n} {n} {START_MS} {START_MS} 0 1 1 {START_MS + 1}" for n in range(COUNT)]
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


@pytest.mark.parametrize(("more", "found"), [(0, []), (1, [f"0 rpm: {RPM + 1} of {RPM}"])])
def test_one_request_too_many_in_a_minute_is_found(
    tmp_path: Path, more: int, found: list[str]
) -> None:
    times = [START_MS + 1000] * (RPM - 1) + [START_MS + 59_999] * more

    assert violations(book(tmp_path, times), subjects(1000)) == found


def test_one_token_too_many_in_a_rolling_day_is_found(tmp_path: Path) -> None:
    (subject,) = [one for one in subjects(1000) if one.gate is Gate.TPD][:1]
    times = [START_MS + 1, START_MS + 24 * HOUR_MS]

    ledger = book(tmp_path, times, number=subject.number, tokens=subject.limit // 2 + 1)

    assert violations(ledger, subjects(1000)) == [
        f"{subject.number} tpd: {subject.limit // 2 * 2 + 2} of {subject.limit}"
    ]


def test_half_a_window_unused_is_told_and_a_second_settlement_is_only_counted(
    tmp_path: Path,
) -> None:
    cycles = 4
    times = [START_MS + CYCLE_MS * n for n in range(cycles) for _ in range(RPM // 2)]

    ledger = book(tmp_path, times)

    assert 0.45 < utilisation(ledger, subjects(1000)[:1])["rpm"] < 0.5
    assert (ledger.duplicates, max(ledger.used.values())) == (len(times), 1)


def test_a_span_is_half_open() -> None:
    assert most_within([(0, 1), (60_000, 1)], 60_000) == 1
    assert most_within([(0, 1), (59_999, 1)], 60_000) == 2
