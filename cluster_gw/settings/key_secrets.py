"""Secrets of providers' keys that were set at run time, in place of those of the file.

They stand in the overlay, sealed. A worker that cannot read one goes on with the file's, and says
so: what holds then is told for each key (decision 0075).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from cluster_gw.settings.bundled import provider_facts
from cluster_gw.settings.expand import Expander
from cluster_gw.settings.faults import Faults
from cluster_gw.settings.loading import Loaded
from cluster_gw.settings.patches import KEY_SECRETS, Patch
from cluster_gw.settings.pool import KeySettings, Settings
from cluster_gw.settings.secret import Secret
from cluster_gw.store.key_vault import KeyVault, Place, SealedSecret, Unread, UnreadError

REFERENCES: Final = ("env:", "file:")
MOST_BYTES: Final = 8192


class Unsealed(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration with the secrets that were set at run time.

    Attributes:
        settings: what holds.
        vault: opened them.
        set_at_ms: when the secret of a key was set, ms since the epoch; of those that hold.
        unread: why one that was set does not hold, by key.
    """

    settings: Settings
    vault: KeyVault
    set_at_ms: Mapping[str, int]
    unread: Mapping[str, Unread]


def unseal(loaded: Loaded, patches: Iterable[Patch]) -> Unsealed:
    """Put the secrets of an overlay into a configuration.

    Args:
        loaded: with every other patch in it.
        patches: those that hold; of other nouns nothing is looked at.
    """
    vault = vault_of(loaded.master_keys)
    stored = {patch.id: patch.fields for patch in patches if patch.noun == KEY_SECRETS}
    settings = loaded.settings
    if not stored:
        return Unsealed(settings=settings, vault=vault, set_at_ms={}, unread={})
    set_at_ms, unread, keys = dict[str, int](), dict[str, Unread](), list[KeySettings]()
    for key in settings.keys:
        fields = stored.get(key.id)
        if fields is not None:
            try:
                secret, set_at_ms[key.id] = _opened(vault, fields, place_of(settings, key))
                key = msgspec.structs.replace(key, secret=secret)  # noqa: PLW2901 - it is that one
            except UnreadError as fault:
                unread[key.id] = fault.cause
        keys.append(key)
    return Unsealed(
        settings=msgspec.structs.replace(settings, keys=tuple(keys)),
        vault=vault,
        set_at_ms=set_at_ms,
        unread=unread,
    )


def vault_of(master_keys: Iterable[Secret]) -> KeyVault:
    """Give what seals and opens under some master keys."""
    return KeyVault([bytes.fromhex(key.reveal()) for key in master_keys])


def place_of(settings: Settings, key: KeySettings) -> Place:
    """What a secret of a key is bound to: its provider, and the address it is sent to."""
    facts = provider_facts(settings.providers[key.provider], has_keys=True)
    base_url = (key.base_url or facts.base_url).rstrip("/")
    return Place(key=key.id, provider=key.provider, base_url=base_url)


def fault_of_secret(text: str) -> str | None:
    """Say what is wrong with a secret that somebody gives, without any of it; None if nothing is.

    It is the credential itself: text that comes through the admin API is never resolved.
    """
    if text.startswith(REFERENCES) or "${" in text:
        return "references are resolved in the file only; give the secret itself"
    if len(text) > MOST_BYTES:
        return f"is longer than {MOST_BYTES} characters"
    faults = Faults()
    Expander({}, faults).secret(text, "secret")
    return faults.lines[0].removeprefix("secret: ") if faults.lines else None


def _opened(vault: KeyVault, fields: Mapping[str, Any], place: Place) -> tuple[Secret, int]:
    try:
        stored = msgspec.convert(fields, SealedSecret)
    except msgspec.ValidationError:
        raise UnreadError(Unread.CHANGED) from None
    return Secret(vault.open(stored, place)), stored.set_at_ms
