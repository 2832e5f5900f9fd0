import pytest

from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.exchange import Hints
from cluster_gw.server.hints import decode_hints, echo_label, headers_of


def hints(**headers: bytes) -> Hints | ErrorBody:
    named = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return decode_hints(named, "label", may_see_detail=True)


@pytest.mark.parametrize(
    ("value", "seconds"), [(b"30", 30.0), (b"1.5", 1.5), (b"2s", 2.0), (b"250ms", 0.25)]
)
def test_a_timeout_is_read_in_seconds_or_milliseconds(value: bytes, seconds: float) -> None:
    found = hints(x_gw_timeout=value)

    assert isinstance(found, Hints)
    assert found.timeout_s == seconds


@pytest.mark.parametrize("value", [b"0", b"-1", b"soon", b"1h", b"", b"1e9", b"nan", b"9" * 40])
def test_a_timeout_that_cannot_be_used_is_an_error_naming_the_header(value: bytes) -> None:
    found = hints(x_gw_timeout=value)

    assert isinstance(found, ErrorBody)
    assert (found.status, found.param) == (400, "X-Gw-Timeout")


def test_waiting_may_be_switched_off_by_zero() -> None:
    found = hints(x_gw_max_wait=b"0")

    assert isinstance(found, Hints)
    assert found.max_wait_ms == 0


def test_detail_needs_permission_as_well_as_the_header() -> None:
    refused = decode_hints({b"x-gw-detail": b"1"}, "label", may_see_detail=False)
    allowed = hints(x_gw_detail=b"1")

    assert isinstance(refused, Hints)
    assert isinstance(allowed, Hints)
    assert (refused.detail, allowed.detail) == (False, True)


def test_our_own_session_header_beats_its_aliases() -> None:
    found = hints(session_id=b"c", x_session_id=b"b", x_gw_session_id=b"a")

    assert isinstance(found, Hints)
    assert found.session_label == "a"


@pytest.mark.parametrize("label", [b"a b", b"x" * 129, b"", b"\xff", b"a\r\nb", b"a;b"])
def test_a_label_that_is_long_or_odd_is_replaced_by_our_id(label: bytes) -> None:
    assert echo_label({b"x-request-id": label}, "ours") == "ours"


def test_a_harmless_label_is_echoed() -> None:
    assert echo_label({b"x-request-id": b"job-7.a_B"}, "ours") == "job-7.a_B"


def test_all_lines_of_features_are_one_list_and_of_other_headers_the_last_counts() -> None:
    pairs = [(b"anthropic-beta", b"one"), (b"x-api-key", b"a"), (b"anthropic-beta", b"")]
    more = [(b"anthropic-beta", b"two,three"), (b"x-api-key", b"b")]

    assert headers_of([*pairs, *more]) == {b"anthropic-beta": b"one,two,three", b"x-api-key": b"b"}


def test_features_of_a_vendor_are_taken_as_they_are() -> None:
    found = hints(anthropic_beta=b"context-1m-2025-08-07,tools-2024")

    assert isinstance(found, Hints)
    assert found.vendor == (("anthropic-beta", "context-1m-2025-08-07,tools-2024"),)


@pytest.mark.parametrize("value", [b"a\r\nx-api-key: b", "\u00fc".encode(), b"x" * 1025, b"a;b"])
def test_features_that_no_vendor_has_are_an_error_naming_the_header(value: bytes) -> None:
    found = hints(anthropic_beta=value)

    assert isinstance(found, ErrorBody)
    assert (found.status, found.param) == (400, "anthropic-beta")


def test_the_request_of_googles_client_names_a_session_where_nothing_else_does() -> None:
    alone, beside = hints(x_goog_request_id=b"g"), hints(x_goog_request_id=b"g", session_id=b"c")

    assert isinstance(alone, Hints)
    assert isinstance(beside, Hints)
    assert (alone.session_label, beside.session_label) == ("g", "c")
