"""Which worker is asked, and what becomes of a call nobody answered."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from cluster_gw.supervisor.admin_door import AdminDoor
from cluster_gw.supervisor.admin_relay import MAX_BODY_BYTES, AdminRelay
from cluster_gw.supervisor.control import WorkerControl

TOKEN = "t" * 32


class Asked(WorkerControl):
    """A worker that answers as told, and remembers what it was asked."""

    def __init__(self, outcome: httpx.Response | Exception) -> None:
        super().__init__("/nowhere")
        self.outcome = outcome
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []

    async def pass_on(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        self.calls.append((method, target, dict(headers), body))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def ask(
    method: str, path: str, workers: list[WorkerControl], body: bytes = b"", **headers: str
) -> httpx.Response:
    door = AdminDoor(TOKEN, lambda: 0.0, AdminRelay(lambda: workers))
    app = Starlette(routes=[Route("/api/{path:path}", door)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
        sent = {"authorization": f"Bearer {TOKEN}", **headers}
        return await client.request(method, path, content=body, headers=sent)


def well() -> Asked:
    return Asked(httpx.Response(207, content=b'{"x":1}', headers={"etag": '"4"', "x-own": "no"}))


async def test_call_reaches_the_first_worker_as_it_is_but_without_the_token() -> None:
    first, second = well(), well()

    answer = await ask("PUT", "/api/a%2Fb?combo=c", [first, second], b"{}", **{"if-match": '"3"'})

    assert (answer.status_code, answer.content) == (207, b'{"x":1}')
    assert answer.headers["etag"] == '"4"'
    assert "x-own" not in answer.headers
    said = {"if-match": '"3"', "x-gw-group": "", "x-gw-actor": "admin", "x-gw-peer": "127.0.0.1"}
    assert first.calls == [("PUT", "/api/a%2Fb?combo=c", said, b"{}")]
    assert second.calls == []


async def test_worker_that_cannot_be_reached_is_passed_over() -> None:
    gone, other = Asked(httpx.ConnectError("gone")), well()

    assert (await ask("PUT", "/api/x", [gone, other])).status_code == 207


@pytest.mark.parametrize("fault", [httpx.ReadError("cut"), TimeoutError()])
async def test_change_is_not_repeated_at_another_worker(fault: Exception) -> None:
    silent, other = Asked(fault), well()

    answer = await ask("PUT", "/api/x", [silent, other])

    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "worker_silent")
    assert other.calls == []


async def test_question_is_repeated_at_another_worker() -> None:
    silent, other = Asked(httpx.ReadError("cut")), well()

    assert (await ask("GET", "/api/x", [silent, other])).status_code == 207


async def test_body_above_the_bound_reaches_nobody() -> None:
    worker = well()

    answer = await ask("PUT", "/api/x", [worker], b"x" * (MAX_BODY_BYTES + 1))

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert worker.calls == []


async def test_blanks_around_a_header_are_not_passed_on() -> None:
    worker = well()

    await ask("PUT", "/api/x", [worker], b"{}", **{"if-match": ' "3"\t', "x-request-id": " a "})

    sent = worker.calls[0][2]
    assert (sent["if-match"], sent["x-request-id"]) == ('"3"', "a")


async def test_who_calls_is_said_by_the_parent_and_never_by_the_caller() -> None:
    worker = well()
    told = {"x-gw-actor": "root", "x-gw-peer": "10.0.0.1", "x-gw-group": "w9"}

    await ask("PUT", "/api/x", [worker], b"{}", **told)

    assert worker.calls[0][2] == {
        "x-gw-group": "",
        "x-gw-actor": "admin",
        "x-gw-peer": "127.0.0.1",
    }


@pytest.mark.parametrize("name", ["if-match", "x-request-id", "content-type"])
@pytest.mark.parametrize("value", ["\u00fc", "a\x7f", "a\x00b"])
async def test_header_that_is_no_ascii_is_an_error_that_names_it(name: str, value: str) -> None:
    door = AdminDoor(TOKEN, lambda: 0.0, AdminRelay(lambda: [well()]))
    headers = [
        (b"authorization", f"Bearer {TOKEN}".encode()),
        (name.encode(), value.encode("latin-1")),
    ]
    transport = httpx.ASGITransport(Starlette(routes=[Route("/api/{path:path}", door)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
        answer = await client.get("/api/x", headers=headers)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_header", name)


@pytest.mark.parametrize(
    "fault", [httpx.LocalProtocolError("no"), httpx.InvalidURL("no"), UnicodeError()]
)
async def test_call_that_is_no_http_is_an_error_and_nobodys_silence(fault: Exception) -> None:
    answer = await ask("PUT", "/api/x", [Asked(fault), well()])

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
