"""A recorded stream told as a whole answer, and that as a stream again, says the same."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.core.cache_rules import is_whole
from cluster_gw.core.outcome.tally import Tally
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from tests.golden.corpus import events_of

FOLDER: Final = Path(__file__).parent
CODECS: Final[dict[str, type[Any]]] = {
    "anthropic": AnthropicProvider,
    "gemini": GeminiProvider,
    "responses": OpenAIResponsesProvider,
    "streams": OpenAIChatProvider,
}
WITHOUT: Final = frozenset({"mistral-thinking"})
"""Streams that have no other form: thoughts stand in lists of parts."""
STREAMS: Final = sorted(path for folder in CODECS for path in (FOLDER / folder).glob("*.sse"))


def calls_of(fragments: Iterable[ToolCallDelta]) -> dict[int, list[str]]:
    """Names and arguments of calls by their number."""
    told: dict[int, list[str]] = {}
    for one in fragments:
        call = told.setdefault(one.index, ["", ""])
        call[0] += one.name or ""
        call[1] += one.arguments
    return {index: [name, normal(words)] for index, (name, words) in told.items()}


def normal(arguments: str) -> str:
    return repr(msgspec.json.decode(arguments or "{}"))


def told_by(events: list[StreamEvent]) -> tuple[Any, ...]:
    """What a stream says."""
    tally = Tally(1)
    for event in events:
        tally.add(event)
    text = "".join(event.text for event in events)
    calls = calls_of(call for event in events for call in event.tool_calls)
    return text, calls, tally.finish_reason, tally.usage


def told_whole(completion: Completion) -> tuple[Any, ...]:
    """What a whole answer says."""
    calls = calls_of(completion.tool_calls)
    return completion.text, calls, completion.finish_reason, completion.usage


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_answer_says_the_same_in_its_other_form(path: Path) -> None:
    codec: Any = CODECS[path.parent.name]()
    stream = path.read_bytes()
    events = events_of(codec.stream_decoder(), stream)
    tally = Tally(1)
    for event in events:
        tally.add(event)
    whole = codec.as_whole(stream)
    if tally.verdict_at_end(None) is not None or not is_whole([tally.finish_reason]):
        return  # it is never stored
    if path.stem in WITHOUT:
        assert whole is None
        return
    assert whole is not None
    completion = codec.decode_completion(whole, "application/json")
    assert isinstance(completion, Completion)
    assert told_whole(completion) == told_by(events)
    if codec.tells_whole:
        again = codec.as_stream(whole)
        assert again is not None
        assert told_by(events_of(codec.stream_decoder(), again)) == told_by(events)
        back = codec.as_whole(again)
        assert back is not None
        assert msgspec.json.decode(back) == msgspec.json.decode(whole)
