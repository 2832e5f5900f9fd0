"""Relays are told apart by handles of their addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.endpoints import handle_of, handles_of, is_at


@pytest.mark.parametrize(
    ("address", "handle"),
    [
        ("https://relay.example/v1/", "relay-example-v1"),
        ("http://127.0.0.1:9001/v1", "127-0-0-1-9001-v1"),
        ("HTTPS://Relay.Example", "relay-example"),
    ],
)
def test_a_handle_is_host_and_path(address: str, handle: str) -> None:
    assert handle_of(address) == handle


def test_slashes_at_the_end_make_no_other_relay() -> None:
    assert handles_of(["http://a/v1", "http://a/v1//"]) == {"http://a/v1": "a-v1"}


def test_addresses_of_one_handle_are_numbered() -> None:
    assert handles_of(["https://a/v1", "http://a/v1", "http://a.v1"]) == {
        "http://a.v1": "a-v1",
        "http://a/v1": "a-v1-2",
        "https://a/v1": "a-v1-3",
    }


@given(st.lists(st.text("ab./:", min_size=1, max_size=6), max_size=6))
def test_every_address_has_a_handle_of_its_own(addresses: list[str]) -> None:
    handles = handles_of(addresses)

    assert len(set(handles.values())) == len(handles)
    assert handles == handles_of(reversed(addresses))


def test_a_relay_is_found_by_its_address() -> None:
    assert is_at("http://a/v1", "http://a/v1/")
    assert not is_at("http://a/v1", "http://b/v1")


def test_a_relay_is_found_by_its_handle_and_no_other() -> None:
    assert is_at("http://a/v1", "a-v1")
    assert is_at("http://a/v1", "a-v1-2", "a-v1-2")
    assert not is_at("http://a/v1", "a-v1", "a-v1-2")
