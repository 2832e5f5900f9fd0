"""What single platforms do differently from the format they claim to speak.

A quirk is data: a name that configuration may use, and what it changes in a request.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.wire.json_codec import FALSE, Fields, JsonReader, raw

COUNT_READER: Final = JsonReader[int | None](int | None)
LENGTH_FIELDS: Final = ("max_tokens", "max_completion_tokens")


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """What one quirk changes.

    Attributes:
        drop: members the platform refuses.
        rename: members it knows by another name, old to new.
        serial_tools: it cannot call tools in parallel and must be told so.
        max_output_tokens: it refuses a larger `max_tokens`.
        headers: request headers it wants, lower case.
        check_path: below its base, what tells for free whether a key is valid; empty for `/models`.
        folds_system: its models take no system text; the first user turn must say it.
        requests_by_day: what it says of its limit of requests is about a day.
        metered_checks: it has no call that tells for free whether a key is valid.
    """

    drop: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    serial_tools: bool = False
    max_output_tokens: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    check_path: str = ""
    metered_checks: bool = False
    requests_by_day: bool = False
    folds_system: bool = False


QUIRKS: Final[Mapping[str, Quirk]] = MappingProxyType(
    {
        "no_logprobs": Quirk(drop=("logprobs", "top_logprobs", "logit_bias")),
        "no_response_format": Quirk(drop=("response_format",)),
        "no_reasoning_effort": Quirk(drop=("reasoning_effort", "reasoning")),
        # Mistral answers 422 to members it does not know and sends usage in any case.
        "no_stream_options": Quirk(drop=("stream_options",)),
        "max_tokens_name": Quirk(rename=(("max_completion_tokens", "max_tokens"),)),
        "random_seed": Quirk(rename=(("seed", "random_seed"),)),
        "serial_tools": Quirk(serial_tools=True),
        "max_output_400": Quirk(max_output_tokens=400),
        # Its list of models is public, so it says nothing of a key.
        "key_info": Quirk(check_path="/key"),
        "metered_checks": Quirk(metered_checks=True),
        "folded_system": Quirk(folds_system=True),  # in Gemini's dialect
        "requests_by_day": Quirk(requests_by_day=True),
        "attribution": Quirk(
            headers=(("http-referer", "http://localhost"), ("x-title", "cluster-gw"))
        ),
    }
)


def combine(names: Iterable[str]) -> Quirk:
    """One quirk that does what all named ones do.

    Raises:
        KeyError: a name is unknown (configuration refuses it earlier).
    """
    quirks = [QUIRKS[name] for name in sorted(names)]
    caps = [quirk.max_output_tokens for quirk in quirks if quirk.max_output_tokens is not None]
    return Quirk(
        drop=tuple(name for quirk in quirks for name in quirk.drop),
        rename=tuple(pair for quirk in quirks for pair in quirk.rename),
        serial_tools=any(quirk.serial_tools for quirk in quirks),
        max_output_tokens=min(caps, default=None),
        headers=tuple(pair for quirk in quirks for pair in quirk.headers),
        check_path=next((quirk.check_path for quirk in quirks if quirk.check_path), ""),
        metered_checks=any(quirk.metered_checks for quirk in quirks),
        requests_by_day=any(quirk.requests_by_day for quirk in quirks),
        folds_system=any(quirk.folds_system for quirk in quirks),
    )


def apply(quirk: Quirk, fields: Fields, *, wants_tools: bool) -> Fields:
    """Give the members as the platform wants them; order is kept, `fields` may be changed."""
    for name in quirk.drop:
        fields.pop(name, None)
    if quirk.rename:
        names = dict(quirk.rename)
        fields = {names.get(name, name): value for name, value in fields.items()}
    if quirk.serial_tools and wants_tools:
        fields["parallel_tool_calls"] = FALSE
    if quirk.max_output_tokens is not None:
        lower_lengths(fields, quirk.max_output_tokens)
    return fields


def set_length(fields: Fields, most_tokens: int) -> None:
    """Bound the output, under the names the client used, else the one most platforms know."""
    names = [name for name in LENGTH_FIELDS if name in fields]
    for name in names or LENGTH_FIELDS[:1]:
        fields[name] = raw(most_tokens)


def lower_lengths(fields: Fields, most_tokens: int) -> None:
    """Lower the client's output bounds, never raise or add them."""
    for name in LENGTH_FIELDS:
        value = fields.get(name)
        count = None if value is None else COUNT_READER.read(value)
        if count is not None and count > most_tokens:
            fields[name] = raw(most_tokens)
