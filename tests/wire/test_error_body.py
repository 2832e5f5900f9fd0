"""Error bodies of many vendors, and total over any document."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire.error_body import ErrorFacts, read_error


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {"error": {"message": "m", "type": "t", "code": "c", "param": None}},
            ErrorFacts(message="m", type="t", code="c"),
        ),
        ({"error": {"message": "m", "code": 429}}, ErrorFacts(message="m", code="429", status=429)),
        ({"error": "plain"}, ErrorFacts(message="plain")),
        ({"error": {"message": "m", "param": "n"}}, ErrorFacts(message="m", param="n")),
        ({"error": {"message": "m", "param": ["n"]}}, ErrorFacts(message="m")),
        (
            {"error": {"message": "m", "details": [{"fieldViolations": [{"field": "top_k"}]}]}},
            ErrorFacts(message="m", param="top_k"),
        ),
        (
            {"error": {"message": "m", "details": [{"fieldViolations": [3]}, 4, {}]}},
            ErrorFacts(message="m"),
        ),
        ({"error": "plain", "code": 503}, ErrorFacts(message="plain", code="503", status=503)),
        (
            [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}],
            ErrorFacts(message="m", type="INVALID_ARGUMENT", code="400", status=400),
        ),
        (
            {
                "error": {
                    "code": 429,
                    "message": "m",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}, 7],
                }
            },
            ErrorFacts(message="m", type="RESOURCE_EXHAUSTED", code="RequestsPerDay", status=429),
        ),
        ({"detail": "Not Found"}, ErrorFacts(message="Not Found")),
        ({"detail": [{"msg": "a"}, {"msg": "b"}]}, ErrorFacts(message="a; b")),
        (
            {
                "object": "error",
                "message": {"detail": [{"type": "extra_forbidden", "msg": "Extra inputs"}]},
                "type": "invalid_request_error",
            },
            ErrorFacts(message="Extra inputs", type="invalid_request_error"),
        ),
        ({"detail": {"detail": {"detail": {"detail": {"detail": {"msg": "deep"}}}}}}, None),
        ({"detail": {"message": "inner"}}, ErrorFacts(message="inner")),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "code": 400},
            ErrorFacts(message="m", type="BadRequestError", code="400", status=400),
        ),
        (
            {"type": "about:blank", "title": "Too many", "status": 429},
            ErrorFacts(message="Too many", type="about:blank", status=429),
        ),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "inner"}}},
            ErrorFacts(message="Provider returned error: inner"),
        ),
        ({"message": "m", "status": "503"}, ErrorFacts(message="m", status=503)),
        ({"error": {"message": "m", "code": 200}}, ErrorFacts(message="m", code="200")),
        ({"error": None, "choices": []}, None),
        ({"choices": [], "message": "not an error"}, None),
        ({}, None),
        ([], None),
        ("text", None),
        (None, None),
        ({"error": {}}, ErrorFacts()),
        ({"error": {"message": ["x"]}}, ErrorFacts()),
        ({"error": {"message": {"detail": "deep"}}}, ErrorFacts(message="deep")),
    ],
)
def test_facts_of_known_shapes(document: Any, expected: ErrorFacts | None) -> None:
    assert read_error(document) == expected


KEYS = st.sampled_from(
    [
        "error",
        "message",
        "code",
        "status",
        "detail",
        "details",
        "metadata",
        "raw",
        "violations",
        "type",
        "quotaId",
        "object",
        "choices",
    ]
)


@settings(deadline=None, max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.dictionaries(KEYS, inner, max_size=5) | st.lists(inner, max_size=3),
        max_leaves=15,
    )
)
def test_any_document_gives_facts_or_none(document: Any) -> None:
    facts = read_error(document)

    assert facts is None or isinstance(facts.message, str)
    assert facts is None or facts.status is None or 400 <= facts.status <= 599
