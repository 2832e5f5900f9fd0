"""Holds the tool calls of an answer against what the client declared (room 8).

Only where the operator asked for it (`routing.guardrails.validate_tool_arguments`), and only before
anything was sent: an answer that breaks it is tried elsewhere.
"""

from collections.abc import Sequence
from typing import Any, Final

from cluster_gw.canonical.events import ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import Dialect
from cluster_gw.core.outcome.gate import TOOL_ARGUMENTS
from cluster_gw.core.outcome.tool_schema import accepts
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any
from cluster_gw.wire.openai_tools import read_arguments, read_tools

DIALECTS: Final = frozenset({Dialect.OPENAI, Dialect.OPENAI_RESPONSES})
"""Whose declared tools are read here; those of others stand in the conversation."""


def find_violation(exchange: Exchange, calls: Sequence[ToolCallDelta]) -> Fault | None:
    """Give the fault of the first call whose arguments break their schema; None without one.

    A call of a tool that was not declared, or declared without a schema, breaks nothing.
    """
    if not calls:
        return None
    schemas = schemas_of(exchange)
    for call in calls:
        schema = schemas.get(call.name or "")
        if schema is None:
            continue
        try:
            is_sound = accepts(schema, read_arguments(call.arguments))
        except InvalidJsonError:
            is_sound = False
        if not is_sound:
            return Fault(
                kind=FaultKind.GATE,
                reason=TOOL_ARGUMENTS,
                message="the arguments of a tool call break its schema",
            )
    return None


def schemas_of(exchange: Exchange) -> dict[str, Any]:
    """The schema of each declared function that has one; what cannot be read has none."""
    tools = tools_of(exchange)
    return {name: schema for name, schema in tools.items() if schema is not None}


def tools_of(exchange: Exchange) -> dict[str, Any]:
    """The declared functions by name, each with its schema, None where it has none."""
    request = exchange.request
    if request.dialect in DIALECTS:
        return read_tools(request.fields)
    try:
        conversation = exchange.conversation or exchange.surface.read_conversation(request)
    except UnexpectedShapeError:
        return {}
    found = {
        tool.name: read_any(tool.schema) if tool.schema else None for tool in conversation.tools
    }
    return {name: one if isinstance(one, dict) else None for name, one in found.items()}
