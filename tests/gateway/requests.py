"""Requests of tests against one worker."""

import json
from typing import Any, Final

import aiohttp

NO_RECORDS: Final = {"request_records": {"per_s": 0, "notable_per_s": 0}}
"""`telemetry` of a worker whose calls to Redis are counted."""


def chat(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A request body."""
    return {"model": "auto", "messages": [{"role": "user", "content": text}], **fields}


def steer(**directive: Any) -> str:
    """A message that tells the simulated provider how to answer."""
    return f"say it [[sim {json.dumps(directive)}]]"


async def post(
    http: aiohttp.ClientSession, base_url: str, body: dict[str, Any], **headers: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    """Send a chat request and read the whole answer; `X_Gw_Detail` becomes `X-Gw-Detail`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.post(f"{base_url}/v1/chat/completions", json=body, headers=named) as response:
        return response, await response.read()
