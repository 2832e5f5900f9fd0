"""How an answer of Anthropic's models is drawn, and how much they think before it."""

from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.conversation import (
    Choosing,
    Conversation,
    Role,
    Sampling,
    Thinking,
    ToolResult,
    Turn,
)
from cluster_gw.providers.notes import Notes
from cluster_gw.wire.anthropic_messages import DEFAULT_MAX_TOKENS, SIGNED

MAX_TEMPERATURE: Final = 1.0
MIN_BUDGET_TOKENS: Final = 1024  # the vendor's own
BUDGETS: Final = MappingProxyType({"low": 1024, "medium": 8192, "high": 24_576, "xhigh": 32_768})
FORCED: Final = frozenset({Choosing.REQUIRED, Choosing.NAMED})
WITHOUT: Final = ("seed", "presence_penalty", "frequency_penalty")
"""What the vendor has no words for."""
WHILE_THINKING: Final = ("temperature", "top_p", "top_k")
"""What the vendor refuses beside thoughts."""


def put_sampling(document: dict[str, Any], conversation: Conversation, notes: Notes) -> None:
    """Say how the answer is drawn; what the vendor has no words for is noted."""
    sampling = conversation.sampling
    budget = budget_of(conversation, notes)
    document["max_tokens"] = sampling.max_tokens or DEFAULT_MAX_TOKENS + budget
    if budget:
        thinking: dict[str, Any] = {"type": "enabled", "budget_tokens": budget}
        if sampling.shows_thinking is not None:
            thinking["display"] = "summarized" if sampling.shows_thinking else "omitted"
        document["thinking"] = thinking
    put_chances(document, sampling, notes, is_thinking=bool(budget))
    stops = [text for text in sampling.stop if text.strip()]
    if stops:
        document["stop_sequences"] = stops
    if len(stops) < len(sampling.stop):
        notes.lost.append("blank stop")
    put_format(document, conversation, notes)
    notes.lost += [name for name in WITHOUT if getattr(sampling, name) is not None]
    if sampling.choices > 1:
        notes.changed.append(f"n {sampling.choices} -> 1")
    if sampling.top_logprobs is not None:
        notes.lost.append("logprobs")


def put_chances(
    document: dict[str, Any], sampling: Sampling, notes: Notes, *, is_thinking: bool
) -> None:
    """Temperature and its relatives."""
    given = {name: getattr(sampling, name) for name in WHILE_THINKING}
    given = {name: value for name, value in given.items() if value is not None}
    if is_thinking:
        notes.lost += [f"{name} (while thinking)" for name in given]
        return
    temperature = given.get("temperature")
    if temperature is not None and temperature > MAX_TEMPERATURE:
        notes.changed.append(f"temperature {temperature:g} -> {MAX_TEMPERATURE:g}")
        given["temperature"] = MAX_TEMPERATURE
    if temperature is not None and given.pop("top_p", None) is not None:
        notes.lost.append("top_p (beside temperature)")  # newer models take one of them
    document.update(given)


def put_format(document: dict[str, Any], conversation: Conversation, notes: Notes) -> None:
    """Structured output; this vendor has it by a schema only."""
    wanted = conversation.format
    if wanted is None:
        return
    if wanted.schema is None:
        notes.lost.append("response_format (json_object)")
        return
    document["output_config"] = {"format": {"type": "json_schema", "schema": wanted.schema}}


def budget_of(conversation: Conversation, notes: Notes) -> int:
    """How many tokens of thoughts are allowed; 0 for none."""
    sampling = conversation.sampling
    wanted = sampling.thinking_tokens
    if wanted is None:
        wanted = BUDGETS.get(sampling.effort or "", 0)
    if wanted <= 0:
        return 0
    reason = obstacle_of(conversation)
    budget = max(MIN_BUDGET_TOKENS, wanted)
    if sampling.max_tokens is not None:
        # The bound is of thoughts and words together: some is left for words.
        budget = min(budget, sampling.max_tokens * 3 // 4)
        if budget < MIN_BUDGET_TOKENS:
            reason = reason or "max_tokens is too low"
    if reason:
        notes.lost.append(f"reasoning effort ({reason})")
        return 0
    return budget


def obstacle_of(conversation: Conversation) -> str:
    """Why the vendor would refuse to think; empty when it would not."""
    if conversation.tools and conversation.tool_choice.how in FORCED:
        return "a tool is forced"
    turns = conversation.turns
    if not turns or not any(isinstance(part, ToolResult) for part in turns[-1].parts):
        return ""
    called = next((turn for turn in reversed(turns) if turn.role is Role.ASSISTANT), None)
    return "" if called is None or has_proof(called) else "calls without signed thoughts"


def has_proof(turn: Turn) -> bool:
    """Whether a turn begins with a thought that the vendor has signed."""
    first = turn.parts[0] if turn.parts else None
    return isinstance(first, Thinking) and first.signature.startswith(SIGNED)
