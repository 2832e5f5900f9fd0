"""What routing needs to know of a Responses request, read off the already decoded body."""

from collections.abc import Iterator
from typing import Final

from cluster_gw.surfaces.chat_bounds import MAX_ALL_PARTS, MAX_ITEMS, MAX_PARTS, Excess
from cluster_gw.surfaces.chat_facts import SYSTEM_ROLES, Talk
from cluster_gw.wire.openai_responses import InputItem, InputPart, ResponsesBody

MAX_INPUT_ITEMS: Final = 20_000
SPOKEN_TYPES: Final = frozenset({"function_call", "custom_tool_call", "reasoning"})
REFERENCE: Final = "item_reference"
IMAGE: Final = "input_image"
TOO_MANY: Final = Excess(None, f"The body holds more than {MAX_ITEMS} strings or objects.")


def excess_of(body: ResponsesBody) -> Excess | None:
    """The bound that a request exceeds."""
    if not isinstance(body.input, list):
        return None
    count = len(body.input)
    if count > MAX_INPUT_ITEMS:
        return Excess("input", f"input holds {count} items; the limit is {MAX_INPUT_ITEMS}.")
    total = 0
    for place, item in enumerate(body.input):
        for name, parts in (("content", item.content), ("output", item.output)):
            if isinstance(parts, list):
                total += len(parts)
                if len(parts) > MAX_PARTS:
                    path = f"input[{place}].{name}"
                    message = f"{path} holds {len(parts)} parts; the limit is {MAX_PARTS}."
                    return Excess(path, message)
    if total > MAX_ALL_PARTS:
        message = f"input holds {total} content parts together; the limit is {MAX_ALL_PARTS}."
        return Excess("input", message)
    return None


def items_of(body: ResponsesBody) -> Iterator[tuple[str, InputItem]]:
    """Every item with its path; what stands as a text is a message of its own."""
    instructions, given = body.instructions, body.input
    if isinstance(instructions, str):
        yield "instructions", InputItem(role="system", content=instructions)
    for place, item in enumerate(instructions if isinstance(instructions, list) else ()):
        yield f"instructions[{place}]", item
    if isinstance(given, str):
        yield "input", InputItem(role="user", content=given)
    for place, item in enumerate(given if isinstance(given, list) else ()):
        yield f"input[{place}]", item


def characters_of(body: ResponsesBody) -> tuple[int, ...]:
    """Text characters of each item."""
    return tuple(
        len(text_of(item)) + len(item.arguments or "") + len(output_of(item))
        for _, item in items_of(body)
    )


def text_of(item: InputItem) -> str:
    """All text of an item's content."""
    return joined(item.content)


def output_of(item: InputItem) -> str:
    """All text that a tool gave back."""
    output = item.output
    return joined(output) if output is None or isinstance(output, str | list) else ""


def joined(given: str | list[InputPart] | None) -> str:
    """A text, or that of all parts."""
    if given is None or isinstance(given, str):
        return given or ""
    return "".join([part.text or "" for part in given])


def parts_of(body: ResponsesBody) -> Iterator[tuple[str, InputPart]]:
    """Every part of content and output with its path."""
    for path, item in items_of(body):
        for name, parts in (("content", item.content), ("output", item.output)):
            if isinstance(parts, list):
                for place, part in enumerate(parts):
                    yield f"{path}.{name}[{place}]", part


def count_images(body: ResponsesBody) -> int:
    """Image parts over all items."""
    return sum(1 for _, part in parts_of(body) if part.type == IMAGE)


def referred_item(body: ResponsesBody) -> str | None:
    """Path of the first item that only names another one."""
    return next((path for path, item in items_of(body) if item.type == REFERENCE), None)


def referred_file(body: ResponsesBody) -> str | None:
    """Path of the first part that only names a file."""
    return next(
        (f"{path}.file_id" for path, part in parts_of(body) if part.file_id is not None), None
    )


def talk_of(body: ResponsesBody) -> Talk:
    """What was said, as far as routing looks at it."""
    system_text, has_history = "", False
    first: InputItem | None = None
    last: InputItem | None = None
    for _, item in items_of(body):
        if item.role == "user":
            last = item
            first = first or item
        elif item.role == "assistant" or item.type in SPOKEN_TYPES:
            has_history = True
        elif first is None and item.role in SYSTEM_ROLES:
            system_text += text_of(item)
    return Talk(
        system_text,
        "" if first is None else text_of(first),
        "" if last is None else text_of(last),
        has_history,
    )
