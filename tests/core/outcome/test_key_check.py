import pytest

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.key_check import KeyVerdict, judge_key


def status(code: int, message: str = "") -> Fault:
    return Fault(kind=FaultKind.HTTP_STATUS, status=code, message=message)


def test_good_answer_shows_that_a_key_is_valid() -> None:
    assert judge_key(None).verdict is KeyVerdict.VALID


@pytest.mark.parametrize(
    "fault", [status(401), status(403), status(400, "API key not valid. Please pass a valid one.")]
)
def test_refusal_of_the_credential_rejects_the_key(fault: Fault) -> None:
    assert judge_key(fault).verdict is KeyVerdict.REJECTED


@pytest.mark.parametrize(
    "fault",
    [
        *(status(404), status(429), status(402), status(503), Fault(kind=FaultKind.CONNECT)),
        status(403, "You have insufficient permissions. Missing scopes: api.model.read."),
    ],
)
def test_whatever_else_happened_says_nothing_about_the_key(fault: Fault) -> None:
    assert judge_key(fault).verdict is KeyVerdict.UNKNOWN


def test_reason_of_a_rejection_is_its_failure_code() -> None:
    assert judge_key(status(401)).reason == "auth"
    assert judge_key(status(403)).reason == "forbidden"
    assert judge_key(status(503)).reason == judge_key(None).reason == "-"
