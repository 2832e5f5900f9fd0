"""Values that look harmless and are not: NUL, empty text, folders of the time zone database."""

import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.settings.rules import is_zone
from cluster_gw.store.address import AddressError, parse_address
from tests.settings.test_faults import put

FaultsOf = Callable[..., list[str]]


@pytest.mark.parametrize(
    "path", ["redis.data_dir", "server.host", "telemetry.otlp_endpoint", "keys.0.models"]
)
def test_text_with_a_nul_is_refused(base: dict[str, Any], faults: FaultsOf, path: str) -> None:
    put(base, path, ["a\0b"] if path.endswith("models") else "a\0b")

    (line,) = faults(base)

    assert line.endswith(": must not hold a NUL character")
    assert "\0" not in line


def test_file_whose_name_has_a_nul_is_a_fault_on_one_line(
    base: dict[str, Any], faults: FaultsOf
) -> None:
    put(base, "keys.0.secret", "file:/a\0b\nc")

    assert faults(base) == ["keys[0].secret: file /a\\x00b\\nc cannot be read as text"]


@pytest.mark.parametrize(
    "url",
    [
        "unix:///run/a%00b",
        "rediss://h?ssl_ca_certs=/a%00b",
        "redis+sentinel://h/a%00b",
        "redis://\0",
    ],
)
def test_address_of_redis_with_a_nul_is_refused(url: str) -> None:
    with pytest.raises(AddressError, match="NUL"):
        parse_address(url)


@pytest.mark.parametrize(
    "path",
    [
        *("providers.far.limits.rpm", "providers.far.caps.tpd", "keys.0.limits.concurrency"),
        *("models.0.limits.rpd", "models.0.monthly_tokens", "clients.0.limits.monthly_usd"),
        *("redis.data_dir", "keys.0.account", "keys.0.models", "combos.0.weights"),
        *("routing.community_prior", "routing.cooldown.ceiling_s", "redis.cache_url"),
    ],
)
def test_empty_text_is_not_taken_for_no_value(
    base: dict[str, Any], faults: FaultsOf, path: str
) -> None:
    place = path.replace(".0", "[0]")
    put(base, path, "")

    (line,) = faults(base)
    assert line.startswith(f"{place}: ")

    put(base, path, None)
    assert faults(base) == []


def test_empty_variable_is_no_value_where_there_need_be_none(
    base: dict[str, Any], faults: FaultsOf
) -> None:
    put(base, "providers.far.limits.rpm", "${RPM:-}")

    assert faults(base, RPM="") == []


@pytest.mark.parametrize("value", ["", None, "rpm", [], 0, False])
@pytest.mark.parametrize(
    "path", ["providers.far.caps", "providers.far.limits", "keys.0.caps", "models.0.limits"]
)
def test_only_a_mapping_is_taken_where_one_belongs(
    base: dict[str, Any], faults: FaultsOf, path: str, value: Any
) -> None:
    put(base, path, value)

    (line,) = faults(base)

    assert line.startswith(f"{path.replace('.0', '[0]')}: expected a mapping, got ")


@pytest.mark.parametrize(
    "name",
    [
        *("localtime", "posixrules", "Factory", "right/UTC", "posix/UTC", "right/Europe/Berlin"),
        *("leapseconds", "zone.tab", "../UTC", "/UTC", "", "Europe", "europe/berlin"),
    ],
)
def test_what_else_stands_in_the_folder_of_the_time_zones_is_none(name: str) -> None:
    assert not is_zone(name)


def test_names_of_the_time_zone_database_are_zones() -> None:
    names = zoneinfo.available_timezones() - {"localtime", "Factory"}

    assert [name for name in sorted(names) if not is_zone(name)] == []
    assert {"UTC", "America/Los_Angeles", "US/Pacific", "Etc/GMT+5"} <= names


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("collector:4318", "must be an http(s) address without credentials"),
        ("http://user:private@collector:4318", "must be an http(s) address without credentials"),
        ("grpc://collector:4317", "must be an http(s) address without credentials"),
        ("http://collector:4318/v1/traces", "must end before /v1/traces"),
        ("http://collector:4318/v1/metrics/", "must end before /v1/traces"),
    ],
)
def test_where_traces_cannot_go_is_a_fault(
    endpoint: str, words: str, base: dict[str, Any], faults: FaultsOf
) -> None:
    base["telemetry"] = {"otlp_endpoint": endpoint}

    (line,) = faults(base)

    assert line.startswith(f"telemetry.otlp_endpoint: {words}")
    assert "private" not in line


@pytest.mark.parametrize(
    ("name", "value"), [("trace_sample", 1.5), ("trace_sample", -0.1), ("propagate", "some")]
)
def test_how_is_traced_has_bounds(
    name: str, value: object, base: dict[str, Any], faults: FaultsOf
) -> None:
    base["telemetry"] = {name: value}

    (line,) = faults(base)

    assert line.startswith(f"telemetry.{name}: ")
