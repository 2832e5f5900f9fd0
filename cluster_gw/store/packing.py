"""Script calls as Redis' protocol wants them, put together from parts that were packed before.

A call is mostly the same for a target: its script, its keys and its limits. These parts are packed
once; a call then only packs what is its own and joins the bytes, a quarter of packing it whole.
"""

from collections.abc import Sequence
from typing import Final

import hiredis
import msgspec

from cluster_gw.store.scripts import Script

ZERO: Final = b"$1\r\n0\r\n"


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A call of one script with given keys, up to its arguments.

    Attributes:
        route: what tells which server of a cluster has the keys.
        head: the packed beginning; as many packed arguments as it was made for must follow.
        tail: packed arguments that stand before the last one, the time.
    """

    script: Script
    route: tuple[str | int, ...]
    head: bytes
    tail: bytes = b""


class Many(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a script that takes any number of calls of another at once.

    Attributes:
        words: how many words it has with none of them.
        each: how many each adds.
        body: the packed beginning, but for the number of words.
    """

    words: int
    each: int
    body: bytes

    def head(self, calls: int) -> bytes:
        """Give the packed beginning of a call for so many."""
        return b"*%d\r\n%b" % (self.words + self.each * calls, self.body)


def many_of(script: Script, keys: Sequence[str], *, common: int, each: int) -> Many:
    """Pack the beginning of a call that takes `common` arguments and `each` for each of them."""
    route: tuple[str | int, ...] = ("EVALSHA", script.sha, len(keys), *keys)
    return Many(words=len(route) + common, each=each, body=bulk(*route))


def template_of(
    script: Script, keys: Sequence[str], arguments: int, tail: Sequence[int] = ()
) -> Template:
    """Pack the beginning of a call that takes `arguments` arguments and those of its tail."""
    route: tuple[str | int, ...] = ("EVALSHA", script.sha, len(keys), *keys)
    return Template(
        script=script,
        route=route,
        head=b"*%d\r\n%b" % (len(route) + arguments + len(tail), bulk(*route)),
        tail=bulk(*tail),
    )


def four(a: str, b: str, c: str, d: str) -> bytes:
    """Pack four arguments of ASCII, as `bulk` does at twice the price.

    Raises:
        UnicodeEncodeError: one is not ASCII, so that its length in bytes is another.
    """
    return (
        f"${len(a)}\r\n{a}\r\n${len(b)}\r\n{b}\r\n${len(c)}\r\n{c}\r\n${len(d)}\r\n{d}\r\n"
    ).encode("ascii")


def seven(a: str, b: str, c: str, d: str, e: str, f: str, g: str) -> bytes:
    """Pack seven arguments of ASCII; see `four`."""
    return (
        f"${len(a)}\r\n{a}\r\n${len(b)}\r\n{b}\r\n${len(c)}\r\n{c}\r\n${len(d)}\r\n{d}\r\n"
        f"${len(e)}\r\n{e}\r\n${len(f)}\r\n{f}\r\n${len(g)}\r\n{g}\r\n"
    ).encode("ascii")


def bulk(*values: str | int | bytes) -> bytes:
    """Pack arguments; at most nine at once cost least."""
    packed: bytes = hiredis.pack_command(values)  # type: ignore[arg-type] # its stub: 1-tuples
    return packed[packed.index(b"\n") + 1 :]  # without the number of words
