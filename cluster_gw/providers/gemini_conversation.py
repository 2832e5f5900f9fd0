"""A conversation as a generateContent request, for an upstream of Gemini's dialect."""

from typing import Any, Final

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Role,
    Sampling,
    Text,
    Tool,
    ToolChoice,
)
from cluster_gw.providers.gemini_contents import Contents, takes_one_of_both
from cluster_gw.providers.notes import Notes
from cluster_gw.wire.gemini_schema import to_gemini

JSON_MEDIA_TYPE: Final = "application/json"
MAX_STOPS: Final = 5  # the format's own bound
BUDGETS: Final = (
    ("none", 0), ("minimal", 0), ("low", 1024), ("medium", 8192), ("high", 24576), ("xhigh", 24576)
)  # fmt: skip
LEAST_BUDGETS: Final = (("gemini-2.5-pro", 128),)
"""Models that cannot do without thinking, and the least they take."""
PASSED: Final = (
    ("max_tokens", "maxOutputTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
)


def request_json(
    conversation: Conversation,
    model: str,
    notes: Notes,
    *,
    folds_system: bool = False,
    signs_calls: bool = False,
) -> dict[str, Any]:
    """The document of a request.

    Args:
        conversation: what to say.
        model: of the upstream.
        notes: is told what this format has no words for and what was given otherwise.
        folds_system: the model takes no system instruction; the first user turn says it.
        signs_calls: the model wants every call signed.
    """
    contents = Contents(notes.lost, notes.changed, signs_calls=signs_calls)
    system: list[dict[str, Any]] = []
    for place, turn in enumerate(conversation.turns):
        where = f"turn {place + 1}"
        if turn.role is Role.SYSTEM:
            if contents.items:
                notes.changed.append(f"{where}: system -> in front of everything")
            system += [{"text": part.text} for part in turn.parts if isinstance(part, Text)]
            notes.lost += [f"{where}: {name}" for name in turn.shown_kinds]
        else:
            contents.add(turn, where)
    items = contents.items
    document: dict[str, Any] = {"contents": items}
    if system and (folds_system or not items):
        fold(system, items)
        notes.changed.append("system -> the first user turn")
    elif system:
        document["systemInstruction"] = {"parts": system}
    put_tools(document, conversation.tools, conversation.tool_choice, notes)
    config = config_json(conversation.sampling, model, notes)
    if conversation.format is not None and conversation.tools and takes_one_of_both(model):
        notes.lost.append("response_format beside tools")
    elif conversation.format is not None:
        put_format(config, conversation.format, notes)
    if config:
        document["generationConfig"] = config
    if conversation.user is not None:
        notes.lost.append("user")
    return document


def fold(system: list[dict[str, Any]], items: list[dict[str, Any]]) -> None:
    """Say the system texts at the start of the first user turn."""
    first = items[0] if items else None
    if first is None or first["role"] != "user":
        items.insert(0, {"role": "user", "parts": system})
    else:
        first["parts"] = [*system, *first["parts"]]


def put_tools(
    document: dict[str, Any], tools: tuple[Tool, ...], choice: ToolChoice, notes: Notes
) -> None:
    """Declare the tools, and say which may or must be called; the default is not said."""
    if not tools:
        return
    declared = [tool_json(tool, notes) for tool in tools]
    document["tools"] = [{"functionDeclarations": declared}]
    if choice.parallel is False:
        notes.lost.append("parallel_tool_calls")
    config: dict[str, Any] = {}
    match choice.how:
        case Choosing.NONE:
            config["mode"] = "NONE"
        case Choosing.REQUIRED:
            config["mode"] = "ANY"
        case Choosing.NAMED:
            config.update({"mode": "ANY", "allowedFunctionNames": [choice.name]})
        case _:
            return
    document["toolConfig"] = {"functionCallingConfig": config}


def tool_json(tool: Tool, notes: Notes) -> dict[str, Any]:
    """A declared function; one without arguments has no schema here."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.is_strict:
        notes.lost.append(f"tool {tool.name}: strict")
    if tool.schema is not None:
        given = to_gemini(tool.schema)
        note_stripped(given.stripped, f"tool {tool.name}", notes)
        if given.schema is not None:
            function["parameters" if given.is_plain else "parametersJsonSchema"] = given.schema
    return function


def put_format(config: dict[str, Any], wanted: AnswerFormat, notes: Notes) -> None:
    """Ask for structured output."""
    config["responseMimeType"] = JSON_MEDIA_TYPE
    if wanted.description:
        notes.lost.append("response_format.description")
    if wanted.schema is None:
        return
    given = to_gemini(wanted.schema)
    note_stripped(given.stripped, "response_format", notes)
    if given.schema is not None:
        config["responseSchema" if given.is_plain else "responseJsonSchema"] = given.schema


def note_stripped(words: tuple[str, ...], where: str, notes: Notes) -> None:
    """Name the words of a schema that were left out."""
    if words:
        notes.changed.append(f"{where}: schema without {', '.join(words)}")


def config_json(sampling: Sampling, model: str, notes: Notes) -> dict[str, Any]:
    """How the answer is drawn."""
    config: dict[str, Any] = {
        name: value for own, name in PASSED if (value := getattr(sampling, own)) is not None
    }
    if sampling.stop:
        config["stopSequences"] = list(sampling.stop[:MAX_STOPS])
        if len(sampling.stop) > MAX_STOPS:
            notes.changed.append(f"stop: {len(sampling.stop)} texts -> {MAX_STOPS}")
    if sampling.choices > 1:
        config["candidateCount"] = sampling.choices
    if sampling.top_logprobs is not None:
        config["responseLogprobs"] = True
        if sampling.top_logprobs:
            config["logprobs"] = sampling.top_logprobs
    thinking = thinking_json(sampling, model, notes)
    if thinking:
        config["thinkingConfig"] = thinking
    return config


def thinking_json(sampling: Sampling, model: str, notes: Notes) -> dict[str, Any]:
    """How much to think, and whether to show it: unless told otherwise, who asks for it sees it."""
    thinking: dict[str, Any] = {}
    budget = sampling.thinking_tokens
    if budget is None and sampling.effort is not None:
        budget = dict(BUDGETS).get(sampling.effort)
        if budget is None:
            notes.lost.append(f"reasoning_effort {sampling.effort}")
    if budget is not None:
        least = next((least for name, least in LEAST_BUDGETS if name in model), 0)
        if budget < least:
            notes.changed.append(f"thinking budget {budget} -> {least}")
            budget = least
        thinking["thinkingBudget"] = budget
    shows = sampling.shows_thinking
    if shows is None and budget:
        shows = True
    if shows is not None:
        thinking["includeThoughts"] = shows
    return thinking
