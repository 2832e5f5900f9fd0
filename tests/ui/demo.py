"""A pool in trouble, for pictures and tests: something rests, is open, used up, pinned, stored."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until
from tests.ui.pool import failing

MODELS: Final = (
    {"provider": "groq", "model": "llama-3.3-70b", "intelligence_rank": 4, "speed_rank": 1},
    {"provider": "google", "model": "gemini-2.5-flash", "intelligence_rank": 2, "speed_rank": 3},
    {"provider": "mistral", "model": "mistral-small", "intelligence_rank": 6, "speed_rank": 4},
    {"provider": "openrouter", "model": "qwen3-coder", "intelligence_rank": 3, "speed_rank": 6},
)
KEYS: Final = (
    {"id": "groq-team", "provider": "groq", "secret": "s", "limits": {"rpm": 30, "rpd": 1000}},
    {"id": "groq-spare", "provider": "groq", "secret": "s", "limits": {"rpm": 30}},
    {"id": "google-a", "provider": "google", "secret": "s", "limits": {"rpm": 4, "tpd": 250_000}},
    {"id": "mistral-a", "provider": "mistral", "secret": "s", "limits": {"rpm": 60}},
    {"id": "openrouter-a", "provider": "openrouter", "secret": "s", "limits": {"rpd": 50}},
)
GROQ: Final = "groq/llama-3.3-70b"
APP_KEY: Final = "gw-the-key-of-the-app"  # of a pool that ends with the test
CLIENTS: Final = (
    {
        "id": "web-app",
        "key_sha256": sha256(APP_KEY.encode()).hexdigest(),
        "limits": {"rpm": 600, "concurrency": 20, "monthly_tokens": 2_000_000},
        "detail": True,
    },
    {
        "id": "reports",
        "key_sha256": sha256(b"gw-another").hexdigest(),
        "limits": {"monthly_usd": 25, "key_share": 0.5},
        "combos": ["batch"],
    },
)
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@contextmanager
def running_demo(provider: SimulatedProvider, *, workers: int = 1) -> Iterator[GatewayGroup]:
    """Start it, and have it get into trouble."""
    # A local provider states no quota, so it is not believed; this spelling does not look local.
    far = {"dialect": "openai", "base_url": provider.base_url.replace("127.0.0.1", "127.1")}
    routes = [f"{one['provider']}/{one['model']}" for one in MODELS]
    config = {
        "providers": {str(one["provider"]): far for one in MODELS},
        "keys": list(KEYS),
        "models": list(MODELS),
        "combos": [
            {"id": "auto", "members": routes},
            {"id": "coding", "strategy": "smartest", "members": routes[1:]},
            {"id": "batch", "family": "classic", "strategy": "round-robin", "members": routes[:3]},
        ],
        "auth": {"mode": "keys"},
        "clients": list(CLIENTS),
        "cache": {"enabled": True},
        "telemetry": {"request_records": {"per_s": 1000, "notable_per_s": 1000}},
    }
    with GatewayGroup(config, workers=workers, environ=ENVIRON) as running:
        until(lambda: has_reported(running, workers))
        get_into_trouble(running)
        yield running
        running.stop()  # its Valkey has written all, and the folder can be removed


def has_reported(group: GatewayGroup, workers: int) -> bool:
    """Whether so many workers have said what they are, by the snapshot that they rank by."""
    items = call(group.admin_url, "GET", "/api/workers").body["items"]
    states = [one["state"] for one in items if one["state"]]
    return len(states) == workers and all(one["snapshot_version"] for one in states)


def get_into_trouble(group: GatewayGroup) -> None:
    """Have a key rest, a breaker open, a limit full, a session stay, an answer stored."""
    for turn in range(4):
        send(group, "google/gemini-2.5-flash", f"question {turn}")
    rest_groq(group)
    for _ in range(4):
        send(group, "mistral/mistral-small", failing(500))
    for turn in range(3):
        send(group, "auto", f"hello {turn}", {"x-gw-session-id": f"session-{turn}"})
    for _ in range(3):
        send(group, "auto", "the same", temperature=0)
    send(group, "coding", failing(500))


def rest_groq(group: GatewayGroup) -> None:
    """Have both keys of groq rest for 25 minutes."""
    until(lambda: send(group, GROQ, failing(429, retry_after=1500)) == 429 and is_resting(group))


def is_resting(group: GatewayGroup) -> bool:
    """Whether they do."""
    rows = call(group.admin_url, "GET", "/api/fallback/penalty-inspector").body["rows"]
    resting = {one["key"] for row in rows for one in row["cooldowns"]}
    return {"groq-team", "groq-spare"} <= resting


def send(
    group: GatewayGroup,
    model: str,
    text: str,
    headers: Mapping[str, str] = NO_HEADERS,
    **more: Any,
) -> int:
    """Send a request; its status."""
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    request = urllib.request.Request(  # noqa: S310
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "content-type": "application/json",
            "authorization": f"Bearer {APP_KEY}",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        return int(fault.code)
