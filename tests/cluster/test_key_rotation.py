"""A provider's key gets another secret under load: no request fails, no count is lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.waiting import until_soon

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

OLD, NEW, LAST = "the-secret-of-before", "the-secret-of-after", "the-secret-set-at-run-time"
LABELS: Final = {OLD: "old", NEW: "new", LAST: "last"}
COUNT: Final = 200
OVER_S: Final = 4.0
LATENCY_MS: Final = 100  # some are under way with the old secret when the new one is in force


class Site(msgspec.Struct, frozen=True):
    """Two workers, a provider that takes both secrets, and the file that holds the one in use."""

    group: GatewayGroup
    provider: SimulatedProvider
    secret: Path

    def calls(self) -> dict[str, int]:
        """Calls of each secret."""
        keys = self.provider.stats()["keys"]
        return {label: keys.get(label, {"accepted": 0})["accepted"] for label in LABELS.values()}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    secret = tmp_path / "secret"
    secret.write_text(OLD)
    taken = {text: {"label": label} for text, label in LABELS.items()}
    simulated = {"keys": taken, "latency_ms": LATENCY_MS}
    with SimulatedProvider(simulated) as provider:
        config = one_model(provider.base_url, rpd=10_000)
        config["keys"][0]["secret"] = f"file:{secret}"
        environ = {**ENVIRON, "GW_MASTER_KEY": "ab" * 32}
        with GatewayGroup(config, workers=2, environ=environ) as group:
            yield Site(group=group, provider=provider, secret=secret)


async def test_new_secret_in_its_file_is_used_by_all_workers_and_nobody_notices(
    site: Site,
) -> None:
    url = f"{site.group.base_url}/v1/chat/completions"
    loading = asyncio.create_task(spread(url, chat(), count=COUNT, over_s=OVER_S))
    await until_soon(lambda: site.calls()["old"] > COUNT // 10)

    site.secret.write_text(NEW)
    await until_soon(lambda: get_json(f"{site.group.admin_url}/readyz")["file_version"] == 2)
    await until_soon(lambda: site.calls()["new"] > 0)
    outcomes: Outcomes = await loading
    before = site.calls()["old"]
    later = await spread(url, chat(), count=20, over_s=0.5)

    assert outcomes.statuses == {200: COUNT}
    assert later.statuses == {200: 20}
    assert site.calls() == {"old": before, "new": COUNT + 20 - before, "last": 0}
    assert site.secret.read_text() not in site.group.log()


async def test_new_secret_by_the_admin_api_is_used_by_all_workers_and_nobody_notices(
    site: Site,
) -> None:
    url = f"{site.group.base_url}/v1/chat/completions"
    loading = asyncio.create_task(spread(url, chat(), count=COUNT // 2, over_s=OVER_S / 2))
    await until_soon(lambda: site.calls()["old"] > COUNT // 20)

    put = ("PUT", "/api/keys/a1/secret", {"secret": LAST})
    answer = (await asyncio.to_thread(call, site.group.admin_url, *put)).body
    outcomes: Outcomes = await loading
    before = site.calls()["old"]
    later = await spread(url, chat(), count=20, over_s=0.5)

    assert (len(answer["taken_by"]), answer["waiting_for"], answer["unread_by"]) == (2, [], [])
    assert outcomes.statuses == {200: COUNT // 2}
    assert later.statuses == {200: 20}
    assert site.calls() == {"old": before, "new": 0, "last": COUNT // 2 + 20 - before}
    assert LAST not in site.group.log()
