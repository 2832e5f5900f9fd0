"""A key of a platform with two consoles is used at the one that knows it."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.pipeline.consoles import Consoles, post_at
from cluster_gw.pipeline.targets import Target, build_targets
from cluster_gw.providers import provider_for
from cluster_gw.providers.presets import PRESETS
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse
from tests.pipeline.catalogs import make_catalog, make_key, make_route
from tests.upstream.raw_server import Peer, RawServer, Script, serving

ZHIPU = PRESETS["zhipu"]


@pytest.fixture
async def upstream() -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient()
    await client.start()
    yield client
    await client.close()


def answering(status: int, asked: list[str]) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            asked.append((await peer.request()).split(b" ")[1].decode())
            peer.send(f"HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n".encode())

    return script


def base_of(server: RawServer) -> str:
    return f"http://127.0.0.1:{server.port}/v4"


def call_at(server: RawServer) -> UpstreamCall:
    url = f"{base_of(server)}/chat/completions"
    return UpstreamCall(url=url, headers=(), body=b"{}", connect_timeout_s=2.0)


@pytest.mark.parametrize("status", [200, 400, 429, 500])
async def test_console_that_does_not_refuse_a_key_is_asked_from_then_on(
    upstream: UpstreamClient, status: int
) -> None:
    one: list[str] = []
    two: list[str] = []
    async with serving(answering(401, one)) as first, serving(answering(status, two)) as second:
        consoles = Consoles(base_of(first), base_of(second))
        for _ in range(3):
            answer = await post_at(consoles, upstream.post, call_at(first))
            assert isinstance(answer, UpstreamResponse)
            assert answer.status == status

    assert one == ["/v4/chat/completions"]
    assert two == ["/v4/chat/completions"] * 3


async def test_key_that_neither_knows_is_refused_and_moves_nothing(
    upstream: UpstreamClient,
) -> None:
    one: list[str] = []
    two: list[str] = []
    async with serving(answering(401, one)) as first, serving(answering(401, two)) as second:
        consoles = Consoles(base_of(first), base_of(second))
        for _ in range(2):
            answer = await post_at(consoles, upstream.post, call_at(first))
            assert isinstance(answer, UpstreamResponse)
            assert answer.status == 401

    assert (len(one), len(two)) == (2, 2)


async def test_other_console_that_is_away_changes_nothing(upstream: UpstreamClient) -> None:
    one: list[str] = []
    async with serving(answering(401, one)) as first:
        consoles = Consoles(base_of(first), "http://127.0.0.1:9/v4")
        answer = await post_at(consoles, upstream.post, call_at(first))

        assert isinstance(answer, UpstreamResponse)
        assert answer.status == 401


async def test_key_that_moves_back_is_found_again(upstream: UpstreamClient) -> None:
    async with serving(answering(401, [])) as first, serving(answering(200, [])) as second:
        consoles = Consoles(base_of(second), base_of(first))
        consoles.turn()
        answer = await post_at(consoles, upstream.post, call_at(second))

        assert isinstance(answer, UpstreamResponse)
        assert answer.status == 200


def targets_of(base_url: str, before: dict[str, Target] | None = None) -> list[Target]:
    keys = (make_key("k"), make_key("other"))
    routes = [make_route(name, keys=keys, base_url=base_url, quirks=ZHIPU.quirks) for name in "mn"]
    built = build_targets(make_catalog(*routes), lambda key: f"secret-{key}", provider_for)
    return [built[route.id][key.id] for route in routes for key in keys]


def test_all_models_of_a_key_share_its_console_and_keys_do_not() -> None:
    one, other, same, _ = targets_of(ZHIPU.base_url)

    assert one.consoles is not None
    assert one.consoles is same.consoles
    assert one.consoles is not other.consoles
    assert one.consoles.address(one.url, other=True).startswith("https://api.z.ai/api/paas/v4/")


def test_address_of_the_operators_own_has_no_second_console() -> None:
    assert {target.consoles for target in targets_of("https://proxy.example/v4")} == {None}
