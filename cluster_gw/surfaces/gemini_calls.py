"""Which result answers which call, in a format where calls need no ids."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from cluster_gw.canonical.conversation import Media, Text, ToolResult
from cluster_gw.wire.gemini_messages import FullResponse
from cluster_gw.wire.json_codec import read_any, write

RESULT_NAMES: Final = ("result", "output")
ERROR_NAME: Final = "error"


class Calls:
    """The calls of one request, in order; those without an id get one."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, tuple[str, str]] = {}
        # In both, calls that are over stay until they are met: one look at each, however many.
        self._of_name: dict[str, deque[int]] = {}
        self._of_id: dict[str, deque[int]] = {}

    def begin(self, name: str, call_id: str | None) -> str:
        """Note a call; its id."""
        self._count += 1
        known = call_id or f"call_{self._count}"
        self._open[self._count] = (name, known)
        self._of_name.setdefault(name, deque()).append(self._count)
        self._of_id.setdefault(known, deque()).append(self._count)
        return known

    def end(self, given: FullResponse) -> ToolResult:
        """The result of a call: by its id, else of the first open call of that name."""
        places, wanted = (self._of_id, given.id) if given.id else (self._of_name, given.name)
        match = self._take(places, wanted)
        text, is_error = read_response(bytes(given.response))
        media = tuple(
            Media(media_type=blob.mime_type, data=blob.data, url=blob.file_uri)
            for part in given.parts or ()
            if (blob := part.inline_data or part.file_data) is not None
        )
        return ToolResult(
            call_id=given.id or (match[1] if match is not None else given.name),
            name=given.name or (match[0] if match is not None else ""),
            parts=((Text(text=text),) if text else ()) + media,
            is_error=is_error,
        )

    def _take(self, places: Mapping[str, deque[int]], wanted: str) -> tuple[str, str] | None:
        """The first open call that is wanted, which is over with that."""
        numbers = places.get(wanted)
        while numbers:
            match = self._open.pop(numbers.popleft(), None)
            if match is not None:
                return match
        return None


def read_response(response: bytes) -> tuple[str, bool]:
    """What a tool gave back, and whether it says that it failed.

    The vendor wants an object; a text alone stands under one of the names it suggests for it.
    """
    if response in {b"", b"null"}:
        return "", False
    document = read_any(response)
    if isinstance(document, dict) and len(document) == 1:
        name, value = next(iter(document.items()))
        if name in RESULT_NAMES and isinstance(value, str):
            return value, False
        if name == ERROR_NAME:
            return text_of(value), True
    return response.decode("utf-8", "replace"), False


def text_of(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else write(value).decode()
