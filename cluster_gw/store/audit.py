"""What operators changed, by whom and from where: the newest entries (`lua/config/note`)."""

from typing import Final

import msgspec

from cluster_gw.store.caller import ScriptCaller

KEPT: Final = 2000  # some 600 kB


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One change.

    Attributes:
        id: of this entry alone.
        actor: name of the admin key, or `cli`; never its value.
        address: where the call came from.
        method: of the call.
        path: of the call, with the ids in it and its query.
        fields: names of what it set, with dots; no values.
        about: the id of what was made, drained or changed, where the body names it; else empty.
        status: of the answer; 500 and more: it is not known whether it was done.
        config_version: of the configuration after it.
        config_version_before: that its worker had when the call came; None where that was not
            written yet. What others changed while it ran lies between the two as well.
    """

    id: str
    actor: str
    address: str
    method: str
    path: str
    fields: tuple[str, ...] = ()
    about: str = ""
    status: int
    config_version: int
    config_version_before: int | None = None


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, and when it was written: ms since the epoch, by the server's clock."""

    at_ms: int
    entry: Entry


ENCODER: Final = msgspec.json.Encoder()
DECODER: Final = msgspec.json.Decoder(Entry)


class Audit(ScriptCaller):
    """Writes and reads entries; every method raises `StoreLostError` while Redis is away."""

    async def note(self, entry: Entry) -> None:
        """Write one down."""
        text = ENCODER.encode(entry).decode()
        await self._call("config/note", [self._keys.audit()], text, KEPT)

    async def latest(self, most: int) -> list[Noted]:
        """Give the newest, the latest first; what cannot be read is left out.

        Args:
            most: how many, from 1.
        """
        reply = await self._client.call(
            "ZRANGE", self._keys.audit(), 0, most - 1, "REV", "WITHSCORES"
        )
        pairs = zip(reply[::2], reply[1::2], strict=True)
        read = ((read_entry(text), int(float(at))) for text, at in pairs)
        return [Noted(at_ms=at_ms, entry=entry) for entry, at_ms in read if entry is not None]


def read_entry(text: bytes) -> Entry | None:
    """Read one; None for what a newer version wrote differently, or somebody else wrote."""
    try:
        return DECODER.decode(text)
    except msgspec.MsgspecError:
        return None
