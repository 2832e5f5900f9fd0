"""The turns of a conversation as Gemini's contents."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.conversation import (
    Media,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.wire.gemini import MARKED, SIGNED
from cluster_gw.wire.json_codec import (
    FIELDS_READER,
    Fields,
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    raw,
    write,
)

SENTINEL: Final = "skip_thought_signature_validator"
"""What the vendor documents for calls whose signature is not known, such as another vendor's."""
UNSIGNED: Final = ("gemini-1", "gemini-2", "gemma")  # models that want no signatures
NEVER_SIGN: Final = ("gemini-1", "gemini-2.0", "gemma")
NO_SYSTEM: Final = ("gemma-2", "gemma-3")  # models that take no system instruction
UNFORMATTED: Final = ("gemini-1", "gemini-2", "gemma")  # models that call or format, not both
PREFIX: Final = "models/"
EMPTY: Final = msgspec.Raw(b"{}")
MALFORMED: Final = "malformed_arguments"
RESULT: Final = "result"
ERROR: Final = "error"
QUIET_DETAILS: Final = frozenset({"", "auto"})
MEDIA_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "webp": "image/webp",
        "gif": "image/gif",
        "heic": "image/heic",
        "pdf": "application/pdf",
    }
)
CONTENTS_READER: Final = JsonReader[list[Fields]](list[Fields])


class Contents:
    """Writes contents one after the other; a result needs to know the name of its call.

    Args:
        lost: is told what the format has no words for.
        changed: is told what is given otherwise.
        signs_calls: the first call of each turn must be signed.

    Attributes:
        items: what is written so far; no content is empty.
    """

    def __init__(self, lost: list[str], changed: list[str], *, signs_calls: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self._lost = lost
        self._changed = changed
        self._signs_calls = signs_calls
        self._names: dict[str, str] = {}

    def add(self, turn: Turn, where: str) -> None:
        """Write one turn."""
        parts = [one for part in turn.parts for one in self._parts(part, where)]
        if self._signs_calls:
            sign(parts)
        if parts:
            role = "model" if turn.role is Role.ASSISTANT else "user"
            self.items.append({"role": role, "parts": parts})

    def _parts(self, part: Part, where: str) -> list[dict[str, Any]]:
        match part:
            case Text(text=text) | Refusal(text=text):
                return [{"text": text}] if text else []
            case Media():
                return [self._media(part, where)]
            case Thinking():
                return self._thought(part, where)
            case ToolUse():
                return [self._call(part, where)]
            case ToolResult():
                return self._result(part, where)

    def _thought(self, part: Thinking, where: str) -> list[dict[str, Any]]:
        """A thought of this vendor, which its signature tells; others mean nothing to it."""
        if not (part.text and part.signature.startswith(SIGNED)):
            self._lost.append(f"{where}: thinking")
            return []
        proof = part.signature.removeprefix(SIGNED)
        return [{"text": part.text, "thought": True, "thoughtSignature": proof}]

    def _media(self, media: Media, where: str) -> dict[str, Any]:
        if media.detail not in QUIET_DETAILS:
            self._lost.append(f"{where}: image detail")
        if not media.url:
            return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
        file = {"fileUri": media.url}
        ending = media.url.partition("?")[0].rpartition(".")[2].lower()
        kind = media.media_type or MEDIA_TYPES.get(ending, "")
        if "/" in kind:
            file = {"mimeType": kind, **file}
        return {"fileData": file}

    def _call(self, call: ToolUse, where: str) -> dict[str, Any]:
        self._names[call.id] = call.name
        arguments = object_of(call.arguments)
        if arguments is None:
            self._changed.append(f"{where}: arguments of {call.name} -> {MALFORMED}")
            arguments = raw({MALFORMED: call.arguments})
        function: dict[str, Any] = {"name": call.name, "args": arguments}
        if call.id:
            function = {"id": call.id, **function}
        part: dict[str, Any] = {"functionCall": function}
        if call.signature:
            part["thoughtSignature"] = call.signature
        return part

    def _result(self, result: ToolResult, where: str) -> list[dict[str, Any]]:
        """What a tool gave back; media stands beside it, where every model looks at it."""
        name = result.name or self._names.get(result.call_id, "")
        if not name:
            name = result.call_id
            self._changed.append(f"{where}: a result without a call -> {name}")
        text = "".join([part.text for part in result.parts if isinstance(part, Text)])
        response = None if result.is_error else object_of(text)
        if response is None:
            response = raw({ERROR if result.is_error else RESULT: text})
        function: dict[str, Any] = {"name": name, "response": response}
        if result.call_id:
            function = {"id": result.call_id, **function}
        media = [self._media(part, where) for part in result.parts if isinstance(part, Media)]
        if media:
            self._changed.append(f"{where}: media of a tool result -> beside it")
        return [{"functionResponse": function}, *media]


def object_of(text: str) -> msgspec.Raw | None:
    """The JSON object that a text spells; nothing at all is an empty one of arguments."""
    if not text.strip():
        return EMPTY
    try:
        return msgspec.Raw(write(FIELDS_READER.read(text.encode("utf-8", "replace"))))
    except (InvalidJsonError, UnexpectedShapeError):
        return None


def sign(parts: list[dict[str, Any]]) -> None:
    """Sign the first call of a turn where nothing signs it."""
    for part in parts:
        if "functionCall" in part:
            part.setdefault("thoughtSignature", SENTINEL)
            return


def wants_signatures(model: str) -> bool:
    """Whether a model refuses calls without a signature, as those after Gemini 2 do."""
    return not model.removeprefix(PREFIX).startswith(UNSIGNED)


def may_sign(model: str) -> bool:
    """Whether a model may sign its calls, whether it refuses calls without that or not."""
    return not model.removeprefix(PREFIX).startswith(NEVER_SIGN)


def takes_no_system(model: str) -> bool:
    """Whether a model refuses a system instruction."""
    return model.removeprefix(PREFIX).startswith(NO_SYSTEM)


def takes_one_of_both(model: str) -> bool:
    """Whether a model refuses a format of its answer beside functions it may call."""
    return model.removeprefix(PREFIX).startswith(UNFORMATTED)


def with_proofs(contents: msgspec.Raw, *, signs_calls: bool) -> msgspec.Raw:
    """A client's own contents with the signatures that the vendor accepts.

    A conversation that another vendor had a part in has calls without any, and thoughts with
    signatures of that vendor. All else stays as its bytes.
    """
    given = bytes(contents)
    has_calls = signs_calls and b'"functionCall"' in given
    if not has_calls and MARKED.encode() not in given:
        return contents
    try:
        rebuilt = CONTENTS_READER.read(contents)
        is_changed = False
        for content in rebuilt:
            if bytes(content.get("role", EMPTY)) == b'"model"' and "parts" in content:
                parts = CONTENTS_READER.read(content["parts"])
                if proven(parts, signs_calls=signs_calls):
                    content["parts"] = raw(parts)
                    is_changed = True
    except UnexpectedShapeError:  # one alone instead of an array: a turn without history
        return contents
    return raw(rebuilt) if is_changed else contents


def proven(parts: list[Fields], *, signs_calls: bool) -> bool:
    """Put the signatures of one turn right in place; whether anything was wrong."""
    is_changed = False
    for part in parts:
        if bytes(part.get("thoughtSignature", EMPTY)).startswith(b'"' + MARKED.encode()):
            del part["thoughtSignature"]
            is_changed = True
    first = next((part for part in parts if "functionCall" in part), None)
    if signs_calls and first is not None and "thoughtSignature" not in first:
        first["thoughtSignature"] = raw(SENTINEL)
        is_changed = True
    return is_changed
