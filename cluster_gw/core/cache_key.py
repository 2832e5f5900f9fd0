"""The key of the response cache, version 4: two requests have the same one if they mean the same.

All that may change an answer is part of it, whether the gateway knows it or not; what only names a
request or says how its answer is to be framed is not. Rather two keys for one meaning, which costs
a call, than one key for two, which gives a wrong answer.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from hashlib import sha256
from itertools import count
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.request import ChatRequest, Dialect, Wishes

VERSION: Final = 4
AUTO: Final = "auto"
MOST_STOPS: Final = 4
MOST_BYTES: Final = 8 * 1_048_576
"""Of the members that are read; a larger request has no key, for a worker would wait for it."""
FEW_NUMBERS_BYTES: Final = 65_536
MOST_FRACTIONS: Final = 20_000  # in a request that is larger than that
MOST_DIGITS: Final = 400  # of a whole number that is written with an exponent; a double has 309

FRAMING: Final = frozenset({"model", "stream", "stream_options"})
LENGTH: Final = "max_tokens"
LENGTHS: Final = ("max_completion_tokens", LENGTH)
CHAT_LABELS: Final = frozenset(
    {
        *("user", "safety_identifier", "metadata", "store"),
        *("prompt_cache_key", "prompt_cache_retention"),
    }
)
CHAT_MEMBERS: Final = frozenset(
    {
        *("messages", "temperature", "top_p", "n", "presence_penalty", "frequency_penalty"),
        *("tools", "tool_choice", "stop", "response_format", "seed", "logit_bias", "logprobs"),
        *("top_logprobs", "reasoning_effort"),
    }
)
"""What has a place of its own in the key; the rest stands together under `other`."""
CHAT_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "n": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "logprobs": False,
        "tools": [],
        "stop": [],
        "response_format": {"type": "text"},
    }
)
LABELS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"embeddings": frozenset({"user"}), "messages": frozenset({"metadata"})}
)
"""By API; those of the Responses API stand in its answers again and count as any other member."""
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "embeddings": MappingProxyType({"encoding_format": "float"}),
        "messages": MappingProxyType({"tools": [], "stop_sequences": []}),
    }
)

SORTED: Final = msgspec.json.Encoder(order="sorted", decimal_format="number")
COLON_ESCAPE: Final = b"\\u003"  # how each of them begins
COLON_ESCAPES: Final = (b"\\u003a", b"\\u003A")


class NoKeyError(ValueError):
    """A request that cannot be told from others by a key; says why in a word."""


class Keyed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a key is made of.

    Attributes:
        surface: the API of the client: `chat`, `completions`, `messages`, `responses`, `gemini` or
            `embeddings`.
        client: who asks; None where all clients share what is kept.
        routes: the routes it may use, where it may not use all that its model stands for.
        vendor: what the client tells a vendor of its API in headers.
        compression: how the request was compressed; None for not at all.
    """

    surface: str
    request: ChatRequest
    client: str | None = None
    routes: tuple[str, ...] | None = None
    vendor: tuple[tuple[str, str], ...] = ()
    compression: str | None = None


def digest_of(form: bytes) -> str:
    """The key itself: SHA-256 of a canonical form, 64 hexadecimal digits."""
    return sha256(form).hexdigest()


def canonical_form(keyed: Keyed) -> bytes:
    """What the key is made of, as canonical JSON.

    Objects are sorted by name at every depth, in the order of code points; a number is written by
    its value alone; texts hold no escapes but those they must.

    Raises:
        NoKeyError: it is too large, nests too deeply, or says a member twice.
    """
    request = keyed.request
    fields = {name: bytes(raw) for name, raw in request.fields.items() if name not in FRAMING}
    size = sum(map(len, fields.values()))
    if size > MOST_BYTES:
        raise NoKeyError("too_large")
    read = FEW if size <= FEW_NUMBERS_BYTES else bounded_decoder()
    if is_chat(keyed):
        members = chat_members(request, fields, read)
    else:
        members = other_members(keyed, fields, read)
    ours: dict[str, Any] = {
        "v": VERSION,
        "surface": keyed.surface,
        "model": request.model or AUTO,
        "client": keyed.client,
        "routes": keyed.routes,
        "vendor": keyed.vendor or None,
        "compression": keyed.compression,
        "wishes": None if request.wishes is None else wishes_of(request.wishes),
    }
    members |= {name: SORTED.encode(one) for name, one in ours.items() if one is not None}
    return joined(members)


def is_chat(keyed: Keyed) -> bool:
    """Whether a request has the members of OpenAI's chat."""
    request = keyed.request
    return request.dialect is Dialect.OPENAI and request.embedding is None


def wishes_of(wishes: Wishes) -> dict[str, Any]:
    """What the client asks for besides a model."""
    return {
        "models": wishes.models,
        "order": wishes.order,
        "only": wishes.only,
        "ignore": wishes.ignore,
        "sort": wishes.sort,
    }


def chat_members(
    request: ChatRequest, fields: dict[str, bytes], read: "Decoder"
) -> dict[str, bytes]:
    """The members of a chat request in canonical form."""
    given = {name: canonical(raw, read) for name, raw in fields.items() if name not in CHAT_LABELS}
    lengths = [given.pop(name) for name in LENGTHS if name in given]
    kept = {
        name: one
        for name, one in map(regular, given.items())
        if name not in CHAT_MEMBERS
        or not (one[0] is None or is_value(one[0], CHAT_DEFAULTS.get(name)))
    }
    effort = kept.pop("reasoning", None)
    if effort is not None:
        kept |= effort_of(effort[0], kept)
    choice = kept.get("tool_choice")
    if choice is not None and choice[0] == ("auto" if "tools" in kept else "none"):
        del kept["tool_choice"]
    members = {name: one[1] for name, one in kept.items() if name in CHAT_MEMBERS}
    other = {name: one[1] for name, one in kept.items() if name not in CHAT_MEMBERS}
    if request.max_tokens is not None:
        members[LENGTH] = SORTED.encode(request.max_tokens)
    if not request.is_bounded:
        # Of two bounds each vendor reads the one that it knows, and what one that is no bound
        # means is for a vendor to say.
        for value, form in lengths:
            if value is not None and form != members.get(LENGTH):
                other[LENGTH] = form
    return {**members, "other": joined(other)} if other else members


def regular(member: tuple[str, "Canonical"]) -> tuple[str, "Canonical"]:
    """A member of a chat in its regular form: `stop` is a list of four texts at most."""
    name, (value, form) = member
    if name == "stop" and value is not None:
        stops = value[:MOST_STOPS] if isinstance(value, list) else [value]
        return name, (stops, SORTED.encode(stops))
    return name, (value, form)


def effort_of(reasoning: Any, given: Mapping[str, "Canonical"]) -> dict[str, "Canonical"]:
    """`reasoning` as an object with an effort says the same as `reasoning_effort`."""
    if not isinstance(reasoning, dict) or "effort" not in reasoning or "reasoning_effort" in given:
        return {"reasoning": (reasoning, SORTED.encode(reasoning))}
    rest = {name: one for name, one in reasoning.items() if name != "effort"}
    effort = reasoning["effort"]
    found = {} if effort is None else {"reasoning_effort": (effort, SORTED.encode(effort))}
    return {**found, "reasoning": (rest, SORTED.encode(rest))} if rest else found


def other_members(keyed: Keyed, fields: dict[str, bytes], read: "Decoder") -> dict[str, bytes]:
    """The members of a request of another API in canonical form; all stand under `other`."""
    labels = LABELS.get(keyed.surface, frozenset())
    defaults = DEFAULTS.get(keyed.surface, MappingProxyType({}))
    other: dict[str, bytes] = {}
    for name, raw in fields.items():
        if name in labels:
            continue
        value, form = canonical(raw, read)
        if not is_value(value, defaults.get(name)):
            other[name] = form
    members = {"other": joined(other)}
    if keyed.request.is_bounded:
        members[LENGTH] = SORTED.encode(keyed.request.max_tokens)
    return members


def is_value(value: Any, default: Any) -> bool:
    """Whether a member says no more than its absence; True is not the number 1."""
    if default is None or isinstance(value, bool) is not isinstance(default, bool):
        return False
    return bool(value == default)


def canonical(raw: bytes, read: "Decoder") -> "Canonical":
    """A value and its canonical form.

    Raises:
        NoKeyError: it cannot be read, or says a member of an object twice: which of them counts is
            for each reader to say, so nobody knows what it means.
    """
    try:
        value = read.decode(raw)
        form = SORTED.encode(value)
    except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
        raise NoKeyError("unreadable") from None
    # One colon goes with each member, and those in texts stay what they are.
    is_hidden = COLON_ESCAPE in raw and any(one in raw for one in COLON_ESCAPES)
    if is_hidden or raw.count(b":") != form.count(b":"):
        raise NoKeyError("ambiguous")
    return value, form


def joined(members: Mapping[str, bytes]) -> bytes:
    """An object of members in canonical form."""
    if not members:
        return b"{}"
    pieces: list[bytes] = []  # joined once: they may be long
    for name in sorted(members):
        pieces += (b",", SORTED.encode(name), b":", members[name])
    pieces[0] = b"{"
    pieces.append(b"}")
    return b"".join(pieces)


def number_of(text: str) -> int | Decimal:
    """A number with a fraction or an exponent by its exact value, in one form."""
    sign, digits, exponent = Decimal(text).as_tuple()
    if not isinstance(exponent, int):
        raise NoKeyError("unreadable")
    end = len(digits)
    while end and not digits[end - 1]:
        end -= 1
    exponent += len(digits) - end
    start = 0
    while start < end and not digits[start]:
        start += 1
    if start == end:
        return 0
    value = Decimal((sign, digits[start:end], exponent))
    if exponent >= 0 and end - start + exponent <= MOST_DIGITS:
        return int(value)
    return value


def bounded_decoder() -> "Decoder":
    """A decoder that reads so many numbers with a fraction, each of which takes a while."""
    seen = count(1)

    def number(text: str) -> int | Decimal:
        if next(seen) > MOST_FRACTIONS:
            raise NoKeyError("too_many")  # which the decoder tells as its own
        return number_of(text)

    return decoder_of(number)


def decoder_of(number: Callable[[str], Any]) -> "Decoder":
    """A decoder of any document."""
    return msgspec.json.Decoder(Any, float_hook=number)


Decoder = msgspec.json.Decoder[Any]
Canonical = tuple[Any, bytes]
FEW: Final = decoder_of(number_of)
