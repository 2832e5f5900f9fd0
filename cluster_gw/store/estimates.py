"""What all workers have learned about estimates (`lua/client/learn`); never asked during a request.

A call whose outcome is unknown is not repeated: its lesson may be lost, but never counts twice.
"""

from collections.abc import Callable, Mapping
from typing import Final

from cluster_gw.core.limits.estimate import Learned, Side
from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ClientId, RouteId

ROUTES_AT_ONCE: Final = 50


class Estimates:
    """Adds lessons to what is known and tells it.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        server_now_ms: the time the script works with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._script = scripts["client/learn"]
        self._keys = keys
        self._server_now_ms = server_now_ms

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
        reply = await self._client.run(
            self._script,
            [self._keys.learned(client, route) for route in routes],
            [*(_text(lessons[route]) for route in routes), self._server_now_ms()],
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
