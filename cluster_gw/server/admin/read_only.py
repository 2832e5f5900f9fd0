"""What is sent back as it was shown is no change, whether it could be changed or not."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid
from cluster_gw.server.admin.writing import snake_case
from cluster_gw.settings.patches import WHOLE
from cluster_gw.wire.json_codec import read_any, write

REPLACED: Final = WHOLE | {"custom_weights"}
"""Fields of which a change has all or nothing."""


class ReadOnly(msgspec.Struct, frozen=True, kw_only=True):
    """What answers about a noun show beside what can be changed.

    Attributes:
        fixed: only the file sets it; another value is an error.
        moving: what others do changes it; another value may be an older one, and is a warning.
        measured: changes by itself; whatever is sent of it is passed over.
        deciding: other fields have other defaults with another value of these.
    """

    fixed: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset({"warnings"})
    deciding: frozenset[str] = frozenset()


def changed_only(
    sent: Mapping[str, Any], shown: Mapping[str, Any], read_only: ReadOnly
) -> dict[str, Any]:
    """Give what somebody changed of a thing that was read and is sent back whole.

    Whole is what names every field that is shown, those too that cannot be changed. Who names less
    means each field, also one that has this value already: the files of other groups may differ.

    Args:
        sent: the change, its names as snake_case.
        shown: what answers show now.
        read_only: what of it cannot be set.
    """
    before = as_sent(shown)
    if not before.keys() - read_only.measured <= sent.keys() or any(
        not is_same(sent[name], before[name]) for name in read_only.deciding
    ):
        return dict(sent)
    return difference(sent, before)


def difference(sent: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Give those fields that have another value than before, of sections their fields."""
    found: dict[str, Any] = {}
    for name, value in sent.items():
        old = before.get(name)
        if name in before and is_same(value, old):
            continue
        if isinstance(value, Mapping) and isinstance(old, Mapping) and name not in REPLACED:
            inner = difference(value, old)
            if not inner:
                continue
            found[name] = inner
        else:
            found[name] = value
    return found


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of JSON say the same: 1 and 1.0 do, 1 and true do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


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
