"""The one door through which JSON comes in and goes out.

What the gateway does not read stays raw (`msgspec.Raw`), and a document is rewritten through
`dict[str, Raw]`: duplicate members collapse to the last one, so that the gateway and an upstream
cannot read two different values out of one body.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

Fields = dict[str, msgspec.Raw]
"""The top-level members of an object as raw JSON, in order."""

TRUE: Final = msgspec.Raw(b"true")
FALSE: Final = msgspec.Raw(b"false")

# What msgspec says of half a pair; near the end of the bytes it takes it for a cut.
SURROGATE_PROBLEMS: Final = ("surrogate pair", "unexpected end of hex escape")
TRUNCATED: Final = "truncated"
LONE_AT_END: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?:[^\\]|\\[^u])")
END_BYTES: Final = 64
MAX_SPLIT_LEVELS: Final = 100  # of documents with half a pair, whose texts are walked one by one


class InvalidJsonError(ValueError):
    """The bytes are no JSON, are not UTF-8, or nest deeper than the reader goes."""


class UnpairedSurrogateError(InvalidJsonError):
    """A string holds half an emoji as an escape, such as `\\ud83d` alone.

    That is JSON (RFC 8259, 8.2) but no text: no UTF-8 can be made of it.
    """


class UnexpectedShapeError(ValueError):
    """The JSON is sound but not of the wanted shape.

    Attributes:
        path: where, such as `messages[0].content`; empty for the document itself.
        problem: what is wrong there, in the words of JSON.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class JsonReader(Generic[T]):
    """Reads documents of one type; built once, it costs a fraction of a microsecond per use.

    Args:
        shape: any type msgspec decodes.
        is_lax: numbers may be written as text, and whole numbers with a fraction of zero.
    """

    def __init__(self, shape: type[T] | Any, *, is_lax: bool = False) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(shape, strict=not is_lax)

    def read(self, data: bytes | msgspec.Raw) -> T:
        """Read one document.

        Raises:
            InvalidJsonError: the bytes are no JSON, whoever wrote them.
            UnpairedSurrogateError: they may be, but a string of them is no text.
            UnexpectedShapeError: they are, but not of this type.
        """
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError as error:
            raise described(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unreadable(str(error), data) from None
        except RecursionError:
            raise InvalidJsonError("JSON is nested too deeply") from None


ENCODER: Final = msgspec.json.Encoder()
ANY_READER: Final = JsonReader[Any](Any)
FIELDS_READER: Final = JsonReader[Fields](Fields)

JSON_WORDS: Final[Mapping[str, str]] = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def read_fields(body: bytes) -> Fields:
    """Split an object into its raw members.

    Raises:
        InvalidJsonError: no JSON, or a string that is not UTF-8.
        UnexpectedShapeError: not an object.
    """
    check_utf8(body)
    return FIELDS_READER.read(body)


def check_utf8(body: bytes) -> None:
    """Raw members are skipped, not read, so their strings are checked here, whole and at once.

    Raises:
        InvalidJsonError: a string of it is not UTF-8.
    """
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            raise InvalidJsonError("body is not UTF-8") from None


def read_any(data: bytes | msgspec.Raw) -> Any:
    """Read any document into plain values.

    Unpaired surrogates, which some vendors send when they cut an emoji in two, stay in its texts.

    Raises:
        InvalidJsonError: no JSON.
        UnexpectedShapeError: a number outside the range of a double.
    """
    try:
        return ANY_READER.read(data)
    except UnpairedSurrogateError:
        return read_with_surrogates(data)


def read_answer_fields(payload: bytes) -> Fields:
    """Split an object of an upstream; unpaired surrogates stay escaped as they are.

    Raises:
        InvalidJsonError: no JSON.
        UnexpectedShapeError: not an object.
    """
    try:
        return read_fields(payload)
    except UnpairedSurrogateError:
        document = read_with_surrogates(payload)
        if not isinstance(document, dict):
            raise UnexpectedShapeError("", "must be an object") from None
        return {
            name: msgspec.Raw(json.dumps(value, separators=(",", ":")))
            for name, value in document.items()
        }


def read_with_surrogates(data: bytes | msgspec.Raw) -> Any:
    """Read a document by the standard library: ten times slower, and it takes half a pair.

    Raises:
        InvalidJsonError: no JSON.
    """
    try:
        document = json.loads(bytes(data), parse_float=finite, parse_constant=finite)
    except (ValueError, RecursionError):
        raise InvalidJsonError("JSON is malformed beside an unpaired surrogate escape") from None
    if nests_deeper(document, MAX_SPLIT_LEVELS):
        raise InvalidJsonError("JSON is nested too deeply beside an unpaired surrogate escape")
    return document


def finite(text: str) -> float:
    """The number that a text says; the standard library takes more for one than JSON does.

    Raises:
        ValueError: it is outside the range of a double, or none.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def unreadable(problem: str, data: bytes | msgspec.Raw) -> InvalidJsonError:
    """The error of bytes that msgspec refuses for `problem`."""
    if any(known in problem for known in SURROGATE_PROBLEMS) or (
        problem.endswith(TRUNCATED) and LONE_AT_END.search(bytes(data)[-END_BYTES:])
    ):
        return UnpairedSurrogateError("a string holds an unpaired surrogate escape")
    return InvalidJsonError(problem)


def nests_deeper(document: Any, levels: int) -> bool:
    """Whether a document has more than `levels` levels of lists and objects; a scalar has none."""
    layer = [document]
    for _ in range(levels + 1):
        layer = [one for one in layer if isinstance(one, dict | list)]
        if not layer:
            return False
        layer = [
            inner for one in layer for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return True


def write(document: Any) -> bytes:
    """Write a document without blanks; lone surrogates become `?`.

    Raises:
        TypeError: something in it has no JSON form (a bug of the caller).
    """
    try:
        return ENCODER.encode(document)
    except UnicodeEncodeError:
        return ENCODER.encode(cleaned(document))


def raw(value: Any) -> msgspec.Raw:
    """The raw form of a value, to put into `Fields`."""
    return msgspec.Raw(write(value))


def cleaned(document: Any) -> Any:
    """The same document with lone surrogates replaced."""
    if isinstance(document, str):
        return document.encode("utf-8", "replace").decode()
    if isinstance(document, Mapping):
        return {cleaned(key): cleaned(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [cleaned(item) for item in document]
    return document


def described(message: str) -> UnexpectedShapeError:
    """Turn msgspec's words into a path and a problem in the words of JSON.

    ``Expected `str | null`, got `int` - at `$.model` `` becomes `model`, "must be a string or
    null, not an integer".
    """
    problem, _, place = message.partition(" - at `$")
    path = place.rstrip("`").removeprefix(".")
    field = quoted(problem)
    if problem.startswith("Object missing required field"):
        return UnexpectedShapeError(f"{path}.{field[0]}" if path else field[0], "is missing")
    if " got `" in problem:
        wanted = " or ".join(JSON_WORDS.get(word, word) for word in field[0].split(" | "))
        return UnexpectedShapeError(path, f"must be {wanted}, not {JSON_WORDS.get(field[1], '?')}")
    bound = problem.partition("` ")[2]
    if field and bound:
        return UnexpectedShapeError(path, f"must be {JSON_WORDS.get(field[0], field[0])} {bound}")
    return UnexpectedShapeError(path, problem[:1].lower() + problem[1:])


def quoted(text: str) -> list[str]:
    """The parts of a text that stand in backquotes."""
    return text.split("`")[1::2]
