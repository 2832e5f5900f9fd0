"""Whether a finished answer may be given to the client."""

from enum import StrEnum
from typing import Final

import msgspec

NO_TERMINAL: Final = "gate.no_terminal"
EMPTY: Final = "gate.empty"
TOO_SHORT: Final = "gate.too_short"
FORBIDDEN: Final = "gate.forbidden"
TOOL_ARGUMENTS: Final = "gate.tool_arguments"  # judged in `tool_schema.py`
INLINE_CALL: Final = "gate.inline_call"  # these three are found in `mending`
FORMAT_IGNORED: Final = "gate.format_ignored"
TRUNCATED_JSON: Final = "gate.truncated_json"

GATE_CODES: Final = (
    *(NO_TERMINAL, EMPTY, TOO_SHORT, FORBIDDEN, TOOL_ARGUMENTS),
    *(INLINE_CALL, FORMAT_IGNORED, TRUNCATED_JSON),
)


class ApplyTo(StrEnum):
    """Which answers the gate looks at."""

    BUFFERED = "buffered"
    STREAM = "stream"
    BOTH = "both"


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer must have; the default accepts everything."""

    reject_empty: bool = False
    require_terminal: bool = False
    min_content_length: int = 0
    forbidden_substrings: tuple[str, ...] = ()
    apply_to: ApplyTo = ApplyTo.BOTH

    @property
    def is_open(self) -> bool:
        """Whether every answer passes."""
        return not (
            self.reject_empty
            or self.require_terminal
            or self.min_content_length > 0
            or self.forbidden_substrings
        )

    def applies(self, *, stream: bool) -> bool:
        """Whether answers of this kind are judged at all."""
        return self.apply_to is ApplyTo.BOTH or (self.apply_to is ApplyTo.STREAM) == stream


def judge(
    policy: GatePolicy,
    *,
    text: str,
    tool_call_count: int,
    saw_terminal: bool,
    is_refused: bool = False,
) -> str | None:
    """Tell the code of the first check the answer fails, None when it passes.

    Tool calls and a refusal excuse an empty or short text, never a forbidden one or a missing end.

    Args:
        policy: of the combo; whether it `applies` is the caller's question.
        text: answer text of all choices.
        tool_call_count: complete tool calls.
        saw_terminal: the upstream marked the end or gave a finish reason.
        is_refused: the model, or a filter of the vendor's, will not: that is an answer.
    """
    if policy.require_terminal and not saw_terminal:
        return NO_TERMINAL
    if not (tool_call_count or is_refused):
        if policy.reject_empty and not text.strip():
            return EMPTY
        # Bytes, not characters, and untrimmed: what operators measured with the first generation.
        least = policy.min_content_length
        if least > 0 and len(text.encode("utf-8", "surrogatepass")) < least:
            return TOO_SHORT
    forbidden = policy.forbidden_substrings
    if forbidden and any(needle and needle in text for needle in forbidden):
        return FORBIDDEN
    return None
