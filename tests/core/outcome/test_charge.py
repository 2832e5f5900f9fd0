import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.outcome.charge import TokenSource, charge_answer, charge_failure

DEMAND = Demand(input_tokens=100, output_tokens=50)


def test_reported_usage_is_charged_as_it_is() -> None:
    charge = charge_answer(Usage(total_tokens=7), 4000, DEMAND)

    assert (charge.tokens, charge.source) == (7, TokenSource.REPORTED)


@pytest.mark.parametrize("usage", [None, Usage(total_tokens=0)])
def test_missing_usage_is_estimated_from_prompt_and_characters(usage: Usage | None) -> None:
    charge = charge_answer(usage, 41, DEMAND)

    assert (charge.tokens, charge.source) == (111, TokenSource.ESTIMATED)


def test_a_connection_never_made_costs_neither_request_nor_tokens() -> None:
    charge = charge_failure(Fault(kind=FaultKind.CONNECT, sent=Sent.NOT_SENT), None, None, DEMAND)

    assert (charge.counts_request, charge.tokens) == (False, 0)


def test_an_error_status_keeps_the_request_and_returns_the_tokens() -> None:
    charge = charge_failure(Fault(kind=FaultKind.HTTP_STATUS, status=503), None, None, DEMAND)

    assert (charge.counts_request, charge.tokens) == (True, 0)


def test_a_failed_attempt_that_reported_usage_is_charged_with_it() -> None:
    charge = charge_failure(Fault(kind=FaultKind.CUT), Usage(total_tokens=33), 10, DEMAND)

    assert charge.tokens == 33


def test_a_stream_cut_off_is_charged_with_its_prompt_and_what_was_seen() -> None:
    charge = charge_failure(Fault(kind=FaultKind.CUT), None, 40, DEMAND)

    assert charge.tokens == 110


def test_an_answer_nobody_could_watch_keeps_its_whole_estimate() -> None:
    charge = charge_failure(
        Fault(kind=FaultKind.HEADERS_TIMEOUT, sent=Sent.UNKNOWN), None, None, DEMAND
    )

    assert charge.tokens == 150


def test_an_error_inside_a_stream_before_any_text_returns_the_tokens() -> None:
    assert charge_failure(Fault(kind=FaultKind.IN_BAND), None, 0, DEMAND).tokens == 0
    assert charge_failure(Fault(kind=FaultKind.IN_BAND), None, 4, DEMAND).tokens == 101


@given(
    kind=st.sampled_from(FaultKind),
    sent=st.sampled_from(Sent),
    characters=st.none() | st.integers(0, 10_000),
)
def test_only_what_was_not_sent_loses_its_request(
    kind: FaultKind, sent: Sent, characters: int | None
) -> None:
    charge = charge_failure(Fault(kind=kind, sent=sent), None, characters, DEMAND)

    assert charge.counts_request is (sent is not Sent.NOT_SENT)
    assert charge.tokens >= 0


@pytest.mark.parametrize("total", [-5, 10**9, 10**16, 2**80])
def test_usage_nobody_can_believe_counts_as_missing(total: int) -> None:
    charge = charge_answer(Usage(total_tokens=total), 4, DEMAND)

    assert (charge.tokens, charge.source) == (101, TokenSource.ESTIMATED)


@pytest.mark.parametrize(
    ("usage", "output_tokens"),
    [
        (Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15), 5),
        (Usage(prompt_tokens=10, completion_tokens=5, total_tokens=40), 30),
        (Usage(prompt_tokens=50, completion_tokens=5, total_tokens=40), 0),
        (Usage(completion_tokens=5, total_tokens=15), 5),
        (Usage(completion_tokens=50, total_tokens=15), 15),
        (Usage(total_tokens=15), 0),
    ],
)
def test_output_is_what_is_not_prompt(usage: Usage, output_tokens: int) -> None:
    assert charge_answer(usage, 0, DEMAND).output_tokens == output_tokens


def test_output_of_an_estimate_is_what_was_seen_or_all_that_was_reserved() -> None:
    seen = charge_answer(None, 40, DEMAND)
    unseen = charge_failure(Fault(kind=FaultKind.HEADERS_TIMEOUT), None, None, DEMAND)

    assert seen.output_tokens == 10
    assert unseen.output_tokens == DEMAND.output_tokens
