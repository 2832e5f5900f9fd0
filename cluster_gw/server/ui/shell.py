"""Serves the files of the dashboard; who has no token sees them, too, and nothing else."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from cluster_gw.server.ui.hosts import may_show

FOLDER: Final = Path(__file__).parent / "static"
ROOT: Final = "/ui"
FRONT: Final = "index.html"
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Texts that would become HTML or a script are refused by the browser itself.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
GUARDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "cache-control": "no-cache",
    }
)
STRANGE_HOST: Final = (
    "The dashboard is not shown under this host name. Open it by IP address or as localhost, "
    "or add the name to server.ui_hosts of the configuration.\n"
)
READING: Final = frozenset({"GET", "HEAD"})


class StaticFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is sent."""

    body: bytes
    kind: str
    tag: str


class Dashboard:
    """Answers everything under `/ui`: a few files, read once.

    Args:
        hosts: names beside IP addresses and `localhost` under which it is shown.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().removesuffix(".") for host in hosts)
        self._files = read_files(FOLDER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = self.answer(scope["method"], scope["path"], Headers(scope=scope))
        await response(scope, receive, send)

    def answer(self, method: str, path: str, headers: Headers) -> Response:
        """Give the answer to a request.

        Args:
            method: of it.
            path: begins with `/ui`.
            headers: of it.
        """
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not may_show(hosts[0], self._hosts):
            return told(403, STRANGE_HOST)
        if method not in READING:
            return told(405, "The dashboard is only read.\n", allow="GET, HEAD")
        if path == f"{ROOT}/":  # links of the front page are seen from /ui
            return RedirectResponse("../ui", 308, headers=dict(GUARDS))
        found = self._files.get(path.removeprefix(ROOT).removeprefix("/") or FRONT)
        if found is None:
            return told(404, "The dashboard has no such file.\n")
        named = {**GUARDS, "etag": found.tag, "content-type": found.kind}
        if found.tag in headers.get("if-none-match", ""):
            return Response(status_code=304, headers=named)
        return Response(found.body, headers=named)


def read_files(folder: Path) -> dict[str, StaticFile]:
    """Read all files below a folder that browsers are sent, by their path in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in KINDS:
            body = path.read_bytes()
            tag = f'"{sha256(body).hexdigest()[:32]}"'
            name = path.relative_to(folder).as_posix()
            found[name] = StaticFile(body=body, kind=KINDS[path.suffix], tag=tag)
    return found


def told(status: int, text: str, **more: str) -> Response:
    """Answer with a sentence."""
    kind = {"content-type": "text/plain; charset=utf-8"}
    return Response(text, status, {**GUARDS, **kind, **more})
