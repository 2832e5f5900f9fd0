"""A provider with two consoles, whose keys look alike: a key is valid at one of them only.

Which one is found out by asking, and kept in memory: a 401 has the other one asked before anybody
hears of it. Nothing is charged for a 401, and only the good console ever sees a second call.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.client import DispatchLate, UpstreamCall
from cluster_gw.upstream.response import UpstreamResponse

REFUSED: Final = 401


class Consoles:
    """The consoles of one key.

    Args:
        first: base URL of the one that is asked at first, as addresses of its calls begin.
        second: of the other.
    """

    def __init__(self, first: str, second: str) -> None:
        self._first, self._second = first, second
        self._is_second = False

    def address(self, url: str, *, other: bool = False) -> str:
        """The address of a call at the console that is believed in, or at the other one.

        Args:
            url: at the first console.
            other: at the other one.
        """
        if self._is_second == other:
            return url
        return self._second + url.removeprefix(self._first)

    def turn(self) -> None:
        """Believe in the other one from now on."""
        self._is_second = not self._is_second


Sent = UpstreamResponse | DispatchLate | Fault
Post = Callable[[UpstreamCall], Awaitable[Sent]]


async def post_at(consoles: Consoles, post: Post, call: UpstreamCall) -> Sent:
    """Send a call as `post` does; one that is refused is sent to the other console."""
    believed = consoles.address(call.url)
    other = consoles.address(call.url, other=True)
    first = await post(msgspec.structs.replace(call, url=believed))
    if not isinstance(first, UpstreamResponse) or first.status != REFUSED:
        return first
    try:
        again = msgspec.structs.replace(call, url=other, dispatch_before_s=None)
        second = await post(again)
    except BaseException:
        first.close()
        raise
    if isinstance(second, UpstreamResponse):
        if second.status != REFUSED:
            first.close()
            consoles.turn()
            return second
        second.close()
    return first
