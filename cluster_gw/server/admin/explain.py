"""`/api/explain`: how a request would be ranked now, and what would refuse it."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import JSON, invalid, not_json
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.explaining import Asked, Scene, explain_request

QUESTION: Final = msgspec.json.Decoder(Asked)


def explain_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/explain`."""
    return [Route("/api/explain", Explain(desk).answer, methods=["POST"])]


class Explain:
    """Answers without a trace in Redis."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def answer(self, request: Request) -> Response:
        """Tell how the request in the body would be ranked."""
        asked = read_question(await request.body())
        told = await explain_request(asked, scene_of(self._desk))
        return Response(msgspec.json.encode(told), media_type=JSON)


def scene_of(desk: Desk) -> Scene:
    """Give what this worker knows now."""
    deps, current = desk.deps, desk.deps.current
    return Scene(
        serving=current.serving,
        view=current.view,
        foresight=desk.foresight,
        clock=deps.clock,
        chance=deps.chance,
        turns=current.turns,
    )


def read_question(body: bytes) -> Asked:
    """Read what is asked.

    Raises:
        ClientFault: it is no JSON, or not of this form.
    """
    try:
        return QUESTION.decode(body)
    except msgspec.ValidationError as fault:
        raise ClientFault(invalid(f"the question cannot be used: {fault}")) from None
    except msgspec.DecodeError as fault:
        raise ClientFault(not_json(str(fault))) from None
    except RecursionError:
        raise ClientFault(not_json("JSON is nested too deeply")) from None
