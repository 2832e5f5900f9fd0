"""Every fault is found, with its real path, the nearest name and no secret."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import Loaded, load_bytes
from cluster_gw.settings.strategies import STRATEGIES

FaultsOf = Callable[..., list[str]]
Document = dict[str, Any]


def put(document: Document, path: str, value: Any) -> None:
    """Set `a.b.0.c` of a document, making mappings on the way."""
    steps = path.split(".")
    target: Any = document
    for step in steps[:-1]:
        target = target[int(step)] if step.isdecimal() else target.setdefault(step, {})
    last = steps[-1]
    if last.isdecimal():
        target.append(value)
    else:
        target[last] = value


FAULTS = [
    ("server.prot", 1, 'server.prot: unknown field "prot"; did you mean "port"?'),
    ("sevrer", {}, 'sevrer: unknown field "sevrer"; did you mean "server"?'),
    (
        "server.port",
        "80",
        "server.port: expected a whole number from 1 to 65535, got a number in quotes",
    ),
    ("server.port", 0, "server.port: expected a whole number from 1 to 65535, got 0"),
    ("server.port", 80.0, "server.port: expected a whole number from 1 to 65535, got 80"),
    ("server.port", True, "server.port: expected a whole number from 1 to 65535, got true"),
    ("server.port", None, "server.port: expected a whole number from 1 to 65535, got nothing"),
    ("server.host", "", "server.host: must not be empty"),
    (
        "providers.far.caps.monthly_token",
        1,
        (
            'providers.far.caps.monthly_token: unknown field "monthly_token"; '
            'did you mean "monthly_tokens"?'
        ),
    ),
    (
        "providers.far.caps.tpd",
        -1,
        (
            "providers.far.caps.tpd: expected a whole number from 0 to 1000000000000 "
            "such as 150000, 150k, 15M or 1.5B, got -1"
        ),
    ),
    (
        "models.0.token_weight",
        1001,
        "models[0].token_weight: expected a number from 0 to 1000, got 1001",
    ),
    (
        "providers.far.accounts.far-b",
        {"limits": {"rpm": 1}},
        'providers.far.accounts.far-b: unknown "far-b"; did you mean "far-a"?',
    ),
    (
        "providers.local.accounts.team",
        {},
        'providers.local.accounts.team: unknown "team"; use "local-keyless"',
    ),
    (
        "providers.far.accounts",
        {"far-a": {"limits": {"rpm": -1}}},
        (
            "providers.far.accounts.far-a.limits.rpm: expected a whole number from 0 to "
            "1000000000000, got -1"
        ),
    ),
    *(
        (
            "clients.0.limits.key_share",
            value,
            (f"clients[0].limits.key_share: expected a number above 0 and at most 1, got {value}"),
        )
        for value in (0, 1.5, -0.5)
    ),
    ("server.admin_port", 8080, "server.admin_port: must differ from server.port"),
    ("server", [], "server: expected a mapping, got a list"),
    ("server.drain_s", -1, "server.drain_s: expected a number from 0 to 3600, got -1"),
    ("keys", {}, "keys: expected a list, got a mapping"),
    ("auth.mode", "nine", 'auth.mode: unknown "nine"; did you mean "none"?'),
    ("redis.when_lost", "q", 'redis.when_lost: unknown "q"; use one of "closed", "open", "share"'),
    (
        "redis.url",
        "http://:pw@host",
        (
            "redis.url: must be embedded:, redis://host:port/db, unix:///socket, "
            "redis+sentinel://host:port,…/service or redis+cluster://host:port,…; rediss… for TLS"
        ),
    ),
    (
        "redis.url",
        "redis+sentinel://:pw@h:1,i:2",
        "redis.url: needs the name of the service behind the hosts",
    ),
    ("redis.url", "redis+cluster://:pw@h:1/2", "redis.url: a cluster has no numbered databases"),
    ("redis.cache_url", "embedded:", "redis.cache_url: must be a server of its own"),
    ("redis.prefix", "a b", "redis.prefix: must be 1 to 32 of letters, digits, _ and -"),
    (
        "routing.headroom.floor",
        1.5,
        "routing.headroom.floor: expected a number from 0 to 1, got 1.5",
    ),
    (
        "routing.attempts.max",
        0,
        "routing.attempts.max: expected a whole number from 1 to 1000, got 0",
    ),
    (
        "routing.peek.idle_ms",
        0,
        "routing.peek.idle_ms: expected a whole number from 1 to 86400000, got 0",
    ),
    (
        "routing.peak_hours.timezone",
        "Mars/North",
        "routing.peak_hours.timezone: is no time zone, such as Europe/Berlin or UTC",
    ),
    (
        "providers.Local",
        {},
        "providers.Local: must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit",
    ),
    ("providers.empty", {}, "providers.empty: needs a preset or a base_url"),
    (
        "providers.far.base_url",
        "ftp://x",
        "providers.far.base_url: must be an http(s) address without credentials",
    ),
    (
        "providers.far.base_url",
        "https://u:p@x/v1",
        "providers.far.base_url: must be an http(s) address without credentials",
    ),
    (
        "providers.far.dialect",
        "openia",
        'providers.far.dialect: unknown "openia"; did you mean "openai"?',
    ),
    (
        "providers.far.day_reset",
        "midnight",
        'providers.far.day_reset: must be "rolling" or a time zone such as America/New_York',
    ),
    (
        "providers.far.timeouts.stall_s",
        0,
        "providers.far.timeouts.stall_s: expected a number above 0 and at most 31536000, got 0",
    ),
    (
        "providers.far.limits.rpm",
        -1,
        "providers.far.limits.rpm: expected a whole number from 0 to 1000000000000, got -1",
    ),
    ("keys.0.provider", "fra", 'keys[0].provider: unknown "fra"; did you mean "far"?'),
    (
        "keys.0.id",
        "Far A",
        "keys[0].id: must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit",
    ),
    ("keys.0.id", "local-keyless", "keys[0].id: is the name of the provider's own keyless entry"),
    ("keys.0.models", ["bgi"], 'keys[0].models[0]: unknown "bgi"; did you mean "big"?'),
    (
        "keys.0.secret",
        7,
        "keys[0].secret: expected text such as env:NAME or file:/path, got a number",
    ),
    ("keys.0.secret", "env:FRA", "keys[0].secret: environment variable FRA is not set"),
    ("keys.0.secret", "${FRA}", "keys[0].secret: environment variable FRA is not set"),
    (
        "keys.0.secret",
        "file:/none",
        "keys[0].secret: file /none cannot be read as text (No such file or directory)",
    ),
    ("keys.0.secret", "file:none", "keys[0].secret: file: must name an absolute path"),
    ("keys.0.secret", "a\nb", "keys[0].secret: the secret holds characters that no credential has"),
    ("models.0.provider", "loca", 'models[0].provider: unknown "loca"; did you mean "local"?'),
    ("models.0.model", "a b", "models[0].model: must be printable and without spaces"),
    ("models.0.weight", 3, "models[0].weight: expected a number from 0 to 2, got 3"),
    (
        "providers.far.limits.rpm",
        "20k",
        (
            "providers.far.limits.rpm: expected a whole number from 0 to 1000000000000, "
            "got a number with a unit, which only counts of tokens take"
        ),
    ),
    (
        "providers.far.limits.rpm",
        "30x",
        "providers.far.limits.rpm: expected a whole number from 0 to 1000000000000, got text",
    ),
    (
        "keys.0.caps.monthly_tokens",
        "15X",
        (
            "keys[0].caps.monthly_tokens: expected a whole number from 0 to 1000000000000000 "
            "such as 150000, 150k, 15M or 1.5B, got text"
        ),
    ),
    (
        "combos.0.members",
        ["far/bgi"],
        'combos[0].members[0]: unknown "far/bgi"; did you mean "far/big"?',
    ),
    (
        "combos.0.members",
        [{"route": "far:bgi"}],
        'combos[0].members[0].route: unknown "far:bgi"; did you mean "far/big"?',
    ),
    (
        "combos.0.members",
        ["far/big", "far:big"],
        'combos[0].members[1]: "far/big" stands twice',
    ),
    ("combos.0.members", "some", 'combos[0].members: unknown "some"; use "all"'),
    ("combos.0.members", 3, 'combos[0].members: expected "all" or a list, got a number'),
    ("combos.0.weights", {"speed": 0}, "combos[0].weights: at least one weight must be above 0"),
    (
        "combos.0.weights",
        {"sped": 1},
        'combos[0].weights.sped: unknown factor "sped"; did you mean "speed"?',
    ),
    ("default_combo", "atuo", 'default_combo: unknown "atuo"; did you mean "auto"?'),
    ("clients.0.combos", ["atuo"], 'clients[0].combos[0]: unknown "atuo"; did you mean "auto"?'),
    (
        "clients.0.key_sha256",
        "abc",
        "clients[0].key_sha256: must be 64 hexadecimal digits, the SHA-256 of the client's key",
    ),
]


@pytest.mark.parametrize(("path", "value", "fault"), FAULTS, ids=[f[2][:40] for f in FAULTS])
def test_one_wrong_value_is_one_fault_with_its_path(
    base: Document, faults: FaultsOf, path: str, value: Any, fault: str
) -> None:
    put(base, path, value)

    assert faults(base) == [fault]


@pytest.mark.parametrize(
    ("family", "strategy", "fault"),
    [
        ("bandit", "balanceed", 'unknown "balanceed"; did you mean "balanced"?'),
        ("bandit", "prority", 'unknown "prority"; did you mean "priority"?'),
        ("classic", "weigthed", 'unknown "weigthed"; did you mean "weighted"?'),
        ("classic", "round_robin", 'unknown "round_robin"; did you mean "round-robin"?'),
        ("bandit", "smart", '"smart" belongs to family "classic", this combo is "bandit"'),
        (
            "bandit",
            "round-robin",
            '"round-robin" belongs to family "classic", this combo is "bandit"',
        ),
        (
            "classic",
            "balanced",
            '"balanced" belongs to family "bandit", this combo is "classic"',
        ),
    ],
)
def test_a_strategy_that_cannot_run_never_falls_back(
    base: Document, faults: FaultsOf, family: str, strategy: str, fault: str
) -> None:
    base["combos"][0] |= {"family": family, "strategy": strategy}

    assert faults(base) == [f"combos[0].strategy: {fault}"]


@pytest.mark.parametrize(
    ("family", "strategy"),
    [
        *(("bandit", name) for name in STRATEGIES["bandit"]),
        *(("classic", name) for name in STRATEGIES["classic"]),
        *(("bandit", None), ("classic", None)),
    ],
)
def test_a_strategy_that_runs_is_accepted(
    base: Document, faults: FaultsOf, family: str, strategy: str
) -> None:
    base["combos"][0] |= {"family": family, "strategy": strategy}

    assert faults(base) == []


@pytest.mark.parametrize(
    ("section", "field"), [("keys", "id"), ("combos", "id"), ("clients", "id")]
)
def test_an_id_that_stands_twice_is_refused(
    base: Document, faults: FaultsOf, section: str, field: str
) -> None:
    base[section].append(
        base[section][0] | {"key_sha256": "f" * 64} if section == "clients" else base[section][0]
    )

    assert (
        f'{section}[1].{field}: "{base[section][0][field]}" stands already at {section}[0].{field}'
        in faults(base)
    )


def test_a_route_and_a_client_hash_that_stand_twice_are_refused(
    base: Document, faults: FaultsOf
) -> None:
    base["models"].append({"provider": "far", "model": "big"})
    base["clients"].append({"id": "other", "key_sha256": base["clients"][0]["key_sha256"].upper()})

    assert faults(base) == [
        'models[2].model: "far/big" stands already at models[0].model',
        "clients[1].key_sha256: this hash stands already at clients[0].key_sha256",
    ]


def test_a_refused_item_is_reported_once_and_does_not_shift_its_neighbours(
    base: Document, faults: FaultsOf
) -> None:
    base["models"].insert(0, {"provider": "far", "model": 3})
    base["models"].append({"provider": "fra", "model": "x"})
    base["models"][1]["tools"] = "yes"

    assert faults(base) == [
        "models[0].model: expected text, got a number",
        "models[1].tools: expected true or false, got text",
        'models[3].provider: unknown "fra"; did you mean "far"?',
    ]


def test_names_of_refused_items_still_count_as_known(base: Document, faults: FaultsOf) -> None:
    base["models"][0]["tools"] = 1
    base["providers"]["far"]["keyless"] = 1
    base["combos"][0] |= {"members": ["far/big"], "profile": 1}

    assert [line.split(":")[0] for line in faults(base)] == [
        "providers.far.keyless",
        "models[0].tools",
        "combos[0].profile",
    ]


def test_a_refused_part_of_an_item_does_not_hide_what_is_wrong_with_the_rest(
    base: Document, faults: FaultsOf
) -> None:
    base["keys"] = [
        {"id": "same", "provider": "fra", "secret": "env:NONE"},
        {"id": "same", "provider": "${NONE}", "secret": "env:NONE", "base_url": "ftp://x"},
        {"id": "Not An Id", "provider": "fra", "secret": "env:FAR_KEY"},
    ]
    base["models"].append({"provider": "fra", "model": 3})
    base["combos"].append({"id": "no id", "strategy": "x", "members": ["far/bgi", {"rout": 1}]})
    base["clients"] = [
        {"id": "app", "key_sha256": "short", "combos": ["atuo"]},
        {"id": "app", "key_sha256": "short"},
    ]

    places = {line.partition(":")[0] for line in faults(base)}

    assert places == {
        *("keys[0].secret", "keys[0].provider", "keys[1].provider", "keys[1].secret"),
        *("keys[1].id", "keys[2].id", "keys[2].provider"),
        *("models[2].model", "models[2].provider"),
        *("combos[1].id", "combos[1].strategy", "combos[1].members[0]"),
        *("combos[1].members[1].rout", "combos[1].members[1].route"),
        *("clients[0].key_sha256", "clients[1].key_sha256"),
        *("clients[1].id", "clients[0].combos[0]"),
    }


def test_a_refused_secret_is_reported_once(base: Document, faults: FaultsOf) -> None:
    base["redis"] = {"url": 123456789, "cache_url": [987654321]}
    base["keys"].append(base["keys"][0] | {"id": "far-b", "secret": 123456789})

    assert faults(base, FAR_KEY="") == [
        "redis.url: expected text such as env:NAME or file:/path, got a number",
        "redis.cache_url: expected text such as env:NAME or file:/path, got a list",
        "keys[0].secret: the secret is empty (environment variable FAR_KEY)",
        "keys[1].secret: expected text such as env:NAME or file:/path, got a number",
    ]


@pytest.mark.parametrize("text", ["987654321", "*abcdefgh", "!abcdefgh", "!ab!cdefgh", "&x987"])
@pytest.mark.parametrize("field", ["secret", "id", "provider", "models"])
def test_no_spelling_of_a_secret_is_repeated(field: str, text: str) -> None:
    written = {"id": "a", "provider": "p", "secret": "s", field: text}
    line = ", ".join(f"{name}: {value}" for name, value in written.items())

    with pytest.raises(ConfigInvalidError) as caught:
        load_bytes(f"keys: [{{{line}}}]\n".encode(), {})

    told = "\n".join(caught.value.faults)
    assert not any(part in told for part in ("98765", "abcdefgh", "cdefgh", "x987"))


def test_a_number_from_the_environment_is_not_repeated(base: Document, faults: FaultsOf) -> None:
    base["server"] = {"port": "${DIGITS}"}

    assert faults(base, DIGITS="987654321") == [
        (
            "server.port: expected a whole number from 1 to 65535, got a number "
            "(environment variable DIGITS)"
        )
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "\n\n"])
def test_an_empty_file_is_a_fault(text: str) -> None:
    with pytest.raises(ConfigInvalidError) as caught:
        load_bytes(text.encode(), {"GW_SERVER__PORT": "9000"})

    assert caught.value.faults == ("configuration: the file is empty: there is nothing to serve",)


def test_all_faults_are_found_in_one_go(base: Document, faults: FaultsOf) -> None:
    for path, value, _ in FAULTS[:5]:
        put(base, path, value)
    put(base, "keys.0.provider", "fra")
    put(base, "default_combo", "x")

    assert len(faults(base)) == 5


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.4", "gateway.example"])
def test_no_authentication_is_refused_where_others_can_connect(
    base: Document, faults: FaultsOf, host: str
) -> None:
    base |= {"auth": {"mode": "none"}, "server": {"host": host}}

    assert faults(base) == [f'auth.mode: "none" needs a loopback host; server.host is "{host}"']


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_no_authentication_is_fine_on_loopback(base: Document, faults: FaultsOf, host: str) -> None:
    assert faults(base | {"auth": {"mode": "none"}, "server": {"host": host}}) == []


def test_a_fault_never_shows_a_secret(base: Document, faults: FaultsOf) -> None:
    secret = "sk-very-private"
    base["keys"][0] |= {"provider": "${S}", "id": secret + "!", "wrong": secret}
    base["auth"] = {"mode": "${S}"}
    base["redis"] = {"url": f"redis://:{secret}@"}
    base["default_combo"] = "${S}"
    base["server"] = {"port": secret}
    base["providers"]["far"]["base_url"] = f"https://x:{secret}@h"

    lines = faults(base, S=secret)

    assert len(lines) == 8
    assert secret not in "\n".join(lines)


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(name=NAMES, depth=st.sampled_from(["", "server", "routing.peek", "combos.0.sticky"]))
def test_an_unknown_field_is_refused_at_its_own_path(
    faults: FaultsOf, name: str, depth: str
) -> None:
    document: Document = {"combos": [{"id": "auto"}]}
    put(document, f"{depth}.{name}".strip("."), {"x": 1})
    path = f"{depth}.{name}".strip(".").replace("combos.0", "combos[0]")

    assert any(line.startswith(f"{path}") for line in faults(document))


def test_the_base_has_neither_faults_nor_warnings(load: Callable[..., Loaded]) -> None:
    assert load().warnings == ()
