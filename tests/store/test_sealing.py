import pytest

from cluster_gw.store.sealing import AesSeal, Unsealed, UnsealError, seal_of

KEY = "ab" * 32


def test_a_value_is_read_with_its_key_under_its_name_only() -> None:
    seal = seal_of(KEY)
    stored = seal.close("gw1:ses:a:{s}:t:1", b"what was thought")

    assert seal_of(KEY).open("gw1:ses:a:{s}:t:1", stored) == b"what was thought"
    assert b"thought" not in stored
    for other, name in ((seal, "gw1:ses:b:{s}:t:1"), (seal_of("cd" * 32), "gw1:ses:a:{s}:t:1")):
        with pytest.raises(UnsealError):
            other.open(name, stored)


def test_two_writes_of_one_value_differ() -> None:
    seal = seal_of(KEY)

    assert seal.close("n", b"same") != seal.close("n", b"same")


@pytest.mark.parametrize("stored", [b"", b"{}", b"\x01", b"\x01" + bytes(11), b"\x01" + bytes(40)])
def test_what_nobody_sealed_is_refused(stored: bytes) -> None:
    with pytest.raises(UnsealError):
        seal_of(KEY).open("n", stored)


def test_any_changed_byte_is_noticed() -> None:
    seal = seal_of(KEY)
    stored = seal.close("n", b"value")

    for place in range(len(stored)):
        changed = bytearray(stored)
        changed[place] ^= 1
        with pytest.raises(UnsealError):
            seal.open("n", bytes(changed))


def test_without_a_key_values_are_kept_as_they_are_and_sealed_ones_are_refused() -> None:
    seal = seal_of(None)

    assert isinstance(seal, Unsealed)
    assert seal.open("n", seal.close("n", b"{}")) == b"{}"
    with pytest.raises(UnsealError):
        seal.open("n", seal_of(KEY).close("n", b"{}"))


def test_a_key_is_not_shown() -> None:
    assert repr(seal_of(KEY)) == "AesSeal(***)"
    assert isinstance(seal_of(KEY), AesSeal)


def test_the_key_before_opens_what_it_sealed_and_seals_nothing() -> None:
    old, both = seal_of(KEY), seal_of("cd" * 32, KEY)

    assert both.open("n", old.close("n", b"value")) == b"value"
    assert seal_of("cd" * 32).open("n", both.close("n", b"value")) == b"value"
    with pytest.raises(UnsealError):
        both.open("other", old.close("n", b"value"))
    assert both.name == seal_of("cd" * 32).name
