from hashlib import sha256

import pytest

from cluster_gw.errors import ErrorBody
from cluster_gw.server.auth import Client, Clients, find_credential
from cluster_gw.units import ClientId, ComboId

KEY = b"sk-test-0123456789"
APP = Client(id=ClientId("app"), key_digest=sha256(KEY).digest(), scope=frozenset({"code"}))
CLOSED = Clients([APP], is_open=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"authorization", b"Bearer " + KEY),
        (b"authorization", b"bearer  " + KEY + b" "),
        (b"x-api-key", KEY),
        (b"x-goog-api-key", KEY),
        (b"api-key", KEY),
    ],
)
def test_each_credential_header_identifies_the_client(name: bytes, value: bytes) -> None:
    assert CLOSED.identify({name: value}) is APP


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer wrong"},
        {b"authorization": b"Bearer " + KEY + b"x"},
        {b"x-api-key": KEY[:-1]},
    ],
)
def test_a_wrong_key_is_a_401_that_does_not_repeat_it(headers: dict[bytes, bytes]) -> None:
    error = CLOSED.identify(headers)

    assert isinstance(error, ErrorBody)
    assert (error.status, error.code) == (401, "invalid_api_key")
    assert "wrong" not in error.message


@pytest.mark.parametrize(
    "headers", [{}, {b"authorization": b"Basic abc"}, {b"authorization": b"Bearer "}]
)
def test_no_key_is_a_401_that_says_where_to_put_it(headers: dict[bytes, bytes]) -> None:
    error = CLOSED.identify(headers)

    assert isinstance(error, ErrorBody)
    assert (error.status, error.code) == (401, "missing_api_key")
    assert "Authorization" in error.message


def test_a_key_in_a_later_header_counts_when_the_first_is_of_another_scheme() -> None:
    assert find_credential({b"authorization": b"Basic abc", b"x-api-key": KEY}) == KEY


def test_an_open_gateway_serves_anyone_and_still_knows_its_clients() -> None:
    gateway = Clients([APP], is_open=True)

    stranger = gateway.identify({b"x-api-key": b"nobody"})

    assert isinstance(stranger, Client)
    assert stranger.id == "anonymous"
    assert gateway.identify({b"x-api-key": KEY}) is APP


def test_a_client_may_use_only_what_is_in_its_scope() -> None:
    assert APP.may_use(ComboId("code"))
    assert not APP.may_use(ComboId("auto"))
    assert Client(id=ClientId("all")).may_use(ComboId("auto"))
