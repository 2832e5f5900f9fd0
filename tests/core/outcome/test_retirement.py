import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.classify import classify
from cluster_gw.core.outcome.retirement import Finding, Proof, find_proof

DEFINITIVE, PROBABLE = Proof.DEFINITIVE, Proof.PROBABLE


def proof_of(status: int | None, message: str = "", code: str | None = None) -> Finding | None:
    kind = FaultKind.IN_BAND if status is None else FaultKind.HTTP_STATUS
    fault = Fault(kind=kind, status=status, message=message, code=code)
    return find_proof(fault, classify(fault))


@pytest.mark.parametrize(
    ("status", "message", "code", "expected"),
    [
        (410, "", None, Finding(DEFINITIVE, "gone")),
        (410, "your account", None, Finding(DEFINITIVE, "gone")),
        (404, "error 410", None, Finding(DEFINITIVE, "gone")),
        (404, "The model has reached end of life.", None, Finding(DEFINITIVE, "end_of_life")),
        (404, "model m reached its end-of-life", None, Finding(DEFINITIVE, "end_of_life")),
        (404, "This model was retired on May 1.", None, Finding(DEFINITIVE, "retired")),
        (404, "m was sunset", None, Finding(DEFINITIVE, "sunset")),
        (
            400,
            "The model `m` has been decommissioned and is no longer supported.",
            "model_decommissioned",
            Finding(DEFINITIVE, "decommissioned"),
        ),
        (404, "m is no longer available", None, Finding(PROBABLE, "unavailable")),
        (404, "m is no longer offered", None, Finding(PROBABLE, "unavailable")),
        (404, "m has been removed", None, Finding(PROBABLE, "removed")),
        (404, "m is discontinued", None, Finding(PROBABLE, "discontinued")),
        (404, "the model is deprecated", None, Finding(PROBABLE, "deprecated")),
        (None, "model m was not found: deprecated", "404", Finding(PROBABLE, "deprecated")),
    ],
)
def test_words_of_an_end_prove_something(
    status: int | None, message: str, code: str | None, expected: Finding
) -> None:
    assert proof_of(status, message, code) == expected


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (404, "", None),
        (404, "Not Found", None),
        (404, "The model `m` does not exist", "model_not_found"),
        (404, "No endpoints found for m", None),
        (404, "m is no longer available for your account", None),
        (404, "m does not exist or you do not have access to it; it may be retired", None),
        (404, "m was retired from your plan", None),
        (400, "the parameter `functions` is deprecated", None),
        (400, "max_tokens is no longer supported", None),
        (403, "this model was retired", None),
        (429, "deprecated tier", None),
        (500, "retired", None),
        (503, "the node was removed", None),
    ],
)
def test_nothing_else_proves_anything(status: int, message: str, code: str | None) -> None:
    assert proof_of(status, message, code) is None


@given(kind=st.sampled_from(FaultKind), status=st.none() | st.integers(100, 599), text=st.text())
def test_reason_is_a_word_of_ours_and_never_the_vendors_text(
    kind: FaultKind, status: int | None, text: str
) -> None:
    fault = Fault(kind=kind, status=status, message=f"{text} retired deprecated")
    found = find_proof(fault, classify(fault))

    assert found is None or found.reason in {"gone", "retired"}
