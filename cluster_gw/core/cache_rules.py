"""Which requests are looked up in the response cache, and which answers are kept there."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest, Dialect

OFF_WORDS: Final = frozenset({"off", "no", "0", "false", "bypass", "skip"})
ON_WORDS: Final = frozenset({"on", "yes", "1", "true", "force"})
NO_CACHE: Final = frozenset({"no-store", "no-cache"})
WHOLE: Final = frozenset({"stop", "tool_calls", "function_call"})
"""How an answer ends that would end so again: not by a bound, not by a filter."""


class Wish(StrEnum):
    """What a client says of the cache."""

    UNSAID = ""
    OFF = "off"
    ON = "on"


class Obstacle(StrEnum):
    """Why a request is neither looked up nor kept."""

    TEMPERATURE = "temperature"
    STATE = "state"  # it names or leaves something at its vendor
    NO_KEY = "no_key"


class Temperature(msgspec.Struct, gc=False):
    """The part of a request that is looked at, in Gemini's form."""

    temperature: float | None = None


NUMBER: Final = msgspec.json.Decoder(float | None)
CONFIG: Final = msgspec.json.Decoder(Temperature | None)
NOTHING: Final = frozenset({b"null", b"false"})


def wish_of(word: str, directives: str) -> Wish:
    """What a client wishes.

    Args:
        word: of its own header for that; of several the first. One that nobody knows says nothing.
        directives: of `Cache-Control`, separated by commas; one against the cache wins.
    """
    if not NO_CACHE.isdisjoint(map(named_by, directives.split(","))):
        return Wish.OFF
    said = word.partition(",")[0].strip().lower()
    if said in OFF_WORDS:
        return Wish.OFF
    return Wish.ON if said in ON_WORDS else Wish.UNSAID


def named_by(directive: str) -> str:
    """The name of a directive, which may have an argument that says nothing in a request."""
    return directive.partition("=")[0].strip().lower()


def obstacle_of(request: ChatRequest, max_temperature: float) -> Obstacle | None:
    """Why a request has no place in the cache; None where it has one.

    Args:
        request: of any API.
        max_temperature: a request above it wants a new answer each time.
    """
    try:
        if not is_calm(request, max_temperature):
            return Obstacle.TEMPERATURE
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Obstacle.NO_KEY
    return Obstacle.STATE if leaves_state(request) else None


def is_calm(request: ChatRequest, max_temperature: float) -> bool:
    """Whether its temperature is absent or low enough."""
    temperature: float | None = None
    if request.dialect is Dialect.GEMINI:
        config = request.fields.get("generationConfig")
        if config is not None:
            read = CONFIG.decode(config)
            temperature = None if read is None else read.temperature
    else:
        given = request.fields.get("temperature")
        temperature = None if given is None else NUMBER.decode(given)
    return temperature is None or temperature <= max_temperature


def leaves_state(request: ChatRequest) -> bool:
    """Whether it goes on from what a vendor keeps, or wants something kept there."""
    if request.dialect is Dialect.OPENAI and request.embedding is None:
        return bytes(request.fields.get("store", b"null")) not in NOTHING
    return bool(request.continues)


def is_whole(reasons: Iterable[str | None]) -> bool:
    """Whether each choice of an answer came to its own end."""
    found = list(reasons)
    return bool(found) and all(reason in WHOLE for reason in found)
