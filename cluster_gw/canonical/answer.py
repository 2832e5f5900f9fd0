"""A finished answer in the internal language, for a hop between dialects.

A hop within one dialect hands the vendor's own bytes on and never makes one.
"""

import msgspec

from cluster_gw.canonical.conversation import Part
from cluster_gw.canonical.events import Usage


class Choice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One answer.

    Attributes:
        parts: text, thinking, calls of tools, refusals, in the order they were said.
        finish_reason: `stop`, `length`, `tool_calls` or `content_filter`.
        stop_sequence: the text that ended it, where the vendor says so.
    """

    parts: tuple[Part, ...]
    finish_reason: str = "stop"
    stop_sequence: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an upstream answered.

    Attributes:
        id: the vendor's own; empty when it gave none.
        choices: at least one.
        usage: None when the upstream did not say.
        lost: what it said that nothing here stands for, by name.
    """

    id: str = ""
    choices: tuple[Choice, ...]
    usage: Usage | None = None
    lost: tuple[str, ...] = ()
