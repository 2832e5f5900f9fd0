"""What the imitated model says to a request: choices, tool calls, reasoning, usage."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cluster_gw.simulator.chat_request import ChatRequest, NamedChoice
from cluster_gw.simulator.directive import Directive, ScriptedUsage
from cluster_gw.simulator.faults import (
    BlankChunks,
    Fault,
    HugeAnswer,
    NoFinish,
    ReasoningOnly,
    RoleOnly,
)
from cluster_gw.simulator.sample_text import expected_text, split_pieces
from cluster_gw.simulator.schema_sample import sample_value

HUGE_PIECE_BYTES: Final = 4096  # one frame of a huge answer


class AnsweredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call; `fragments` joined are its arguments."""

    id: str
    name: str
    fragments: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """One for the name, one for each fragment."""
        return 1 + len(self.fragments)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; `pieces` joined are its text, `reasoning` joined its thoughts."""

    pieces: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    tool_calls: tuple[AnsweredCall, ...] = ()
    finish_reason: str | None = "stop"

    @property
    def tokens(self) -> int:
        """Tokens of everything said."""
        calls = sum(call.tokens for call in self.tool_calls)
        return len(self.pieces) + len(self.reasoning) + calls


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All choices, and how they are to be shown."""

    choices: tuple[Choice, ...]
    prompt_tokens: int
    reasoning_field: str = "reasoning_content"
    scripted_usage: ScriptedUsage | None = None
    has_logprobs: bool = False
    top_logprobs: int = 0

    @property
    def completion_tokens(self) -> int:
        """Tokens of all choices, as emitted."""
        return sum(choice.tokens for choice in self.choices)

    @property
    def billed_tokens(self) -> tuple[int, int]:
        """Prompt and completion tokens that are reported and charged for the whole answer."""
        if self.scripted_usage is not None:
            return self.scripted_usage.prompt_tokens, self.scripted_usage.completion_tokens
        return self.prompt_tokens, self.completion_tokens

    def usage(self) -> dict[str, Any]:
        """The usage object of the answer."""
        prompt_tokens, completion_tokens = self.billed_tokens
        cached = 0 if self.scripted_usage is None else self.scripted_usage.cached_tokens
        reasoning = sum(len(choice.reasoning) for choice in self.choices)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
        }


def compose_answer(
    request: ChatRequest, directive: Directive, *, seed: int, output_tokens: int
) -> Answer:
    """The answer to a valid request.

    Args:
        request: what was asked.
        directive: what the request wants instead of a generated answer.
        seed: the provider's own seed.
        output_tokens: length of a generated answer when nobody says another.
    """
    calls = _tool_calls(request, directive)
    count = directive.n or len(directive.texts) or request.n or 1
    choices = tuple(
        _choice(request, directive, index, calls, (seed, output_tokens)) for index in range(count)
    )
    wants_logprobs = request.logprobs if directive.logprobs is None else directive.logprobs
    return Answer(
        choices=choices,
        prompt_tokens=request.prompt_tokens,
        reasoning_field=directive.reasoning_field,
        scripted_usage=directive.usage,
        has_logprobs=bool(wants_logprobs),
        top_logprobs=request.top_logprobs or 0,
    )


def distort_answer(answer: Answer, faults: Sequence[Fault]) -> Answer:
    """The answer after those faults that change what is said."""
    for fault in faults:
        choices = tuple(_distorted(choice, fault) for choice in answer.choices)
        answer = msgspec.structs.replace(answer, choices=choices)
    return answer


def _distorted(choice: Choice, fault: Fault) -> Choice:
    match fault:
        case RoleOnly():
            return Choice(finish_reason=choice.finish_reason)
        case BlankChunks(only=True):
            return Choice(finish_reason=choice.finish_reason)
        case ReasoningOnly():
            thoughts = choice.reasoning + choice.pieces
            return Choice(reasoning=thoughts, finish_reason=choice.finish_reason)
        case HugeAnswer(size_bytes=size):
            whole, rest = divmod(size, HUGE_PIECE_BYTES)
            pieces = ("x" * HUGE_PIECE_BYTES,) * whole + (("x" * rest,) if rest else ())
            return msgspec.structs.replace(choice, pieces=pieces)
        case NoFinish():
            return msgspec.structs.replace(choice, finish_reason=None)
        case _:
            return choice


def _choice(
    request: ChatRequest,
    directive: Directive,
    index: int,
    calls: tuple[AnsweredCall, ...],
    defaults: tuple[int, int],
) -> Choice:
    thoughts = split_pieces(directive.reasoning or "")
    says_text = not calls or directive.text is not None or bool(directive.texts)
    said, is_complete = _pieces(request, directive, index, defaults) if says_text else ((), True)
    room = request.token_limit
    if room is not None and len(thoughts) + len(said) > room:
        thoughts = thoughts[:room]
        said = said[: room - len(thoughts)]
        is_complete = False
    finish = "length" if not is_complete else "tool_calls" if calls else "stop"
    return Choice(
        pieces=said,
        reasoning=thoughts,
        tool_calls=calls,
        finish_reason=directive.finish_reason or finish,
    )


def _pieces(
    request: ChatRequest, directive: Directive, index: int, defaults: tuple[int, int]
) -> tuple[tuple[str, ...], bool]:
    """Pieces of a choice's text, and whether all that was wanted is there."""
    seed, output_tokens = defaults
    wanted = output_tokens if directive.tokens is None else directive.tokens
    given = min(wanted, request.token_limit or wanted)
    if directive.texts:
        text = directive.texts[index % len(directive.texts)]
    elif directive.text is not None:
        text = directive.text
    else:
        text = expected_text(
            request.last_user_text,
            tokens=given,
            seed=seed,
            request_seed=request.seed,
            choice=index,
        )
        formatted = _as_format(request, text)
        stopped = _until_stop(formatted or text, request.stops)
        is_complete = given == wanted or formatted is not None or stopped != text
        return split_pieces(stopped), is_complete
    return split_pieces(_until_stop(text, request.stops)), True


def _as_format(request: ChatRequest, text: str) -> str | None:
    """The text as the JSON document that was asked for, or `None` when text was."""
    wanted = request.response_format
    if wanted is None or wanted.type == "text":
        return None
    document: Any = {"answer": text}
    if wanted.json_schema is not None:
        document = sample_value(wanted.json_schema.schema, text.partition(" ")[0])
    return msgspec.json.encode(document).decode()


def _until_stop(text: str, stops: Sequence[str]) -> str:
    found = [text.find(stop) for stop in stops if stop]
    return text[: min((at for at in found if at >= 0), default=len(text))]


def _tool_calls(request: ChatRequest, directive: Directive) -> tuple[AnsweredCall, ...]:
    """Scripted calls, else one call when the request insists on it."""
    if directive.tool_calls:
        return tuple(
            _answered_call(request, position, call.name, call.arguments, call.id)
            for position, call in enumerate(directive.tool_calls)
        )
    match request.tool_choice:
        case NamedChoice(function=function):
            name = function.name
        case "required":
            name = (request.tools or [])[0].function.name
        case _:
            return ()
    tool = next(tool for tool in request.tools or () if tool.function.name == name)
    arguments = sample_value({"type": "object", **(tool.function.parameters or {})}, "amber")
    return (_answered_call(request, 0, name, arguments, None),)


def _answered_call(
    request: ChatRequest, position: int, name: str, arguments: Any, call_id: str | None
) -> AnsweredCall:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    digest = hashlib.blake2b(f"{position}|{request.last_user_text}".encode(), digest_size=9)
    identity = call_id or f"call_{digest.hexdigest()}"
    return AnsweredCall(id=identity, name=name, fragments=split_pieces(text))
