"""What becomes of a request on its way into another dialect."""

import msgspec


class Notes(msgspec.Struct):
    """What a translation loses and changes; see `canonical.conversation.Translated`."""

    lost: list[str] = []
    changed: list[str] = []
