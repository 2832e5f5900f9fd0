"""The files of the dashboard: to whom they are sent, how they are guarded, and what is in them."""

import re
from pathlib import Path
from typing import Final

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import Route

from cluster_gw.server.ui.hosts import may_show
from cluster_gw.server.ui.shell import FOLDER, GUARDS, KINDS, Dashboard, read_files

KNOWN: Final = ("Gateway.Example.org", "ops.svc.")
LINES: Final = 400
TEXTS: Final = tuple(sorted(path for path in FOLDER.rglob("*") if path.suffix in KINDS))


async def ask(
    path: str, host: str = "127.0.0.1:8081", method: str = "GET", **headers: str
) -> httpx.Response:
    dashboard = Dashboard(KNOWN)
    app = Starlette(routes=[Route(one, dashboard) for one in ("/ui", "/ui/{path:path}")])
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://ops"
    ) as client:
        return await client.request(method, path, headers={**named, "host": host})


async def test_front_page_is_html_and_names_every_other_file() -> None:
    front = await ask("/ui")

    assert (front.status_code, front.headers["content-type"]) == (200, KINDS[".html"])
    links = re.findall(r'(?:src|href)="([^"#]+)"', front.text)
    others = [path.relative_to(FOLDER).as_posix() for path in TEXTS if path.suffix != ".html"]
    assert sorted(links) == sorted(f"ui/{name}" for name in others)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
async def test_each_file_is_sent_with_its_kind_and_all_guards(path: Path) -> None:
    sent = read_files(FOLDER)[path.relative_to(FOLDER).as_posix()]

    answer = await ask(f"/ui/{path.relative_to(FOLDER).as_posix()}")

    assert (answer.status_code, answer.content) == (200, sent.body)
    assert answer.headers["content-type"] == KINDS[path.suffix]
    assert {name: answer.headers[name] for name in GUARDS} == dict(GUARDS)
    assert "set-cookie" not in answer.headers


async def test_policy_lets_in_nothing_but_what_comes_from_here() -> None:
    policy = (await ask("/ui")).headers["content-security-policy"]

    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in policy
    assert rules["require-trusted-types-for"] == "'script'"


@pytest.mark.parametrize(
    "path",
    [
        *("/ui/nothing.js", "/ui/__init__.py", "/ui/static/app.js", "/ui//app.js"),
        *("/ui/../shell.py", "/ui/%2e%2e/shell.py", "/ui/pages", "/ui/app.js/", "/ui/app.js%00"),
    ],
)
async def test_nothing_else_is_found(path: str) -> None:
    answer = await ask(path)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/plain")


async def test_slash_leads_to_the_front_page_below_any_prefix() -> None:
    answer = await ask("/ui/")

    assert (answer.status_code, answer.headers["location"]) == (308, "../ui")


async def test_file_that_is_known_is_not_sent_again() -> None:
    first = await ask("/ui/app.js")

    again = await ask("/ui/app.js", if_none_match=first.headers["etag"])

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == GUARDS["content-security-policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_it_is_only_read(method: str) -> None:
    answer = await ask("/ui", method=method)

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_head_tells_what_get_would() -> None:
    head, get = await ask("/ui", method="HEAD"), await ask("/ui")

    assert (head.status_code, head.headers["etag"]) == (200, get.headers["etag"])


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8081", "10.1.2.3:80", "[::1]:8081", "[fd00::1]", "LOCALHOST:1"),
        *("localhost.", "gw.localhost:8081", "gateway.example.org:8081", "GATEWAY.example.org."),
        "ops.svc",
    ],
)
async def test_known_names_and_addresses_are_shown_the_dashboard(host: str) -> None:
    assert (await ask("/ui", host)).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8081", "localhost.evil.example", "notlocalhost"),
        *("127.0.0.1.evil.example", "127.0.0.1@evil.example", "evil.example#localhost"),
        *("gateway.example.org.evil.example", "gateway.example.org:x", "0x7f000001", "2130706433"),
        *("[evil.example]", "[::1", "::1]:80", "127.0.0.1:8081:8081", "ops.svc/", "127.1"),
    ],
)
@pytest.mark.parametrize("path", ["/ui", "/ui/", "/ui/app.js", "/ui/nothing"])
async def test_name_that_anybody_could_point_here_is_refused(path: str, host: str) -> None:
    answer = await ask(path, host)

    assert answer.status_code == 403
    assert "server.ui_hosts" in answer.text
    assert host == "" or host not in answer.text


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_request_names_one_host(hosts: list[str]) -> None:
    headers = Headers(raw=[(b"host", host.encode()) for host in hosts])

    assert Dashboard(KNOWN).answer("GET", "/ui", headers).status_code == 403


def test_no_name_is_known_unless_it_is_set() -> None:
    assert not may_show("gateway.example.org", frozenset())
    assert may_show("gateway.example.org", frozenset({"gateway.example.org"}))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_is_taken_from_elsewhere_or_written_as_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    foreign = re.findall(r"(?:https?:)?//[a-z][^\s\"'`]*\.[a-z]+[^\s\"'`]*", text)
    assert [one for one in foreign if "www.w3.org/2000/svg" not in one] == []
    writes = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|eval\("
        r"|createContextualFragment|new Function|srcdoc|javascript:|document\.cookie|localStorage"
    )
    assert re.findall(writes, text) == []
    if path.suffix == ".html":
        assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=", text) == []
    assert len(text.splitlines()) <= LINES
