import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.breaker import (
    TABLE,
    Admit,
    Answer,
    Breaker,
    BreakerPolicy,
    BreakerState,
    Effect,
    Evidence,
    Move,
    Renew,
    Report,
    Standing,
    next_gen,
    standing_of,
    step,
)

T0 = 1_795_000_000_000
POLICY = BreakerPolicy()
COOLDOWN_MS = POLICY.cooldown_ms
LEASE_MS = 60_000
TRIAL = "trial"


def admit(
    breaker: Breaker, token: str, now_ms: int, *, owes: bool = False
) -> tuple[Breaker, Answer]:
    event = Admit(token=token, until_ms=now_ms + LEASE_MS, owes_trial=owes)
    return step(breaker, event, POLICY, now_ms)


def report(
    breaker: Breaker, token: str, gen: int, evidence: Evidence, now_ms: int
) -> tuple[Breaker, Effect]:
    after, answer = step(breaker, Report(token=token, gen=gen, evidence=evidence), POLICY, now_ms)
    return after, answer.effect


def opened(now_ms: int = T0) -> Breaker:
    breaker = Breaker()
    for _ in range(POLICY.threshold):
        breaker, _effect = report(breaker, "a", breaker.gen, Evidence.FAILURE, now_ms)
    assert breaker.state is BreakerState.OPEN
    return breaker


def on_trial(token: str = TRIAL, now_ms: int = T0 + COOLDOWN_MS) -> tuple[Breaker, int]:
    breaker, answer = admit(opened(), token, now_ms)
    assert answer.effect is Effect.TRIAL
    return breaker, answer.gen


def test_failures_in_a_row_open_at_the_threshold() -> None:
    breaker, effects = Breaker(), []
    for _ in range(3):
        breaker, effect = report(breaker, "a", 0, Evidence.FAILURE, T0)
        effects.append((effect, breaker.state, breaker.fails))

    assert [state for _, state, _ in effects] == ["closed", "closed", "open"]
    assert [fails for *_, fails in effects] == [1, 2, 3]
    assert breaker.opened_at_ms == T0


def test_success_ends_the_row() -> None:
    breaker = Breaker(fails=2)
    breaker, effect = report(breaker, "a", 0, Evidence.SUCCESS, T0)

    assert (effect, breaker) == (Effect.RESET, Breaker())


def test_neutral_result_changes_nothing() -> None:
    breaker = Breaker(fails=2)

    assert report(breaker, "a", 0, Evidence.NEUTRAL, T0) == (breaker, Effect.IGNORE)


def test_open_breaker_refuses_until_its_time_is_over() -> None:
    breaker = opened()
    refused, answer = admit(breaker, "b", T0 + COOLDOWN_MS - 1)

    assert refused == breaker
    assert (answer.effect, answer.retry_at_ms) == (Effect.REFUSE_OPEN, T0 + COOLDOWN_MS)


def test_first_admission_after_that_is_the_only_trial() -> None:
    breaker, _ = on_trial()
    after, answer = admit(breaker, "second", T0 + COOLDOWN_MS)

    assert after == breaker
    assert answer.effect is Effect.REFUSE_TAKEN
    assert answer.retry_at_ms == breaker.trial_until_ms


def test_success_of_the_trial_closes() -> None:
    breaker, gen = on_trial()
    after, effect = report(breaker, "trial", gen, Evidence.SUCCESS, T0 + COOLDOWN_MS + 5)

    assert effect is Effect.CLOSE
    assert (after.state, after.fails, after.trial) == (BreakerState.CLOSED, 0, None)
    assert after.gen > gen


def test_failure_of_the_trial_opens_at_once_for_the_full_time() -> None:
    breaker, gen = on_trial()
    now_ms = T0 + COOLDOWN_MS + 5
    after, effect = report(breaker, "trial", gen, Evidence.FAILURE, now_ms)

    assert effect is Effect.OPEN
    assert standing_of(after, POLICY, now_ms + COOLDOWN_MS - 1) is Standing.OPEN


def test_neutral_end_of_the_trial_frees_its_slot_for_the_next() -> None:
    breaker, gen = on_trial()
    after, effect = report(breaker, "trial", gen, Evidence.NEUTRAL, T0 + COOLDOWN_MS + 5)
    _, answer = admit(after, "next", T0 + COOLDOWN_MS + 5)

    assert (effect, after.state) == (Effect.RELEASE, BreakerState.HALF_OPEN)
    assert answer.effect is Effect.TRIAL


def test_trial_that_ended_by_time_is_replaced_and_its_result_fenced() -> None:
    breaker, gen = on_trial("first")
    now_ms = breaker.trial_until_ms
    breaker, answer = admit(breaker, "second", now_ms)

    assert answer.effect is Effect.TRIAL
    for evidence in Evidence:
        assert report(breaker, "first", gen, evidence, now_ms) == (breaker, Effect.IGNORE)


def test_late_result_of_a_trial_nobody_replaced_still_counts() -> None:
    breaker, gen = on_trial()
    after, _ = report(breaker, "trial", gen, Evidence.SUCCESS, breaker.trial_until_ms + 1)

    assert after.state is BreakerState.CLOSED


def test_renewed_trial_keeps_its_slot() -> None:
    breaker, _ = on_trial()
    until_ms = breaker.trial_until_ms + LEASE_MS
    renewed, answer = step(breaker, Renew(token="trial", until_ms=until_ms), POLICY, T0)
    _, second = admit(renewed, "second", breaker.trial_until_ms + 1)

    assert answer.effect is Effect.RENEW
    assert second.effect is Effect.REFUSE_TAKEN


def test_renewal_never_shortens_and_only_the_holder_may() -> None:
    breaker, _ = on_trial()
    shorter, _ = step(breaker, Renew(token="trial", until_ms=1), POLICY, T0)
    strange, answer = step(breaker, Renew(token="other", until_ms=10**15), POLICY, T0)

    assert (shorter, strange) == (breaker, breaker)
    assert answer.effect is Effect.IGNORE


def test_results_from_before_it_opened_neither_close_nor_extend() -> None:
    breaker = opened()

    for evidence in Evidence:
        assert report(breaker, "old", 0, evidence, T0 + 100) == (breaker, Effect.IGNORE)


def test_result_from_before_a_closed_breaker_was_opened_is_fenced() -> None:
    breaker, gen = on_trial()
    breaker, _ = report(breaker, "trial", gen, Evidence.SUCCESS, T0 + COOLDOWN_MS)

    assert report(breaker, "old", 0, Evidence.FAILURE, T0 + COOLDOWN_MS + 1)[0] == breaker


def test_result_told_twice_counts_once_for_a_trial() -> None:
    breaker, gen = on_trial()
    closed, _ = report(breaker, "trial", gen, Evidence.SUCCESS, T0 + COOLDOWN_MS)

    assert report(closed, "trial", gen, Evidence.FAILURE, T0 + COOLDOWN_MS)[0] == closed


def test_first_use_after_a_rest_is_a_trial_of_a_closed_breaker() -> None:
    breaker, answer = admit(Breaker(), "first", T0, owes=True)
    _, second = admit(breaker, "second", T0, owes=True)

    assert (answer.effect, second.effect) == (Effect.TRIAL, Effect.REFUSE_TAKEN)


def test_limited_again_a_trial_after_a_rest_leaves_the_slot_free() -> None:
    breaker, answer = admit(Breaker(), "first", T0, owes=True)
    breaker, _ = report(breaker, "first", answer.gen, Evidence.NEUTRAL, T0 + 1)

    assert standing_of(breaker, POLICY, T0 + 1) is Standing.FREE


@pytest.mark.parametrize("back_ms", [1, 10**9])
def test_clock_set_back_does_not_keep_it_open(back_ms: int) -> None:
    assert standing_of(opened(), POLICY, T0 - back_ms) is Standing.DUE


def test_clock_set_far_back_does_not_keep_a_trial_taken() -> None:
    breaker, _ = on_trial()

    assert standing_of(breaker, POLICY, T0 - 10**9) is Standing.FREE


def test_generations_grow_even_when_the_record_was_lost() -> None:
    lost = opened(T0)
    anew = opened(T0 + 1)

    assert anew.gen > lost.gen
    assert next_gen(10**17, T0) == 10**17 + 1


def test_table_names_every_admission_and_every_way_a_trial_ends() -> None:
    assert all((standing, Move.ADMIT) in TABLE for standing in Standing)
    trial = {move for move in Move if move.name.startswith("TRIAL_")}
    for standing in (Standing.FREE, Standing.TAKEN):
        assert {move for row, move in TABLE if row is standing} == {Move.ADMIT, *trial}


EVENTS = st.one_of(
    st.tuples(st.just("admit"), st.booleans()),
    st.tuples(st.just("end"), st.integers(0, 30), st.sampled_from(Evidence)),
    st.tuples(st.just("renew"), st.integers(0, 30), st.integers(1, 90_000)),
    st.tuples(st.just("pass"), st.sampled_from([1, 500, 10_000, COOLDOWN_MS, LEASE_MS + 1])),
)


@given(events=st.lists(EVENTS, max_size=60))
def test_any_interleaving_has_at_most_one_trial_in_its_time(
    events: list[tuple[str, int] | tuple[str, int, Evidence | int]],
) -> None:
    fleet = Fleet()
    for event in events:
        fleet.act(*event)
        held = [token for token, until_ms in fleet.trials.items() if fleet.now_ms < until_ms]
        assert len(held) <= 1
        assert not held or fleet.breaker.state is BreakerState.HALF_OPEN
        assert not held or fleet.breaker.trial == held[0]


class Fleet:
    """Workers that admit, end and renew in any order; knows which trials are running."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.now_ms = T0
        self.leases: list[tuple[str, int]] = []
        self.trials: dict[str, int] = {}
        self.names = itertools.count()

    def act(self, what: str, first: int, second: Evidence | int = 0) -> None:
        if what == "pass":
            self.now_ms += first
        elif what == "admit":
            self.admit(owes=bool(first))
        elif self.leases:
            token, gen = self.leases[first % len(self.leases)]
            if isinstance(second, Evidence):
                self.end(token, gen, second)
            else:
                self.renew(token, self.now_ms + second)

    def admit(self, *, owes: bool) -> None:
        token = f"lease-{next(self.names)}"
        self.breaker, answer = admit(self.breaker, token, self.now_ms, owes=owes)
        if answer.effect is Effect.TRIAL:
            self.trials[token] = self.now_ms + LEASE_MS
        if answer.effect in {Effect.TRIAL, Effect.PASS}:
            self.leases.append((token, answer.gen))

    def end(self, token: str, gen: int, evidence: Evidence) -> None:
        before = self.breaker
        self.breaker, effect = report(before, token, gen, evidence, self.now_ms)
        if effect in {Effect.CLOSE, Effect.OPEN, Effect.RELEASE}:
            assert token == before.trial or before.state is BreakerState.CLOSED
        self.trials.pop(token, None)
        self.leases.remove((token, gen))

    def renew(self, token: str, until_ms: int) -> None:
        self.breaker, answer = step(
            self.breaker, Renew(token=token, until_ms=until_ms), POLICY, self.now_ms
        )
        if answer.effect is Effect.RENEW:
            self.trials[token] = max(self.trials[token], until_ms)


@given(events=st.lists(EVENTS, max_size=40))
def test_generations_never_fall_and_rise_with_every_transition(
    events: list[tuple[str, int] | tuple[str, int, Evidence | int]],
) -> None:
    fleet = Fleet()
    for event in events:
        before = fleet.breaker
        fleet.act(*event)
        assert fleet.breaker.gen >= before.gen
        assert fleet.breaker.state is before.state or fleet.breaker.gen > before.gen


@given(
    standing=st.sampled_from([Breaker(), Breaker(fails=2), opened(), on_trial()[0]]),
    tokens=st.lists(st.uuids(), min_size=2, max_size=50, unique=True),
)
def test_fifty_admissions_at_once_make_at_most_one_trial(
    standing: Breaker, tokens: list[object]
) -> None:
    breaker, effects, now_ms = standing, [], T0 + 10 * COOLDOWN_MS
    for token in tokens:
        breaker, answer = admit(breaker, str(token), now_ms)
        effects.append(answer.effect)

    assert effects.count(Effect.TRIAL) <= 1
    assert (effects.count(Effect.TRIAL) == 1) == (standing.state is not BreakerState.CLOSED)
