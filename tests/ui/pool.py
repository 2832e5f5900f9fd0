"""The gateway whose dashboard is looked at: three routes that serve, one that can be exhausted."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

HOSTILE: Final = "<img/src=x/onerror=alert(1)>"
ROUTES: Final = ["a/m0", f"a/{HOSTILE}", "b/m2"]
CHAT: Final = {"model": "auto", "messages": [{"role": "user", "content": "hello"}]}


@contextmanager
def running_group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    """Start it."""
    upstream = {"dialect": "openai", "base_url": provider.base_url}
    # A local provider states no quota, so it is not believed; this spelling does not look local.
    far = {**upstream, "base_url": provider.base_url.replace("127.0.0.1", "127.1")}
    config = {
        "providers": {"a": upstream, "b": upstream, "c": far},
        "keys": [
            {"id": "a1", "provider": "a", "secret": "s"},
            {"id": "a2", "provider": "a", "secret": "s", "enabled": False},
            {"id": "b1", "provider": "b", "secret": "s", "limits": {"rpm": 50}},
            {"id": "c1", "provider": "c", "secret": "s", "caps": {"monthly_tokens": 80_000}},
        ],
        "models": [
            {"provider": "a", "model": "m0", "tools": False, "limits": {"rpm": 40, "tpd": 90_000}},
            {"provider": "a", "model": HOSTILE, "name": "<b>bold</b>", "tools": True},
            {"provider": "b", "model": "m2", "tools": True},
            {"provider": "c", "model": "m3"},
        ],
        "combos": [
            # Tests come in any order: each that changes something has a combo of its own.
            *({"id": name, "members": ROUTES} for name in ("auto", "changing")),
            *(
                {"id": name, "family": "classic", "strategy": "priority", "members": ROUTES}
                for name in ("ordered", "switched", "sorted")
            ),
            {"id": "limited", "members": ["c/m3"]},
            {"id": "pinned", "strategy": "priority", "members": [f"a/{HOSTILE}", "b/m2"]},
        ],
        "telemetry": {"request_records": {"per_s": 1000, "notable_per_s": 1000}},
    }
    with GatewayGroup(config, workers=1, environ=ENVIRON) as running:
        yield running
        running.stop()  # its Valkey has written all, and the folder can be removed


def serve(group: GatewayGroup, text: str = "hello", **fields: Any) -> str:
    """Send a request; its id, once its record is there."""
    body = {**CHAT, "messages": [{"role": "user", "content": text}], **fields}
    request = urllib.request.Request(  # noqa: S310
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            name = answer.headers["X-Gw-Request-Id"]
    except urllib.error.HTTPError as fault:
        name = fault.headers["X-Gw-Request-Id"]
    until(lambda: call(group.admin_url, "GET", f"/api/requests/{name}").status == 200)
    return str(name)


def failing(code: int, **more: Any) -> str:
    """A text whose first call fails."""
    fault = {"kind": "status", "code": code, **more}
    return f"[[sim {json.dumps({'id': uuid4().hex, 'fault': fault, 'times': 1})}]]"


def fall_back(group: GatewayGroup) -> str:
    """Send a request whose first call fails; its id."""
    return serve(group, failing(500))
