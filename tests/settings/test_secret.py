"""A secret can be used and cannot be seen."""

import copy
import pickle

import msgspec
import pytest

from cluster_gw.settings.secret import Secret, mask_secrets

VALUE = "sk-very-private"


class Holder(msgspec.Struct):
    secret: Secret


@pytest.mark.parametrize("shown", [repr, str, "{}".format, "{!r}".format, lambda s: f"{s:>9}"])
def test_no_way_of_printing_shows_the_value(shown) -> None:  # type: ignore[no-untyped-def]
    assert shown(Secret(VALUE)) == "***"


def test_a_struct_that_holds_a_secret_prints_stars() -> None:
    assert VALUE not in repr(Holder(Secret(VALUE)))


def test_json_shows_stars_with_the_hook_and_fails_without() -> None:
    assert msgspec.json.encode(Holder(Secret(VALUE)), enc_hook=mask_secrets) == b'{"secret":"***"}'
    with pytest.raises(TypeError):
        msgspec.json.encode(Holder(Secret(VALUE)))


def test_the_hook_encodes_nothing_else() -> None:
    with pytest.raises(TypeError, match="object cannot be encoded"):
        mask_secrets(object())


def test_a_secret_is_never_serialised() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(VALUE))
    with pytest.raises(TypeError):
        copy.deepcopy(Secret(VALUE))


def test_equal_values_are_equal_secrets() -> None:
    assert Secret(VALUE) == Secret(VALUE)
    assert Secret(VALUE) != Secret("other")
    assert Secret(VALUE) != VALUE
    assert len({Secret(VALUE), Secret(VALUE)}) == 1
    assert not Secret("")


def test_reveal_gives_the_value() -> None:
    assert Secret(VALUE).reveal() == VALUE
