"""Calls of tools that a model wrote into its text, in the four dialects that models are taught.

- tokens: `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>`
- a function tag: `<function=NAME>{...}</function>`
- a call tag: `<tool_call>{"name": NAME, "arguments": {...}}</tool_call>`
- a bare or fenced object: `{"name": NAME, "parameters": {...}}`

Only calls of declared tools are calls; everything else stays text.
"""

import re
from collections.abc import Collection
from enum import Enum
from typing import Final

import msgspec

from cluster_gw.mending.json_text import end_of_value, utf8
from cluster_gw.wire.json_codec import InvalidJsonError, JsonReader, UnexpectedShapeError

UNDECIDED_CHARACTERS: Final = 256
MAX_CALLS: Final = 128

NAME: Final = r"(?P<name>[\w.-]+)"
MARKERS: Final = (
    *("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    *("<tool_call>", "<function=", "<function("),
)
BARE: Final = "functions."
BARE_HEAD: Final = re.compile(r"functions\.[\w.-]*(?P<colon>:)?(?P<index>\d*)")
FENCE: Final = "```"
OBJECT_HEAD: Final = re.compile(r'(?:```[\w-]*\s*)?\{\s*(?:"(?P<key>[^"\\]*))?')
CALL_KEYS: Final = frozenset({"name", "function", "type", "id", "index", "arguments", "parameters"})
NAMED: Final = re.compile(r'"(?:name|function)"\s*:\s*"([^"\\]{1,128})"')

TOKENS: Final = re.compile(
    r"(?:<\|tool_calls_section_begin\|>\s*)?"
    rf"(?:<\|tool_call_begin\|>\s*(?:functions\.)?|functions\.){NAME}:\d+\s*"
    r"(?:<\|tool_call_argument_begin\|>\s*)?"
)
TOKENS_END: Final = re.compile(r"\s*(?:<\|tool_call_end\|>\s*)?(?:<\|tool_calls_section_end\|>)?")
FUNCTION: Final = re.compile(rf'(?:<tool_call>\s*)?<function[=(]\s*"?{NAME}"?\s*\)?[\s>,:(]*')
FUNCTION_END: Final = re.compile(r"[\s)>]*(?:</function>)?\s*(?:</tool_call>)?")
CALL_TAG: Final = re.compile(r"<tool_call>\s*")
CALL_TAG_END: Final = re.compile(r"\s*(?:</tool_call>)?")
FENCED_HEAD: Final = re.compile(r"```[\w-]*\s*(?:\{|$)")
FENCED: Final = re.compile(r"```[\w-]*\s*")
FENCED_END: Final = re.compile(r"\s*(?:```)?")
BLANKS: Final = re.compile(r"\s*")


class Sign(Enum):
    """What the start of a text looks like."""

    CALL = "call"
    TEXT = "text"
    UNDECIDED = "undecided"


class Called(msgspec.Struct, frozen=True):
    """A call that was found; `arguments` is the text of a JSON object."""

    name: str
    arguments: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text is in truth.

    Attributes:
        calls: of declared tools, in order; none where it is text.
        text: what else it says.
        is_broken: it is a call that nobody can read.
    """

    calls: tuple[Called, ...] = ()
    text: str = ""
    is_broken: bool = False


ABSENT: Final = msgspec.Raw()


class FunctionBody(msgspec.Struct):
    """`function` of a call, where that is an object."""

    name: str | None = None
    arguments: msgspec.Raw = ABSENT
    parameters: msgspec.Raw = ABSENT


class CallBody(msgspec.Struct):
    """A call as an object, in the words of several families of models."""

    name: str | None = None
    function: str | FunctionBody | None = None
    arguments: msgspec.Raw = ABSENT
    parameters: msgspec.Raw = ABSENT

    @property
    def called(self) -> str | None:
        """The name of the tool."""
        inner = self.function
        return self.name or (inner.name if isinstance(inner, FunctionBody) else inner)

    @property
    def given(self) -> msgspec.Raw | None:
        """The arguments, None where it has none."""
        inner = self.function if isinstance(self.function, FunctionBody) else self
        found = (self.arguments, self.parameters, inner.arguments, inner.parameters)
        return next((one for one in found if one is not ABSENT), None)


CALL_READER: Final = JsonReader[CallBody](CallBody)
TEXT_READER: Final = JsonReader[str](str)
OBJECT_READER: Final = JsonReader[dict[str, msgspec.Raw]](dict[str, msgspec.Raw])


def sign_of(start: str, names: Collection[str]) -> Sign:
    """Tell what a text looks like that begins so.

    Args:
        start: its first characters, without blanks before them.
        names: of the declared tools.
    """
    if not names:
        return Sign.TEXT
    marker = next((one for one in MARKERS if start.startswith(one) or one.startswith(start)), None)
    if marker is not None:
        return Sign.CALL if start.startswith(marker) else Sign.UNDECIDED
    if start.startswith(BARE) or BARE.startswith(start):
        return sign_of_bare(start)
    if start.startswith("{") or (FENCE.startswith(start) or FENCED_HEAD.match(start)):
        return sign_of_object(start, names)
    return Sign.TEXT


def sign_of_object(start: str, names: Collection[str]) -> Sign:
    """Tell what a text looks like that begins with an object, bare or fenced."""
    head = OBJECT_HEAD.match(start)
    if head is not None and head.end() < len(start) and head["key"] not in CALL_KEYS:
        return Sign.TEXT  # most JSON is an answer: its first key tells at once
    named = NAMED.search(start, 0, UNDECIDED_CHARACTERS)
    if named is not None:
        return Sign.CALL if named.group(1) in names else Sign.TEXT
    return Sign.UNDECIDED if len(start) < UNDECIDED_CHARACTERS else Sign.TEXT


def sign_of_bare(start: str) -> Sign:
    """Tell what a text looks like that begins with `functions.`, or may."""
    head = BARE_HEAD.match(start)
    if head is None or (head.end() == len(start) and len(start) < UNDECIDED_CHARACTERS):
        return Sign.UNDECIDED
    return Sign.CALL if head["colon"] and head["index"] else Sign.TEXT


def read_calls(text: str, names: Collection[str]) -> Reading:
    """Read a whole text whose start is a sign of a call."""
    calls: list[Called] = []
    kept: list[str] = []
    at = skipped_blanks(text, 0)
    while at < len(text):
        found = next_call(text, at)
        if found is None:
            break
        called, end = found
        if called is None:
            return Reading(text=text, is_broken=is_meant(text, at, names))
        if called.name in names:
            calls.append(called)
        else:
            kept.append(text[at:end])
        at = skipped_blanks(text, end)
    if not calls:
        return Reading(text=text)
    if len(calls) > MAX_CALLS:
        return Reading(text=text, is_broken=True)
    kept.append(text[at:])
    return Reading(calls=tuple(calls), text="".join(kept))


def next_call(text: str, at: int) -> tuple[Called | None, int] | None:
    """The call at a place and where it ends, None in its stead if unreadable; None for no call."""
    for header, end in ((TOKENS, TOKENS_END), (FUNCTION, FUNCTION_END)):
        found = header.match(text, at)
        if found is not None:
            return named_call(text, found, end)
    for header, end in ((CALL_TAG, CALL_TAG_END), (FENCED, FENCED_END), (BLANKS, BLANKS)):
        found = header.match(text, at)
        if found is not None and (header is CALL_TAG or text.startswith("{", found.end())):
            return object_call(text, found.end(), end, must_be_call=header is CALL_TAG)
    return None


def named_call(
    text: str, header: re.Match[str], ending: re.Pattern[str]
) -> tuple[Called | None, int]:
    """A call whose name stands before its arguments."""
    start = header.end()
    if not text.startswith("{", start):
        end = ending.match(text, start)
        # Nothing between the tags: a call without arguments.
        if end is not None and end.group().strip():
            return Called(header["name"], "{}"), end.end()
        return None, start
    close = end_of_value(text, start)
    if close is None or not is_object(text[start:close]):
        return None, start
    return Called(header["name"], text[start:close]), after(text, close, ending)


def object_call(
    text: str, start: int, ending: re.Pattern[str], *, must_be_call: bool
) -> tuple[Called | None, int] | None:
    """A call that is an object with name and arguments."""
    close = end_of_value(text, start) if text.startswith("{", start) else None
    if close is None:
        return None, start
    try:
        body = CALL_READER.read(utf8(text[start:close]))
        arguments = arguments_of(body.given)
    except (InvalidJsonError, UnexpectedShapeError):
        return None, start
    if body.called is None or arguments is None or (body.given is None and not must_be_call):
        return (None, start) if must_be_call else None
    return Called(body.called, arguments), after(text, close, ending)


def arguments_of(given: msgspec.Raw | None) -> str | None:
    """The arguments as text of an object, whether they were one or its text; None for neither.

    Raises:
        InvalidJsonError, UnexpectedShapeError: they are something else.
    """
    if given is None:
        return "{}"
    text = bytes(given).decode("utf-8", "surrogatepass")
    if text.startswith('"'):
        text = TEXT_READER.read(given)
    return text if is_object(text) else None


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        OBJECT_READER.read(utf8(text))
    except (InvalidJsonError, UnexpectedShapeError):
        return False
    return True


def is_meant(text: str, at: int, names: Collection[str]) -> bool:
    """Whether an unreadable call is one of a declared tool, or of nobody knows which."""
    header = TOKENS.match(text, at) or FUNCTION.match(text, at)
    if header is not None:
        return header["name"] in names
    named = NAMED.search(text, at)
    return named is None or named.group(1) in names


def after(text: str, at: int, ending: re.Pattern[str]) -> int:
    """Where a call ends with its closing marks."""
    found = ending.match(text, at)
    return at if found is None else found.end()


def skipped_blanks(text: str, at: int) -> int:
    """The next place that is not blank."""
    return after(text, at, BLANKS)
