"""What single providers do differently from the format they claim to speak.

A quirk is data: a name that configuration may use, and what it changes in a request.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import msgspec

from cluster_gw.providers.message_quirks import (
    flattened,
    in_a_list,
    permissive,
    trimmed,
    with_text_for_null,
    without_keywords,
    without_members,
)
from cluster_gw.wire.json_codec import FALSE, Fields, JsonReader, raw

COUNT_READER: Final = JsonReader[int | None](int | None)
ACCOUNT: Final = "{account}"
ACCOUNT_IN_KEY: Final = "account_in_key"
NO_TOOLS: Final = "no_tools"
REASONING_ECHO: Final = "reasoning_echo"
AS_WRITTEN: Final = "as_written"
REASONING_BLANK: Final = "reasoning_blank"
LENGTH_FIELDS: Final = ("max_tokens", "max_completion_tokens")


class Notes(msgspec.Struct):
    """What quirks did to a request.

    Attributes:
        dropped: members that were left out.
        changed: what else a client should know, in words.
    """

    dropped: list[str] = []
    changed: list[str] = []


class Quirk(msgspec.Struct, frozen=True, kw_only=True):
    """What one quirk changes.

    Attributes:
        drop: members the provider refuses.
        rename: members it knows by another name, old to new.
        serial_tools: it cannot call tools in parallel and must be told so.
        max_output_tokens: it refuses a larger `max_tokens`.
        min_output_tokens: it refuses a smaller one.
        output_tokens: what it is asked for where the client names no bound; its own is too low.
        max_input_tokens: it refuses longer conversations; the oldest turns are left out.
        null_content: it refuses null as the content of a message, and gets an empty text.
        flat_content: it takes the text of a message as a string only.
        drop_of_messages: members of a message that it refuses.
        drop_of_schemas: keywords of tools' schemas that it refuses.
        efforts: efforts of reasoning it does not know, and what it gets instead.
        schema_for_object: it takes `json_schema` and no `json_object`.
        list_of_stops: it takes `stop` as an array only.
        no_tools: its models call no tools.
        no_stream: it has no streams; the whole answer becomes one.
        account_in_key: a credential reads `account:token`, and the account stands in the address.
        anonymous: the credential of those who have none.
        headers: request headers it wants, lower case.
        check_path: below its base, what tells for free whether a key is valid; empty for `/models`.
            With `../` it starts a step higher.
        folds_system: its models take no system text; the first user turn must say it.
        requests_by_day: what it says of its limit of requests is about a day.
        metered_checks: it has no call that tells for free whether a key is valid.
        lenient_checks: a check that is forbidden says nothing of the key there, and one that asks
            for money says that it is valid.
        empty_words: answers that are none, in lower case.
        consoles: base URLs, of which a key is valid at one only.
    """

    drop: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    serial_tools: bool = False
    max_output_tokens: int | None = None
    min_output_tokens: int | None = None
    output_tokens: int | None = None
    max_input_tokens: int | None = None
    null_content: bool = False
    flat_content: bool = False
    drop_of_messages: tuple[str, ...] = ()
    drop_of_schemas: tuple[str, ...] = ()
    efforts: tuple[tuple[str, str], ...] = ()
    schema_for_object: bool = False
    list_of_stops: bool = False
    no_tools: bool = False
    no_stream: bool = False
    account_in_key: bool = False
    anonymous: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    check_path: str = ""
    metered_checks: bool = False
    lenient_checks: bool = False
    empty_words: tuple[str, ...] = ()
    consoles: tuple[str, ...] = ()
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
        "output_dimension": Quirk(rename=(("dimensions", "output_dimension"),)),  # of embeddings
        "random_seed": Quirk(rename=(("seed", "random_seed"),)),
        "serial_tools": Quirk(serial_tools=True),
        "max_output_400": Quirk(max_output_tokens=400),
        "min_output_16": Quirk(min_output_tokens=16),
        "output_512": Quirk(output_tokens=512),
        "output_8192": Quirk(output_tokens=8192),
        "trimmed_input": Quirk(max_input_tokens=7500),
        "null_content": Quirk(null_content=True),
        "flat_content": Quirk(flat_content=True),
        "plain_messages": Quirk(
            drop_of_messages=(
                *("reasoning_content", "reasoning", "reasoning_details"),
                *("refusal", "annotations", "audio", "function_call"),
            )
        ),
        "plain_schemas": Quirk(drop_of_schemas=("additionalProperties", "$schema")),
        "three_efforts": Quirk(
            efforts=(("none", "low"), ("minimal", "low"), ("xhigh", "high"), ("max", "high"))
        ),
        "schema_for_object": Quirk(schema_for_object=True),
        "list_of_stops": Quirk(list_of_stops=True),
        NO_TOOLS: Quirk(no_tools=True),
        AS_WRITTEN: Quirk(),  # changes no request: its answers are not mended
        "no_stream": Quirk(no_stream=True, drop=("stream_options",)),
        ACCOUNT_IN_KEY: Quirk(account_in_key=True),
        "anonymous_zeros": Quirk(anonymous="0" * 10),
        # Whoever guards it turns away what does not look like a browser.
        "browser_agent": Quirk(headers=(("user-agent", "Mozilla/5.0 (compatible; cluster-gw)"),)),
        # Its list of models is public, so it says nothing of a key.
        "key_info": Quirk(check_path="/key"),
        "account_key": Quirk(check_path="../account/key", lenient_checks=True),
        "models_above": Quirk(check_path="../models"),
        "models_search": Quirk(check_path="../models/search?per_page=1"),
        "metered_checks": Quirk(metered_checks=True),
        # Its filter's verdict may come instead of an answer.
        "verdicts": Quirk(empty_words=("safe", "unsafe")),
        "two_consoles": Quirk(
            consoles=("https://open.bigmodel.cn/api/paas/v4", "https://api.z.ai/api/paas/v4")
        ),
        "folded_system": Quirk(folds_system=True),  # in Gemini's dialect
        # Its models want to see what they thought beside the calls they made before ...
        REASONING_ECHO: Quirk(),
        # ... and an empty thought where there was none.
        REASONING_BLANK: Quirk(),
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
    return joined([QUIRKS[name] for name in sorted(names)])


def joined(quirks: Sequence[Quirk]) -> Quirk:
    """All of some quirks in one: tuples one after the other, the lowest of upper bounds."""
    found: dict[str, Any] = {}
    for name in Quirk.__struct_fields__:
        values = [value for one in quirks if (value := getattr(one, name)) not in {None, "", False}]
        if not values:
            continue
        if isinstance(values[0], tuple):
            found[name] = tuple(item for value in values for item in value)
        else:
            found[name] = max(values) if name == "min_output_tokens" else min(values)
    return Quirk(**found)


def apply(quirk: Quirk, fields: Fields, *, wants_tools: bool, notes: Notes | None = None) -> Fields:
    """Give the members as the provider wants them; order is kept, `fields` may be changed.

    Args:
        quirk: of the provider.
        fields: of a request.
        wants_tools: it has tools.
        notes: what the client is to be told is added here.
    """
    notes = Notes() if notes is None else notes
    for name in quirk.drop:
        if fields.pop(name, None) is not None:
            notes.dropped.append(name)
    if quirk.rename:
        names = dict(quirk.rename)
        fields = {names.get(name, name): value for name, value in fields.items()}
    if quirk.serial_tools and wants_tools:
        fields["parallel_tool_calls"] = FALSE
    if quirk.max_output_tokens is not None:
        lower_lengths(fields, quirk.max_output_tokens, notes)
    if quirk.min_output_tokens is not None or quirk.output_tokens is not None:
        raise_lengths(fields, quirk.min_output_tokens or 0, quirk.output_tokens)
    bend(quirk, fields, notes)
    return fields


def bend(quirk: Quirk, fields: Fields, notes: Notes) -> None:
    """Change what stands inside of members, in place."""
    messages, tools = fields.get("messages"), fields.get("tools")
    if messages is not None:
        fields["messages"] = bent_messages(quirk, messages, notes)
    if tools is not None and quirk.drop_of_schemas:
        fields["tools"] = without_keywords(tools, frozenset(quirk.drop_of_schemas))
    if quirk.schema_for_object and "response_format" in fields:
        fields["response_format"] = permissive(fields["response_format"])
    if quirk.list_of_stops and "stop" in fields:
        fields["stop"] = in_a_list(fields["stop"])
    effort = fields.get("reasoning_effort")
    if quirk.efforts and effort is not None:
        instead = {bytes(raw(asked)): to for asked, to in quirk.efforts}
        given = instead.get(bytes(effort))
        if given is not None:
            fields["reasoning_effort"] = raw(given)
            notes.changed.append(f"reasoning_effort is {given}")


def bent_messages(quirk: Quirk, messages: msgspec.Raw, notes: Notes) -> msgspec.Raw:
    """The messages as the provider wants them."""
    if quirk.max_input_tokens is not None:
        kept = trimmed(messages, quirk.max_input_tokens)
        if kept is not messages:
            notes.changed.append(f"messages trimmed to {quirk.max_input_tokens} tokens")
        messages = kept
    if quirk.drop_of_messages:
        messages = without_members(messages, quirk.drop_of_messages)
    if quirk.flat_content:
        messages = flattened(messages)
    return with_text_for_null(messages) if quirk.null_content else messages


def set_length(fields: Fields, most_tokens: int) -> None:
    """Bound the output, under the names the client used, else the one most providers know."""
    names = [name for name in LENGTH_FIELDS if name in fields]
    for name in names or LENGTH_FIELDS[:1]:
        fields[name] = raw(most_tokens)


def lower_lengths(fields: Fields, most_tokens: int, notes: Notes) -> None:
    """Lower the client's output bounds, never raise or add them."""
    for name in LENGTH_FIELDS:
        value = fields.get(name)
        count = None if value is None else COUNT_READER.read(value)
        if count is not None and count > most_tokens:
            fields[name] = raw(most_tokens)
            notes.changed.append(f"{name} lowered to {most_tokens}")


def raise_lengths(fields: Fields, least_tokens: int, usual_tokens: int | None) -> None:
    """Raise the client's output bounds; where there are none, name the usual one."""
    given = [
        (name, count)
        for name in LENGTH_FIELDS
        if name in fields and (count := COUNT_READER.read(fields[name])) is not None
    ]
    for name, count in given:
        if count < least_tokens:
            fields[name] = raw(least_tokens)
    if not given and usual_tokens is not None:
        fields[LENGTH_FIELDS[0]] = raw(usual_tokens)


def address_of(names: Iterable[str], base_url: str, secret: str | None) -> str:
    """The address of a provider, with the account of a credential where that belongs into it.

    Args:
        names: of the provider's quirks.
        base_url: as configured; `{account}` stands for the account.
        secret: the credential, `account:token`.
    """
    if ACCOUNT_IN_KEY not in names:
        return base_url
    account = (secret or "").partition(":")[0]
    return base_url.replace(ACCOUNT, quote(account, safe=""))


def token_of(quirk: Quirk, secret: str | None) -> str | None:
    """The part of a credential that is secret; what those send who have none."""
    if quirk.account_in_key and secret:
        return secret.partition(":")[2]
    return secret or quirk.anonymous or None
