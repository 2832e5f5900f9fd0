from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.share import DEAD_AFTER_S, Span
from cluster_gw.store.ledger import Bound, Facts, Ledger, Shortage, Unit
from cluster_gw.store.membership import DEAD_AFTER_MS
from cluster_gw.units import LeaseId

LOST_AT_S = 100.0
SPANS = {"rpm": Span.MINUTE, "rpd": Span.PERIOD, "concurrency": Span.SLOTS}
UNITS = {"rpm": Unit.REQUESTS, "rpd": Unit.REQUESTS, "concurrency": Unit.SLOTS}


def bound(gate: str = "rpm", limit: int = 20, amount: int = 1, window: str = "w") -> Bound:
    unit, span = UNITS.get(gate, Unit.TOKENS), SPANS.get(gate, Span.MINUTE)
    return Bound(window, gate, span, limit, amount, unit)


def take(
    ledger: Ledger, name: str, bounds: Sequence[Bound], now_s: float = LOST_AT_S
) -> Shortage | None:
    return ledger.take(LeaseId(name), bounds, workers=1, lost_at_s=LOST_AT_S, now_s=now_s)


def room(ledger: Ledger, of: Bound, now_s: float = LOST_AT_S) -> int:
    return ledger.room(of, workers=1, lost_at_s=LOST_AT_S, now_s=now_s)


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger(is_open=False)
    for window in ("w", "v"):
        ledger.learn(window, dict.fromkeys((*SPANS, "tpm"), 0), LOST_AT_S - 1)
    return ledger


def test_request_that_lacks_one_bound_takes_nothing_of_the_others(ledger: Ledger) -> None:
    plenty, little = bound(limit=20), bound(limit=1, window="v")

    assert take(ledger, "a", [plenty, little]) == Shortage(little, never=False)

    assert room(ledger, plenty) == 10
    assert ledger.in_flight == 0


def test_newest_knowledge_counts(ledger: Ledger) -> None:
    ledger.learn("w", {"rpm": 10}, LOST_AT_S - 0.5)
    ledger.learn("w", {"rpm": 0}, LOST_AT_S - 0.7)

    assert room(ledger, bound()) == 5


def test_what_was_heard_a_minute_before_the_loss_is_not_known(ledger: Ledger) -> None:
    ledger.learn("old", {"rpm": 0}, LOST_AT_S - 61)

    assert room(ledger, bound(window="old")) == 0


def test_request_that_was_never_sent_gives_everything_back(ledger: Ledger) -> None:
    bounds = [bound(gate) for gate in SPANS] + [bound("tpm", 100, 40)]
    before = [room(ledger, one) for one in bounds]
    assert take(ledger, "a", bounds) is None

    assert ledger.end(LeaseId("a"), Facts()) == LOST_AT_S

    assert [room(ledger, one) for one in bounds] == before
    assert ledger.end(LeaseId("a"), Facts()) is None


def test_weighted_tokens_are_settled_by_their_weight() -> None:
    ledger = Ledger(is_open=False)
    ledger.learn("w", {"cap": 0}, LOST_AT_S)
    heavy = Bound("w", "cap", Span.PERIOD, 100_000, 30_000, Unit.TOKENS, 1, 3000)
    assert take(ledger, "a", [heavy]) is None

    ledger.end(LeaseId("a"), Facts(requests=1, tokens=4))

    assert room(ledger, heavy) == 50_000 - 12_000


def test_hand_over_frees_the_day_and_voids_what_was_known(ledger: Ledger) -> None:
    day = bound("rpd")
    assert take(ledger, "a", [day]) is None

    ledger.forget("", LOST_AT_S + 5)
    assert room(ledger, day) == 0
    ledger.learn("w", {"rpd": 1}, LOST_AT_S + 4)  # read before it was told of anything
    assert room(ledger, day) == 0
    ledger.learn("w", {"rpd": 2}, LOST_AT_S + 6)

    assert room(ledger, day) == 9


def test_hand_over_of_one_part_leaves_the_others(ledger: Ledger) -> None:
    for window in ("gw1:w:{p.a}:k:m", "gw1:w:{p.b}:k:m"):
        ledger.learn(window, {"rpd": 0}, LOST_AT_S)

    ledger.forget("{p.a}", LOST_AT_S + 1)

    assert room(ledger, bound("rpd", window="gw1:w:{p.a}:k:m")) == 0
    assert room(ledger, bound("rpd", window="gw1:w:{p.b}:k:m")) == 10


def test_slot_counts_as_free_only_if_it_was_known_to_be_taken(ledger: Ledger) -> None:
    slots = bound("concurrency", limit=2)
    ledger.learn("w", {"concurrency": 2}, LOST_AT_S - 0.5)
    ledger.free(["w"], "concurrency", LOST_AT_S - 0.2)
    assert room(ledger, slots) == 0

    ledger.free(["w"], "concurrency", LOST_AT_S - 0.9)

    assert room(ledger, slots) == 1


def pledge(ledger: Ledger, name: str, bounds: Sequence[Bound]) -> bool:
    return ledger.pledge(LeaseId(name), bounds, workers=1, lost_at_s=LOST_AT_S, now_s=LOST_AT_S + 1)


def test_what_is_pledged_stays_taken_but_for_its_slot_until_all_have_told(ledger: Ledger) -> None:
    bounds = [bound(gate, limit=4) for gate in SPANS]
    assert pledge(ledger, "a", bounds)
    assert pledge(ledger, "a", bounds), "asked again under its id it takes nothing more"

    assert ledger.end_pledged(LeaseId("a"))
    assert not ledger.end_pledged(LeaseId("never"))
    assert [room(ledger, one, LOST_AT_S + 1) for one in bounds] == [1, 1, 2]
    ledger.forget("", LOST_AT_S + 2)
    ledger.learn("w", dict.fromkeys(SPANS, 0), LOST_AT_S + 3)

    assert [room(ledger, one, LOST_AT_S + 3) for one in bounds] == [2, 2, 2]


def test_pledge_that_redis_refuses_and_one_without_room_take_nothing(ledger: Ledger) -> None:
    bounds = [bound(gate, limit=2) for gate in SPANS]
    assert pledge(ledger, "a", bounds)
    assert not pledge(ledger, "b", bounds)

    ledger.unpledge(LeaseId("a"))
    ledger.unpledge(LeaseId("b"))

    assert [room(ledger, one, LOST_AT_S + 1) for one in bounds] == [1, 1, 1]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["take", "end"]), st.integers(0, 400), st.floats(0, 20)),
        max_size=80,
    )
)
def test_no_order_of_requests_and_settlements_spends_more_than_the_share(
    steps: list[tuple[str, int, float]],
) -> None:
    ledger, now_s, running = Ledger(is_open=False), LOST_AT_S, list[str]()
    ledger.learn("w", {"tpm": 0, "concurrency": 0}, LOST_AT_S)
    tokens: dict[str, tuple[float, int]] = {}
    for number, (step, amount, passed_s) in enumerate(steps):
        now_s += passed_s
        if step == "take":
            bounds = [bound("tpm", 1000, amount), bound("concurrency", 8)]
            if take(ledger, str(number), bounds, now_s) is None:
                running.append(str(number))
                tokens[str(number)] = now_s, amount
        elif running:
            name = running.pop(amount % len(running))
            at_s, estimate = tokens[name]
            tokens[name] = at_s, min(amount, estimate)  # facts above the estimate come as they come
            ledger.end(LeaseId(name), Facts(requests=1, tokens=tokens[name][1]))
        recent = sum(count for at_s, count in tokens.values() if at_s > now_s - 60)
        assert recent <= 500
        assert len(running) == ledger.in_flight <= 4


def test_others_take_a_worker_for_dead_when_the_purse_expects_it() -> None:
    assert DEAD_AFTER_MS == DEAD_AFTER_S * 1000
