"""Each line of the page on operating shows what it says of a client, a key and a failure."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import pytest

from tests.cluster.pages import lines_of, run
from tests.cluster.pools import chat
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

KEY: Final = "sk-gw-app"
MODEL: Final = "llama-3.3-70b-versatile"
FAILS: Final = '[[sim {"id": "once", "fault": {"kind": "status", "code": 500}, "times": 1}]]'
MINUTE: Final = slice(3, 5)


@pytest.fixture
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    """The names of the page, at a simulated provider."""
    simulated = {"dialect": "openai", "base_url": provider.base_url}
    config = {
        "auth": {"mode": "keys"},
        "providers": {"groq": simulated, "openrouter": {**simulated, "caps": {"rpd": 1000}}},
        "keys": [
            {"id": "groq-a", "provider": "groq", "secret": "upstream-secret"},
            {"id": "or-a", "provider": "openrouter", "secret": "upstream-secret"},
        ],
        "models": [
            {"provider": "groq", "model": MODEL, "limits": {"rpm": 30}},
            {"provider": "openrouter", "model": "free"},
        ],
        "combos": [{"id": "auto", "members": "all"}],
        "clients": [
            {
                "id": "app-a",
                "key_sha256": sha256(KEY.encode()).hexdigest(),
                "limits": {"rpm": 60, "monthly_tokens": 1_000_000, "key_share": 0.5},
            }
        ],
    }
    with GatewayGroup(config, workers=1) as running:
        yield running


def ask(group: GatewayGroup, model: str, text: str = "hello") -> int:
    """Send a chat; its status."""
    request = urllib.request.Request(  # noqa: S310
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(chat(text, model=model)).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_each_line_of_the_page_shows_what_it_says(group: GatewayGroup) -> None:
    health, client, share, caps, learned = lines_of("docs/operating.md")
    well = run(group, health)
    assert [ask(group, f"groq/{MODEL}"), ask(group, "openrouter/free")] == [200, 200]
    until(lambda: run(group, learned) != "\n", 10.0)

    used = run(group, client).split()
    shared = run(group, share).split()
    capped = run(group, caps).split()

    assert well == "\n"
    assert used[MINUTE][0] == "2"
    assert used[5][:2] == "20"
    assert used[7] == used[MINUTE][1]
    assert shared[MINUTE][0] == "1"
    assert (len(capped[0]), capped[2]) == (8, "1")
    assert "requests" in run(group, learned).split()

    assert ask(group, f"groq/{MODEL}", FAILS) == 502
    until(lambda: "fails" in run(group, health).split(), 10.0)
