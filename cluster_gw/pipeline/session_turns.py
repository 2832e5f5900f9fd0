"""Turns of a conversation that lack what the model said beside them, and turns with it."""

from collections.abc import Sequence

import msgspec

from cluster_gw.canonical.conversation import Role, Thinking, ToolUse, Turn
from cluster_gw.core.outcome.heard import FirstCall, words_of
from cluster_gw.pipeline.session_records import Thought
from cluster_gw.pipeline.targets import Recalls
from cluster_gw.providers.reasoning_echo import ECHOED


def newest_words(turns: Sequence[Turn]) -> dict[int, FirstCall | None]:
    """The newest turn of the model if it calls nothing, by its place."""
    places = [place for place, turn in enumerate(turns) if turn.role is Role.ASSISTANT]
    if not places or any(isinstance(part, ToolUse) for part in turns[places[-1]].parts):
        return {}
    return {places[-1]: words_of(turns[places[-1]].text)}


def openings(turns: Sequence[Turn], recalls: Recalls) -> list[tuple[int, ToolUse]]:
    """The first call of each run of the model's turns that lacks what is wanted, with its place."""
    found: list[tuple[int, ToolUse]] = []
    is_in_run = False
    for place, turn in enumerate(turns):
        use = next((part for part in turn.parts if isinstance(part, ToolUse)), None)
        if turn.role is not Role.ASSISTANT:
            is_in_run = False
        elif use is not None and not is_in_run:
            is_in_run = True
            if recalls is Recalls.REASONING or not use.signature:
                found.append((place, use))
    return found


def with_thought(turn: Turn, thought: Thought) -> Turn:
    """A turn of the model with what it thought, and with the proofs of its calls."""
    proofs = iter(thought.signatures)
    parts = [
        msgspec.structs.replace(part, signature=part.signature or next(proofs, ""))
        if isinstance(part, ToolUse)
        else part
        for part in turn.parts
        # What the client brought along of it would only be told to be lost.
        if not (isinstance(part, Thinking) and part.text == thought.reasoning)
    ]
    mind = [Thinking(text=thought.reasoning, signature=ECHOED)] if thought.reasoning else []
    return msgspec.structs.replace(turn, parts=(*mind, *parts))


def with_blank(turn: Turn) -> Turn:
    """A turn of the model with an empty thought where it has none that is sent."""
    if turn.role is not Role.ASSISTANT or any(
        isinstance(part, Thinking) and part.signature == ECHOED for part in turn.parts
    ):
        return turn
    return msgspec.structs.replace(turn, parts=(Thinking(signature=ECHOED), *turn.parts))
