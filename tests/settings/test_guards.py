"""Settings of what guards the pool: strangers, guardrails, checks of keys, the degraded pool."""

from collections.abc import Callable
from typing import Any

import pytest

FaultsOf = Callable[..., list[str]]

FAULTS = [
    (
        "auth.trusted_proxies",
        ["10.0.0.0/8", "10.0.0.1/8"],
        "auth.trusted_proxies[1]: is no IP address or network, such as 10.0.0.0/8",
    ),
    *(
        (
            "server.ui_hosts",
            ["gateway.example.org", name],
            (
                "server.ui_hosts[1]: is no host name, such as gateway.example.org, "
                "without scheme, port"
            ),
        )
        for name in ("https://gateway", "gateway:8081", "gate way", "*", "-gateway", "gateway/ui")
    ),
    ("auth.ipv6_prefix", 129, "auth.ipv6_prefix: expected a whole number from 16 to 128, got 129"),
    (
        "routing.guardrails.unified_max_tokens",
        0,
        (
            "routing.guardrails.unified_max_tokens: expected a whole number from 1 to 1000000000, "
            "got 0"
        ),
    ),
    (
        "routing.guardrails.unified_max_tokens",
        "aut",
        'routing.guardrails.unified_max_tokens: unknown "aut"; did you mean "auto"?',
    ),
    (
        "routing.key_checks.interval_s",
        0.5,
        "routing.key_checks.interval_s: expected a number from 1 to 86400, got 0.5",
    ),
    (
        "routing.degraded.healthy_ratio",
        1.5,
        "routing.degraded.healthy_ratio: expected a number from 0 to 1, got 1.5",
    ),
]


@pytest.mark.parametrize(("path", "value", "fault"), FAULTS)
def test_wrong_value_is_one_fault_with_its_path(
    base: dict[str, Any], faults: FaultsOf, path: str, value: Any, fault: str
) -> None:
    section, *steps, field = path.split(".")
    place = base.setdefault(section, {})
    for step in steps:
        place = place.setdefault(step, {})
    place[field] = value

    assert faults(base) == [fault]
