"""Replies of Redis as they come, and what an error says: a bug of ours, not now, or not here."""

from collections.abc import Callable
from typing import Any, Final

import hiredis
import msgspec
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AskError, MovedError, ResponseError

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store import unreadable

UNAVAILABLE: Final = frozenset(
    {
        *("READONLY", "LOADING", "BUSY", "MISCONF", "OOM", "NOREPLICAS", "CLUSTERDOWN"),
        *("MASTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOAUTH", "NOPERM", "WRONGPASS", "UNKILLABLE"),
    }
)
"""Error codes that mean "not now" or "not here"; every other one is a bug of ours."""
NOTHING: Final = object
"""The type of what redis-py's parser answers when it needs more bytes; no reply is of it."""


class ScriptMissingError(StoreLostError):
    """The server does not know the script; nothing was executed."""


class RefusedError(StoreLostError):
    """Redis answered that it does not do this now, or not here."""


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """Another cluster node has the slot; the call was not executed.

    Attributes:
        host: empty when it is the host of the node that answered.
        is_ask: only for this call, while the slot is on its way; else the slot has moved for good.
    """

    slot: int
    host: str
    port: int
    is_ask: bool


def code_of(fault: ResponseError) -> str:
    """The first word of an error reply."""
    return str(getattr(fault, "status_code", None) or str(fault).split(" ", 1)[0])


def fault_of_reply(fault: ResponseError, packed: bytes) -> StoreLostError | ScriptContractError:
    """Tell what an error reply to `packed` means; its text is not kept, it may repeat arguments."""
    code = code_of(fault)
    if unreadable.means_record(code, str(fault)):
        return unreadable.fault_of(str(fault), packed)
    if code == "NOSCRIPT":
        return ScriptMissingError("the server does not know the script")
    if code in UNAVAILABLE:
        return RefusedError(f"redis answered {code}")
    if code.startswith("GW_"):  # our own text: it names an argument's index, never its value
        return ScriptContractError(str(fault).split(" script: ", 1)[0])
    return ScriptContractError(f"redis answered {code}")


def redirect_of(fault: AskError) -> Redirect:
    """Tell which node has the slot of a call that was not executed."""
    return Redirect(
        slot=fault.slot_id,
        host=fault.host,
        port=fault.port,
        is_ask=not isinstance(fault, MovedError),
    )


def parsed_replies(connection: AbstractConnection) -> Callable[[], Any]:
    """Give what hands out replies that came together with the one just read, else a bare `object`.

    redis-py takes 2 us to hand out a reply that it holds already, more than all that is done with
    it here. Where its parser is another one than expected, every reply is read the long way.
    """
    reader = getattr(getattr(connection, "_parser", None), "_reader", None)
    if isinstance(reader, hiredis.Reader):
        return reader.gets
    return object
