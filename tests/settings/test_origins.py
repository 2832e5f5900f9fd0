"""A fault of a value from the environment names the variable and the path, and never the value."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.settings.test_faults import put

FaultsOf = Callable[..., list[str]]
VALUE = "sekret-9f"
WRONG_TYPES = [
    ("server.port", "${PORT}", "expected a whole number from 1 to 65535, got text"),
    ("server.drain_s", "${PORT}", "expected a number from 0 to 3600, got text"),
    ("server.host", "${PORT:-}", "must not be empty"),
    ("providers.far.keyless", "${PORT}", "expected true or false, got text"),
    ("providers.far.caps", "${PORT}", "expected a mapping, got text"),
    ("keys", "${PORT}", "expected a list, got text"),
    ("auth.mode", "${PORT}", 'unknown "***"; use one of "keys", "none"'),
    ("redis.prefix", "a ${PORT}", "must be 1 to 32 of letters, digits, _ and -"),
    ("default_combo", "${PORT}", 'unknown "***"; use "auto"'),
    ("providers.far.base_url", "${PORT}", "must be an http(s) address without credentials"),
    ("combos.0.members", ["${PORT}"], 'unknown "***"; use one of "far/big", "local/small"'),
    ("models.0.context_window", "${PORT}", "expected a whole number of at least"),
]


@pytest.mark.parametrize(("path", "text", "words"), WRONG_TYPES)
def test_a_value_of_a_variable_that_is_of_no_use_names_variable_and_path(
    base: dict[str, Any], faults: FaultsOf, path: str, text: Any, words: str
) -> None:
    put(base, path, text)

    found = faults(base, PORT="" if ":-" in text else VALUE)

    (line,) = [line for line in found if line.endswith("(environment variable PORT)")]
    assert line.startswith(path.split(".", maxsplit=1)[0])
    assert words.removesuffix(" of at least") in line
    assert VALUE not in "".join(found)


def test_all_variables_of_a_value_are_named_once(base: dict[str, Any], faults: FaultsOf) -> None:
    put(base, "server.port", "${A}${B}${A}")

    assert faults(base, A=VALUE, B="x") == [
        (
            "server.port: expected a whole number from 1 to 65535, got text "
            "(environment variables A, B)"
        )
    ]


@pytest.mark.parametrize("path", ["keys.0.secret", "redis.url", "redis.cache_url"])
@pytest.mark.parametrize("value", ["", "a\nb", "http://x"])
def test_a_secret_of_a_variable_that_is_of_no_use_names_variable_and_path(
    base: dict[str, Any], faults: FaultsOf, path: str, value: str
) -> None:
    put(base, path, "env:THERE")

    found = faults(base, THERE=value)

    usable = path == "keys.0.secret" and value == "http://x"
    assert len(found) == (0 if usable else 1)
    for line in found:
        assert line.startswith(path.replace(".0", "[0]") + ": ")
        assert line.endswith("(environment variable THERE)")


def test_env_where_no_secret_belongs_says_what_to_write(
    base: dict[str, Any], faults: FaultsOf
) -> None:
    put(base, "server.port", "env:PORT")

    assert faults(base, PORT="80") == [
        (
            "server.port: expected a whole number from 1 to 65535, got text "
            "(env: is for secrets; write ${PORT})"
        )
    ]


def test_a_variable_that_sets_a_field_names_the_field(faults: FaultsOf) -> None:
    assert faults(None, GW_AUTH__MODE=VALUE) == [
        'GW_AUTH__MODE: unknown "***"; use one of "keys", "none" (sets auth.mode)'
    ]


def test_what_only_later_checks_find_names_the_variable_that_set_it(faults: FaultsOf) -> None:
    (line,) = faults(None, GW_DEFAULT_COMBO=VALUE)

    assert (
        line == 'default_combo: unknown "***"; use "auto" (environment variable GW_DEFAULT_COMBO)'
    )
