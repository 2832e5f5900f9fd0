"""Fields of answers that a change cannot set: sent back as shown they are passed over."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid
from cluster_gw.server.admin.writing import snake_case
from cluster_gw.wire.json_codec import read_any, write


class ReadOnly(msgspec.Struct, frozen=True, kw_only=True):
    """What answers about a noun show beside what can be changed.

    Attributes:
        fixed: only the file sets it; another value is an error.
        moving: what others do changes it; another value may be an older one, and is a warning.
        measured: changes by itself; whatever is sent of it is passed over.
    """

    fixed: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset({"warnings"})


def split_read_only(
    sent: Mapping[str, Any], shown: Mapping[str, Any], read_only: ReadOnly
) -> tuple[dict[str, Any], list[str]]:
    """Give the fields of a change without those that it cannot set, and warnings of these.

    Args:
        sent: the change, its names as snake_case.
        shown: what answers show now.
        read_only: what it cannot set.

    Raises:
        ClientFault: it sets a fixed field to another value than it has.
    """
    fields: dict[str, Any] = {}
    warnings: list[str] = []
    for name, value in sent.items():
        if name in read_only.measured:
            continue
        if name not in read_only.fixed | read_only.moving:
            fields[name] = value
        elif value != as_sent(shown[name]):
            if name in read_only.fixed:
                message = f"{name} cannot be changed here; send it as it is shown, or leave it out"
                raise ClientFault(invalid(message, name))
            warnings.append(f"{name}: cannot be set here; it was passed over")
    return fields, warnings


def as_sent(value: Any) -> Any:
    """Give a value as it would be read from somebody who sends it back."""
    return snake_case(read_any(write({"value": value})))["value"]
