"""What an attempt may come to, before anything of it is sent (room 8)."""

from typing import Protocol, final

import msgspec

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.providers.base import StreamDecoder
from cluster_gw.upstream.client import DispatchLate
from cluster_gw.upstream.response import Taker


class AnswerBytes(Protocol):
    """The bytes of an answer, from wherever they come; see `upstream.response.UpstreamResponse`."""

    @property
    def content_type(self) -> str:
        """The media type in lower case without parameters; "" when there is none."""

    @property
    def is_complete(self) -> bool:
        """Whether all of it is here."""

    async def read_chunk(self) -> bytes | Fault:
        """The next bytes; b"" at the clean end; a fault when it broke."""

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """The rest in one piece."""

    def take_all(self, max_bytes: int) -> bytes | None:
        """All of it, if it is here and no larger."""

    async def hand_to(self, take: Taker) -> None:
        """Hand on what comes as it comes."""

    def close(self) -> None:
        """Ends it."""


@final
class OpenStream(msgspec.Struct, kw_only=True):
    """A committed stream: what was held, and the rest still to come.

    Attributes:
        anew: frames of it may not be passed on; all are written.
    """

    response: AnswerBytes
    decoder: StreamDecoder
    held: list[StreamEvent]
    at_end: bool
    anew: bool = False


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that gave no answer.

    Attributes:
        fault: the facts.
        tally: what had been seen of a stream, for the charge; None before a good status.
        completion: a finished answer that the gate rejected.
    """

    fault: Fault
    tally: Tally | None = None
    completion: Completion | None = None


Opened = OpenStream | Completion | Broken | DispatchLate


class AttemptPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the loop decided for this attempt.

    Attributes:
        asked_at_s: loop time just before admission was asked for; dispatch must follow within 1 s.
        is_last: no other attempt would be started if this one failed.
        hedge_at_s: when the request's time budget ends the wait for a first byte, None if never.
    """

    asked_at_s: float
    is_last: bool
    hedge_at_s: float | None
