"""What is mended, as the operator switches it."""

from typing import Final

import msgspec


class MendingPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which faults of models are mended.

    Attributes:
        think_tags: whether text that begins with a think tag becomes reasoning up to its end tag.
        inline_calls: whether text that is a call of a declared tool in truth becomes one.
        tool_arguments: whether arguments that were encoded twice, and arrays and objects that were
            written as text against their schema, are put right. Streams hold calls of tools whose
            schema has arrays or objects until they are whole.
        json_output: whether JSON that was asked for is taken out of fences and prose, and an answer
            without any is tried elsewhere; streams pass as they are.
        lone_reasoning: whether a buffered answer that holds reasoning alone is given as its text.
    """

    think_tags: bool = True
    inline_calls: bool = True
    tool_arguments: bool = True
    json_output: bool = True
    lone_reasoning: bool = True


NOTHING: Final = MendingPolicy(
    think_tags=False,
    inline_calls=False,
    tool_arguments=False,
    json_output=False,
    lone_reasoning=False,
)
"""Answers are left as they are written."""
