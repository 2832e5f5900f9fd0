"""`/api/usage`: requests, tokens, cost and errors by client, model, key and day."""

import asyncio
from datetime import UTC, date, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import RecordUnreadableError
from cluster_gw.server.admin.answers import told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.usage_report import (
    LISTED,
    check_size,
    document,
    read_question,
    table,
)
from cluster_gw.units import MS_PER_S

CSV: Final = "text/csv; charset=utf-8"


def usage_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/usage`."""
    return [Route("/api/usage", Usage(desk).show, methods=["GET"])]


class Usage:
    """Shows what was used in the cluster, whichever worker served it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show sums of some days."""
        today = day_at(self._desk.server_ms() or self._desk.deps.clock.wall_ms())
        question = read_question(request.query_params.multi_items(), today)
        sums = question.sums()
        unreadable = await self._desk.usage.read(question.days(), sums.add)
        check_size(sums)
        if question.is_csv:
            if unreadable:  # a table has no place to say what is missing in it
                raise RecordUnreadableError(unreadable)
            return Response(await asyncio.to_thread(table, question, sums), media_type=CSV)
        # To put a hundred thousand in order takes a while: others want the loop.
        answer = await asyncio.to_thread(
            document, question, sums, unreadable, limit=question.limit or LISTED
        )
        return told(answer, self._desk.config_version)


def day_at(now_ms: float) -> date:
    """The day in UTC of an instant."""
    return datetime.fromtimestamp(now_ms / MS_PER_S, UTC).date()
