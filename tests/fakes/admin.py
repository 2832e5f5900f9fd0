"""Calls of the admin API of a running group."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

import msgspec

TOKEN: Final = "an-admin-token-of-more-than-32-characters"
ENVIRON: Final = {"GW_ADMIN_TOKEN": TOKEN}


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]


def call(admin_url: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Call the admin API; a name such as `if_match` is the header `if-match`."""
    request = urllib.request.Request(  # noqa: S310
        f"{admin_url}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "authorization": f"Bearer {TOKEN}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return Answer(answer.status, json.loads(answer.read()), dict(answer.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, json.loads(error.read()), dict(error.headers))
