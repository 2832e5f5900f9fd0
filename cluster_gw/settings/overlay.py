"""The overlay over a group's file: read, changed, merged, and what does not fit left out whole."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.document import MAX_DEPTH, TOO_DEEP
from cluster_gw.settings.loading import Base, Loaded, load_plain
from cluster_gw.settings.patches import (
    EPOCHS,
    PUT_OVER,
    SECTIONS,
    Patch,
    PatchError,
    Plain,
    merged,
    put_over,
)
from cluster_gw.settings.pool import Settings
from cluster_gw.wire.json_codec import nests_deeper

MAX_CHARACTERS: Final = 1024 * 1024
SETTINGS: Final = "settings"  # null removes there at every depth
OF_SECTIONS: Final = tuple(f"{SETTINGS}.{name}." for name in SECTIONS)
MAX_GONE: Final = 256  # combos that are gone, whose epochs are still known

Table = dict[str, dict[str, Plain]]
"""An overlay: by noun and id, the fields that are changed."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that does not fit, and every reason."""

    patch: Patch
    faults: tuple[str, ...]


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration with an overlay over its file.

    Attributes:
        loaded: what holds.
        kept: the patches that hold.
        dropped: those that do not.
    """

    loaded: Loaded
    kept: tuple[Patch, ...]
    dropped: tuple[Dropped, ...] = ()


def read_table(text: str) -> Table:
    """Read a stored overlay; what a newer version wrote into it is kept as it is.

    Raises:
        ConfigInvalidError: it is none.
    """
    try:
        table = msgspec.json.decode(text.encode(), type=Table)
    except (msgspec.MsgspecError, UnicodeError) as fault:
        raise ConfigInvalidError([f"overlay: {fault}"]) from None
    except RecursionError:
        raise ConfigInvalidError([f"overlay: {TOO_DEEP}"]) from None
    if nests_deeper(table, MAX_DEPTH):
        raise ConfigInvalidError([f"overlay: {TOO_DEEP}"])
    return table


def write_table(table: Table) -> str:
    """Write an overlay, the same one always with the same text.

    Raises:
        ConfigInvalidError: it is too large, or no text.
    """
    try:
        text = msgspec.json.encode(table, order="deterministic").decode()
    except UnicodeEncodeError:
        raise ConfigInvalidError(["overlay: holds half a character pair (a surrogate)"]) from None
    if len(text) > MAX_CHARACTERS:
        raise ConfigInvalidError([f"overlay: is larger than {MAX_CHARACTERS} characters"])
    return text


def patches_of(table: Table) -> tuple[Patch, ...]:
    """List the patches of an overlay in the order in which they are put over a file.

    Each tunable is one of its own: what is wrong with one must not take the others with it.
    """
    nouns = [*PUT_OVER, *(noun for noun in table if noun not in PUT_OVER)]
    return tuple(
        patch
        for noun in nouns
        for name, fields in table.get(noun, {}).items()
        for patch in _patches(noun, name, fields)
    )


def _patches(noun: str, name: str, fields: Plain) -> list[Patch]:
    if noun != SETTINGS or name not in SECTIONS:
        return [Patch(noun=noun, id=name, fields=fields)]
    return [
        Patch(noun=noun, id=f"{name}.{field}", fields={field: value})
        for field, value in fields.items()
    ]


def names_of(patch: Patch) -> set[str]:
    """What the patches are called that a change becomes a part of."""
    return {one.name for one in _patches(patch.noun, patch.id, patch.fields)}


def changed(table: Table, patch: Patch, *, remove: bool = False) -> Table:
    """Give an overlay with one change; the given one stays as it is.

    Args:
        table: what held.
        patch: a field that is null goes back to what the file says; inside of `settings` that is
            so at every depth.
        remove: the whole of it goes back to the file, whatever the fields say.
    """
    ids = dict(table.get(patch.noun, {}))
    before = ids.pop(patch.id, {})
    after = merged(before, patch.fields)
    fields = _pruned(after) if patch.noun == SETTINGS else _without_null(after)
    if not remove and (fields or patch.noun == "profiles"):
        ids[patch.id] = fields
    rest = {noun: found for noun, found in table.items() if noun != patch.noun}
    return {**rest, patch.noun: ids} if ids else rest


def with_epochs(table: Table, epoch: int, moved: Iterable[str], there: Collection[str]) -> Table:
    """Give an overlay in which what is remembered of some combos does not count any more.

    Args:
        table: what will hold otherwise.
        epoch: one that nothing had before.
        moved: combos that are ranked or put together in another way than before.
        there: all combos; of others the latest few are still known.
    """
    known = table.get(EPOCHS, {}) | {name: {"epoch": epoch} for name in moved}
    if not known:
        return table
    gone = sorted(
        (name for name in known if name not in there), key=lambda name: _epoch_in(known[name])
    )
    for name in gone[:-MAX_GONE]:
        del known[name]
    return {**table, EPOCHS: known}


def _epoch_in(fields: Plain) -> int:
    epoch = fields.get("epoch")
    return epoch if isinstance(epoch, int) else 0


def merge(base: Base, patches: Sequence[Patch]) -> Merged:
    """Put an overlay over a file, but for what does not fit.

    Raises:
        ConfigInvalidError: the file itself cannot be used.
    """
    try:
        return Merged(loaded=_load(base, patches), kept=tuple(patches))
    except ConfigInvalidError:
        loaded = load_plain(base.plain, base)
    kept: list[Patch] = []
    dropped: list[Dropped] = []
    waiting = [tuple(patches)]
    while waiting:  # halves that do not fit are halved again: those that do are many
        some = waiting.pop()
        if not some:
            continue
        try:
            loaded = _load(base, [*kept, *some])
            kept.extend(some)
        except ConfigInvalidError as fault:
            if len(some) == 1:
                dropped.append(Dropped(patch=some[0], faults=fault.faults))
            else:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
    return Merged(loaded=loaded, kept=tuple(kept), dropped=tuple(dropped))


def check_change(base: Base, patches: Iterable[Patch], names: Collection[str]) -> Settings:
    """Look whether an overlay fits after a change, and give what would hold.

    Args:
        base: the file.
        patches: all of it, but what did not fit before either.
        names: of the patches that are new in it.

    Raises:
        ConfigInvalidError: it does not; faults of what is new begin with its fields.
    """
    plain = base.plain
    paths: list[str] = []
    try:
        for patch in patches:
            plain, place = put_over(plain, patch)
            if patch.name in names:
                paths.append(place)
        return load_plain(plain, base).settings
    except PatchError as fault:
        heads = [
            name.rpartition(".")[0] if name.startswith(OF_SECTIONS) else name for name in names
        ]
        raise ConfigInvalidError([_shortened(fault.fault, heads)]) from None
    except ConfigInvalidError as fault:
        raise ConfigInvalidError([_shortened(line, paths) for line in fault.faults]) from None


def _load(base: Base, patches: Iterable[Patch]) -> Loaded:
    plain = base.plain
    for patch in patches:
        try:
            plain, _ = put_over(plain, patch)
        except PatchError as fault:
            raise ConfigInvalidError([fault.fault]) from None
    return load_plain(plain, base)


def _shortened(fault: str, paths: Iterable[str]) -> str:
    for path in paths:
        for head in (f"{path}.", f"{path}: "):
            if fault.startswith(head):
                return fault.removeprefix(head)
    return fault


def _without_null(fields: Mapping[str, Any]) -> Plain:
    return {name: value for name, value in fields.items() if value is not None}


def _pruned(fields: Mapping[str, Any]) -> Plain:
    found = {
        name: _pruned(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if value is not None
    }
    return {name: value for name, value in found.items() if value != {}}
