"""What a request asks of the simulator in its own text, and the rules that hand out faults.

A gateway forwards no headers of its client, so a test writes `[[sim {...}]]` into the last user
message. The object is a `Directive`. Rules of the control plane share its fault vocabulary.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from cluster_gw.simulator.config import Delay, Speed
from cluster_gw.simulator.faults import Fault

OPENING: Final = "[[sim "
CLOSING: Final = "]]"

Times = Annotated[int, msgspec.Meta(ge=1)]
Tokens = Annotated[int, msgspec.Meta(ge=0)]


class FaultMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which requests a rule is for; an absent field matches all. `key` is the key's label.

    `call` is `generate`, or `models` for the listing, where only faults that replace the whole
    answer apply.
    """

    call: Literal["generate", "models"] = "generate"
    key: str | None = None
    model: str | None = None
    provider: str | None = None

    def covers(self, *, key: str, model: str, provider: str) -> bool:
        """Whether a request of this key and model at this provider is meant."""
        return (
            self.key in {None, key}
            and self.model in {None, model}
            and self.provider in {None, provider}
        )


class FaultRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Faults for the next `times` matching requests; `times` null means all of them."""

    fault: Fault | list[Fault]
    match: FaultMatch = FaultMatch()
    times: Times | None = 1

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults that are applied together to one response."""
        return tuple(self.fault) if isinstance(self.fault, list) else (self.fault,)


class ScriptedToolCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call to answer with; `arguments` as text is sent as it is, valid JSON or not."""

    name: str
    arguments: Any = {}
    id: str | None = None


class ScriptedUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Usage to report and charge in place of the true one."""

    prompt_tokens: Tokens
    completion_tokens: Tokens
    cached_tokens: Tokens = 0


class Directive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one request wants to be answered; every field is optional.

    Args:
        id: the name under which `/stats` follows this request over all its upstream calls.
        text: exact answer of every choice; `texts` gives each choice its own.
        tokens: length of a generated answer.
        reasoning: text sent as reasoning, in the field `reasoning_field`.
        n: number of choices, over the request's own.
        logprobs: log probabilities, over the request's own.
        fault: faults for this request, the first `times` calls with this id (null: all).
        rules: further rules, tried after `fault`, for calls at certain keys or providers.
    """

    id: str | None = None
    text: str | None = None
    texts: tuple[str, ...] = ()
    tokens: Tokens | None = None
    reasoning: str | None = None
    reasoning_field: str = "reasoning_content"
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    logprobs: bool | None = None
    finish_reason: str | None = None
    usage: ScriptedUsage | None = None
    fault: Fault | list[Fault] | None = None
    times: Times | None = None
    rules: tuple[FaultRule, ...] = ()
    latency_ms: Delay | None = None
    ttft_ms: Delay | None = None
    tokens_per_s: Speed | None = None

    def fault_rules(self) -> tuple[FaultRule, ...]:
        """All rules of this request in the order in which they are tried."""
        if self.fault is None:
            return self.rules
        return (FaultRule(fault=self.fault, times=self.times), *self.rules)


class DirectiveFault(msgspec.Struct, frozen=True):
    """Why a directive cannot be followed: a mistake of the test that wrote it."""

    message: str


def parse_directive(text: str) -> Directive | DirectiveFault:
    """The directive inside a message text; an empty one when there is none."""
    start = text.find(OPENING)
    if start < 0:
        return Directive()
    document = _json_object_at(text, start + len(OPENING))
    if document is None:
        return DirectiveFault("the directive is not a JSON object closed by ]]")
    try:
        return msgspec.json.decode(document, type=Directive)
    except msgspec.MsgspecError as error:
        return DirectiveFault(str(error))


def _json_object_at(text: str, start: int) -> str | None:
    """The object that begins at `start` and is followed by the closing brackets."""
    depth, in_string, escaped = 0, False, False
    for at in range(start, len(text)):
        character = text[at]
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                end = at + 1
                return text[start:end] if text[end:].lstrip().startswith(CLOSING) else None
    return None
