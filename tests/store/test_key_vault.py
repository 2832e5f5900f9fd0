"""A stored secret is read with its master key, for its own key and address, and unchanged only."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.key_vault import (
    KeyVault,
    Place,
    SealedSecret,
    Unread,
    UnreadError,
    name_of,
)

MASTER, OTHER = b"\x01" * 32, b"\x02" * 32
PLACE = Place(key="a1", provider="a", base_url="https://a.example/v1")
SECRET = "sk-of-a1"

credentials = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=200)
words = st.text(min_size=1, max_size=20)
places = st.builds(Place, key=words, provider=words, base_url=words)
keys = st.binary(min_size=32, max_size=32)


def cause(vault: KeyVault, stored: SealedSecret, place: Place = PLACE) -> Unread:
    with pytest.raises(UnreadError) as fault:
        vault.open(stored, place)
    return fault.value.cause


@given(credentials, places, keys, st.integers(0, 2**53))
def test_what_was_sealed_for_a_place_is_opened_there(
    secret: str, place: Place, master: bytes, at_ms: int
) -> None:
    stored = KeyVault([master]).seal(secret, place, at_ms)

    assert KeyVault([master]).open(stored, place) == secret
    assert len(secret) < 4 or secret not in str(stored)


@given(credentials, places, places, keys, keys)
def test_no_other_place_and_no_other_master_key_opens_it(
    secret: str, place: Place, elsewhere: Place, master: bytes, other: bytes
) -> None:
    stored = KeyVault([master]).seal(secret, place, 1)

    if elsewhere != place:
        assert cause(KeyVault([master]), stored, elsewhere) is Unread.OTHER_PLACE
    if other != master:
        assert cause(KeyVault([other]), stored, place) is Unread.OTHER_MASTER_KEY
        assert KeyVault([other, master]).open(stored, place) == secret


@given(st.data())
def test_what_was_changed_anywhere_is_not_opened(data: st.DataObject) -> None:
    stored = KeyVault([MASTER]).seal(SECRET, PLACE, 7)
    sealed = bytearray(base64.b64decode(stored.sealed))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))

    assert cause(KeyVault([MASTER]), with_bytes(stored, bytes(sealed))) is Unread.CHANGED


@given(st.integers(0, 12 + 16 + len(SECRET)))
def test_what_is_cut_short_is_not_opened(length: int) -> None:
    stored = KeyVault([MASTER]).seal(SECRET, PLACE, 7)
    cut = base64.b64decode(stored.sealed)[:length]

    assert cause(KeyVault([MASTER]), with_bytes(stored, cut)) is Unread.CHANGED


@pytest.mark.parametrize(
    "changes",
    [
        {"set_at_ms": 8},
        {"sealed": ""},
        {"sealed": "no base64!"},
        {"sealed": "ä"},
        {"sealed": base64.b64encode(bytes(200)).decode()},
    ],
)
def test_fields_that_were_changed_are_noticed(changes: dict[str, Any]) -> None:
    stored = KeyVault([MASTER]).seal(SECRET, PLACE, 7)

    assert cause(KeyVault([MASTER]), msgspec.structs.replace(stored, **changes)) is Unread.CHANGED


def test_names_that_were_forged_open_nothing() -> None:
    """Someone who may write Redis gives what was sealed for one address the name of another."""
    vault = KeyVault([MASTER])
    elsewhere = Place(key="a1", provider="a", base_url="https://thief.example/v1")
    stored = vault.seal(SECRET, PLACE, 7)
    forged = msgspec.structs.replace(stored, place=vault.seal("x", elsewhere, 7).place)
    renamed = msgspec.structs.replace(
        KeyVault([OTHER]).seal(SECRET, PLACE, 7), master=name_of(MASTER)
    )

    assert cause(vault, forged, elsewhere) is Unread.CHANGED
    assert cause(vault, renamed) is Unread.CHANGED


def test_each_seal_has_a_nonce_of_its_own() -> None:
    vault = KeyVault([MASTER])
    nonces = {base64.b64decode(vault.seal(SECRET, PLACE, 7).sealed)[1:13] for _ in range(100)}

    assert len(nonces) == 100


def test_the_first_master_key_seals_and_all_open() -> None:
    both = KeyVault([MASTER, OTHER])

    assert both.seal(SECRET, PLACE, 7).master == name_of(MASTER)
    assert both.names == (name_of(MASTER), name_of(OTHER))
    assert both.open(KeyVault([OTHER]).seal(SECRET, PLACE, 7), PLACE) == SECRET


def test_without_a_master_key_nothing_is_sealed_or_opened() -> None:
    stored = KeyVault([MASTER]).seal(SECRET, PLACE, 7)

    assert cause(KeyVault([]), stored) is Unread.NO_MASTER_KEY
    with pytest.raises(UnreadError):
        KeyVault([]).seal(SECRET, PLACE, 7)


def test_nothing_shows_a_master_key() -> None:
    shown = repr(KeyVault([MASTER])) + name_of(MASTER)

    assert MASTER.hex()[:8] not in shown


def with_bytes(stored: SealedSecret, sealed: bytes) -> SealedSecret:
    return msgspec.structs.replace(stored, sealed=base64.b64encode(sealed).decode())
