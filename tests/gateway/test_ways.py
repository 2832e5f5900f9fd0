"""How a worker's calls and checks reach providers: proxies, addresses, redirects."""

import socket
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from cluster_gw.canonical.request import Dialect
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.loading import load_bytes
from cluster_gw.settings.overlay import merge
from cluster_gw.settings.patches import Patch
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.units import RouteId
from tests.fakes.gateway import Gateway
from tests.fakes.proxy import proxying
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.upstream.raw_server import Peer, serving

ONLY_A: Final = [{"provider": "a", "model": "one"}]


def key(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "provider": name[0], "secret": f"secret-of-{name}", **more}


async def trail(http: aiohttp.ClientSession, gateway: Gateway, **fields: Any) -> list[Any]:
    """What a request that is served by nobody tells of its attempts."""
    response, body = await post(http, gateway.base_url, chat(**fields), X_Gw_Detail="1")
    assert response.status >= 400, body
    document = await response.json()
    return [(one["code"], one["class"]) for one in document["error"]["attempts"]]


async def rests(gateway: Gateway) -> list[bytes]:
    """What rests, is benched or is cut off for a failure."""
    await gateway.engine.settle()
    call, prefix = gateway.engine.redis.call, gateway.settings.redis.prefix
    found: list[bytes] = []
    for name in await call("KEYS", f"{prefix}:*"):
        if await call("TYPE", name) == b"hash":
            fields = await call("HKEYS", name)
            found += [f for f in fields if f.startswith((b"rest_", b"failures", b"br", b"bench"))]
    return found


async def test_calls_and_checks_of_every_key_go_through_the_proxy(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    async with proxying(credentials="user:pass-of-proxy") as proxy:
        gateway = await start(upstream={"proxy": proxy.url, "no_proxy": []})

        served, _ = await post(http, gateway.base_url, chat())
        target = next(iter(gateway.current.serving.runtime.targets[RouteId("a/one")].values()))
        verdict = await gateway.engine.health.checks.check(target)

        assert (served.status, verdict.value) == (200, "valid")
        assert simulator.stats()["totals"]["listings"] == 1
        assert len(proxy.asked) == 1, "the check used the connection of the call"


@pytest.mark.parametrize(
    ("own", "calls"), [({}, (1, 0)), ({"proxy": "own"}, (0, 1)), ({"proxy": "none"}, (0, 0))]
)
async def test_a_key_has_a_proxy_of_its_own_or_none(
    start: Start, http: aiohttp.ClientSession, own: dict[str, str], calls: tuple[int, int]
) -> None:
    async with proxying() as common, proxying("socks5") as another:
        proxy = {name: another.url if value == "own" else value for name, value in own.items()}
        gateway = await start(
            upstream={"proxy": common.url, "no_proxy": []}, keys=[key("a1", **proxy)], models=ONLY_A
        )

        response, _ = await post(http, gateway.base_url, chat())

        assert response.status == 200
        assert (len(common.asked), len(another.asked)) == calls


async def test_what_is_excepted_is_called_without_the_proxy(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with proxying() as proxy:
        gateway = await start(upstream={"proxy": proxy.url})

        response, _ = await post(http, gateway.base_url, chat())

        assert (response.status, proxy.asked) == (200, []), "this machine is by default"


@pytest.mark.parametrize("status", [407, 403, 502, 503])
async def test_fault_of_a_proxy_is_told_as_such_and_nothing_rests_for_it(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, status: int
) -> None:
    async with proxying() as proxy:
        gateway = await start(upstream={"proxy": proxy.url, "no_proxy": []}, models=ONLY_A)
        proxy.answer = f"HTTP/1.1 {status} No\r\n\r\n".encode()

        for _ in range(4):
            assert await trail(http, gateway) == [("proxy_failed", "network")]
        assert await rests(gateway) == []
        proxy.answer = None
        response, _ = await post(http, gateway.base_url, chat())

        assert response.status == 200
        assert simulator.stats()["totals"]["requests"] == 1


async def test_key_with_a_proxy_that_is_away_leaves_its_requests_to_another_key(
    start: Start, http: aiohttp.ClientSession
) -> None:
    away = f"http://user:pass-of-proxy@127.0.0.1:{unused_port()}"
    gateway = await start(keys=[key("a1", proxy=away), key("a2")], models=ONLY_A)

    answers = [await post(http, gateway.base_url, chat()) for _ in range(4)]
    gateway.log.flush()

    assert {response.status for response, _ in answers} == {200}
    assert any(
        "proxy_failed" in response.headers.get("x-fallback-trail", "") for response, _ in answers
    )
    assert await rests(gateway) == []
    assert b"pass-of-proxy" not in gateway.stream.getvalue()


async def test_proxy_and_its_password_are_shown_to_nobody(start: Start) -> None:
    url = "http://user:pass-of-proxy@127.0.0.1:3128"
    gateway = await start(upstream={"proxy": url}, keys=[key("a1", proxy=url), key("b1")])

    async with gateway.admin() as admin:
        keys = (await admin.get("/api/keys")).json()["items"]
        for path in ("/api/keys", "/api/keys/a1", "/api/config", "/api/health"):
            assert "pass-of-proxy" not in (await admin.get(path)).text
    shown = {one["id"]: one["proxy"] for one in keys}

    assert shown == {"a1": "***", "b1": None}
    assert "pass-of-proxy" not in repr(gateway.settings)
    assert "pass-of-proxy" in gateway.current.serving.runtime.secrets, "to be struck out"


async def test_key_that_is_read_and_sent_back_keeps_its_proxy(start: Start) -> None:
    url = "http://127.0.0.1:3128"
    gateway = await start(keys=[key("a1", proxy=url), key("b1")])

    async with gateway.admin() as admin:
        item = (await admin.get("/api/keys/a1")).json()
        same = await admin.put("/api/keys/a1", json={**item, "enabled": False})
        other = await admin.put("/api/keys/a1", json={**item, "proxy": "http://10.0.0.1:1"})

    assert (same.status_code, other.status_code) == (200, 400), (same.text, other.text)
    assert gateway.settings.keys[0].proxy is not None


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_name_that_resolves_to_this_machine_is_refused_where_only_public_ones_may_be(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    at = simulator.base_url.replace("127.0.0.1", "localhost.localdomain.example")
    gateway = await start(
        providers={"a": {"dialect": "openai", "base_url": at}},
        keys=[key("a1")],
        models=ONLY_A,
        upstream={"private_addresses": "refuse"},
    )
    resolver = gateway.engine._upstream._dialer._resolver  # type: ignore[union-attr]
    here = await resolver.resolve("127.0.0.1", int(at.rpartition(":")[2].partition("/")[0]))

    async def lying(_host: str, _port: int) -> Any:
        return here

    resolver.resolve = lying  # type: ignore[method-assign]

    assert await trail(http, gateway) == [("address_refused", "network")]
    assert await rests(gateway) == []
    assert simulator.stats()["totals"]["requests"] == 0


@pytest.mark.parametrize(
    ("dialect", "status", "stream"),
    [
        *((dialect, 307, stream) for dialect in Dialect for stream in (False, True)),
        *((Dialect.OPENAI, status, False) for status in (300, 301, 302, 303, 304, 308)),
    ],
)
async def test_no_redirect_is_followed_in_any_dialect(
    start: Start, http: aiohttp.ClientSession, dialect: Dialect, status: int, stream: bool
) -> None:
    trap: list[bytes] = []

    async def catch(peer: Peer) -> None:
        trap.append(await peer.request())

    async def send_on(peer: Peer) -> None:
        place = f"http://the-user:the-pass@127.0.0.1:{trapped.port}/the-path?key=the-query"
        head = f"HTTP/1.1 {status} Go\r\nlocation: {place}\r\ncontent-length: 8\r\n\r\nthe-body"
        while True:
            await peer.request()
            peer.send(head.encode())

    async with serving(catch) as trapped, serving(send_on) as server:
        at = f"http://127.0.0.1:{server.port}/v1"
        gateway = await start(
            providers={"a": {"dialect": dialect.value, "base_url": at}},
            keys=[key("a1")],
            models=ONLY_A,
        )
        response, body = await post(http, gateway.base_url, chat(stream=stream), X_Gw_Detail="1")
        target = next(iter(gateway.current.serving.runtime.targets[RouteId("a/one")].values()))
        verdict = await gateway.engine.health.checks.check(target)

    assert (response.status, trap, verdict.value) == (502, [], "unknown")
    assert await rests(gateway) != [], "it is a failure of the route"
    assert b'"redirected"' in body
    assert f"redirects to 127.0.0.1 (status {status})".encode() in body
    for secret in (b"the-user", b"the-pass", b"the-path", b"the-query", b"the-body"):
        assert secret not in body


REFUSED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "providers.a.base_url": (
        {"providers": {"a": {"dialect": "openai", "base_url": "http://169.254.169.254/v1"}}},
        "is where a cloud keeps credentials",
    ),
    "keys[0].base_url": (
        {"keys": [key("a1", base_url="https://[::ffff:a9fe:a9fe]/v1"), key("b1")]},
        "is where a cloud keeps credentials",
    ),
    "providers.b.base_url": (
        {
            "upstream": {"private_addresses": "refuse"},
            "providers": {
                "a": {"preset": "groq"},
                "b": {"dialect": "openai", "base_url": "http://0x0a.1/v1"},
            },
        },
        "needs upstream.private_addresses: allow",
    ),
    "upstream.proxy": ({"upstream": {"proxy": "the-secret:3128"}}, "must begin with http://"),
    "upstream.no_proxy[1]": (
        {"upstream": {"no_proxy": ["x", "http://y"]}},
        "must be a host, .domain, address, network",
    ),
    "keys[1].proxy": (
        {"keys": [key("a1"), key("b1", proxy="http://the-secret@x")]},
        'must name a port, as in http://host:3128; "none" is for no proxy',
    ),
    "upstream.max_requests": ({"upstream": {"max_requests": 0}}, "from 1 to"),
    "upstream.max_age_s": ({"upstream": {"max_age_s": 0}}, "above 0"),
    "providers.a.timeouts.write_s": (
        {"providers": {"a": {"preset": "groq", "timeouts": {"write_s": -1}}}},
        "above 0",
    ),
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_wrong_way_is_refused_with_its_path_and_a_remedy(path: str) -> None:
    sections, words = REFUSED[path]
    provider = {"dialect": "openai", "base_url": "https://api.example/v1"}
    config: dict[str, Any] = {
        "auth": {"mode": "none"},
        "providers": {"a": provider, "b": provider},
        "keys": [key("a1"), key("b1")],
        "models": [{"provider": "a", "model": "one"}, {"provider": "b", "model": "two"}],
        **sections,
    }

    with pytest.raises(ConfigInvalidError) as refusal:
        load_bytes(msgspec.json.encode(config), {})

    lines = [line for line in refusal.value.faults if line.startswith(f"{path}: ")]
    assert lines, refusal.value.faults
    assert words in lines[0]
    assert "the-secret" not in str(refusal.value.faults)


@pytest.mark.parametrize(
    ("noun", "name", "fields"),
    [
        ("keys", "a1", {"base_url": "http://169.254.169.254/v1"}),
        ("keys", "a1", {"proxy": "http://10.0.0.1:3128"}),
        ("keys", "a1", {"secret": "other"}),
        ("models", "a/one", {"base_url": "http://10.0.0.1/v1"}),
        ("providers", "a", {"base_url": "http://10.0.0.1/v1"}),
        ("settings", "upstream", {"proxy": "http://10.0.0.1:3128"}),
        ("settings", "catalog", {"provider": "groq"}),
    ],
)
async def test_no_address_or_proxy_comes_from_the_overlay_whoever_wrote_it(
    start: Start, noun: str, name: str, fields: dict[str, str]
) -> None:
    gateway = await start()

    merged = merge(gateway.configuration.base, [Patch(noun=noun, id=name, fields=fields)])
    async with gateway.admin() as admin:
        answer = await admin.put(f"/api/{noun}/{name}", json=fields)

    assert [one.patch.noun for one in merged.dropped] == [noun]
    assert merged.loaded.settings == gateway.settings
    assert answer.status_code in {400, 404, 405}
