"""What all workers have learned about estimates (`lua/client/learn`); never asked during a request.

A call whose outcome is unknown is not repeated: its lesson may be lost, but never counts twice.
"""

from collections.abc import Mapping
from typing import Final

from cluster_gw.core.limits.estimate import Learned, Side
from cluster_gw.store.caller import ScriptCaller
from cluster_gw.units import ClientId, RouteId

ROUTES_AT_ONCE: Final = 50


class Estimates(ScriptCaller):
    """Adds lessons to what is known and tells it."""

    async def learn(
        self, client: ClientId, lessons: Mapping[RouteId, Learned]
    ) -> dict[RouteId, Learned]:
        """Add lessons of one client and tell what is known then; an empty lesson only asks.

        Args:
            client: whose requests they were.
            lessons: by route, at most `ROUTES_AT_ONCE`.

        Raises:
            StoreLostError: whether they were added is unknown.
        """
        routes = list(lessons)
        reply = await self._call(
            "client/learn",
            [self._keys.learned(client, route) for route in routes],
            *(_text(lessons[route]) for route in routes),
        )
        known = (_read(bytes(text).decode()) for text in reply[2:])
        return dict(zip(routes, known, strict=True))


def _text(lesson: Learned) -> str:
    numbers = (lesson.requests, *_numbers(lesson.input), *_numbers(lesson.output))
    return " ".join(f"{number:.3f}" for number in numbers)


def _numbers(side: Side) -> tuple[float, float, float]:
    return side.guessed, side.used, side.squares


def _read(text: str) -> Learned:
    requests, *sums = map(float, text.split())
    return Learned(requests=requests, input=Side(*sums[:3]), output=Side(*sums[3:]))
