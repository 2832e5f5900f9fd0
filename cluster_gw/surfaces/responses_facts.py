"""What routing needs to know of a Responses request, read off the already decoded body."""

from collections.abc import Iterator, Sequence
from typing import Final

from cluster_gw.surfaces.chat_bounds import Excess, excess_of_parts
from cluster_gw.surfaces.chat_facts import SYSTEM_ROLES, Talk
from cluster_gw.wire.openai_responses import InputItem, InputPart, ResponsesBody

MAX_INPUT_ITEMS: Final = 20_000
SPOKEN_TYPES: Final = frozenset({"function_call", "custom_tool_call", "reasoning"})
REFERENCE: Final = "item_reference"
IMAGE: Final = "input_image"


def excess_of(body: ResponsesBody) -> Excess | None:
    """The bound that a request exceeds."""
    if not isinstance(body.input, list):
        return None
    count = len(body.input)
    if count > MAX_INPUT_ITEMS:
        return Excess("input", f"input holds {count} items; the limit is {MAX_INPUT_ITEMS}.")
    return excess_of_parts(
        "input",
        (
            (f"input[{place}].{name}", len(parts))
            for place, item in enumerate(body.input)
            for name, parts in parts_in(item)
        ),
    )


def items_of(body: ResponsesBody) -> list[InputItem]:
    """Every item; what stands as a text is a message of its own."""
    instructions, given = body.instructions, body.input
    items: list[InputItem] = []
    if isinstance(instructions, str):
        items.append(InputItem(role="system", content=instructions))
    elif instructions is not None:
        items += instructions
    if isinstance(given, str):
        items.append(InputItem(role="user", content=given))
    elif given is not None:
        items += given
    return items


def characters_of(items: Sequence[InputItem]) -> tuple[int, ...]:
    """Text characters of each item."""
    return tuple([characters_in(item) for item in items])


def characters_in(item: InputItem) -> int:
    """Text characters of what is said, asked of a tool and given back by it."""
    output = item.output
    count = length(item.content) + len(item.arguments or "")
    if output is None or not isinstance(output, str | list):
        return count
    return count + length(output)


def length(given: str | list[InputPart] | None) -> int:
    """Characters of a text, or of all parts."""
    return len(given) if isinstance(given, str) else len(joined(given))


def joined(given: str | list[InputPart] | None) -> str:
    """A text, or that of all parts."""
    if given is None or isinstance(given, str):
        return given or ""
    return "".join([part.text or "" for part in given])


def parts_in(item: InputItem) -> Iterator[tuple[str, list[InputPart]]]:
    """The parts of content and output, where they are parts."""
    if isinstance(item.content, list):
        yield "content", item.content
    if isinstance(item.output, list):
        yield "output", item.output


def count_images(items: Sequence[InputItem]) -> int:
    """Image parts over all items."""
    return sum(
        part.type == IMAGE
        for item in items
        if isinstance(item.content, list) or isinstance(item.output, list)
        for _, parts in parts_in(item)
        for part in parts
    )


def reference_in(body: ResponsesBody) -> tuple[str, bool] | None:
    """Path of the first thing that is only named by its id, and whether that is a file."""
    for member, items in (("instructions", body.instructions), ("input", body.input)):
        for place, item in enumerate(items if isinstance(items, list) else ()):
            if item.type == REFERENCE:
                return f"{member}[{place}]", False
            for name, parts in parts_in(item):
                for number, part in enumerate(parts):
                    if part.file_id is not None:
                        return f"{member}[{place}].{name}[{number}].file_id", True
    return None


def talk_of(items: Sequence[InputItem]) -> Talk:
    """What was said, as far as routing looks at it."""
    system_text, has_history = "", False
    first: InputItem | None = None
    last: InputItem | None = None
    for item in items:
        if item.role == "user":
            last = item
            first = first or item
        elif item.role == "assistant" or item.type in SPOKEN_TYPES:
            has_history = True
        elif first is None and item.role in SYSTEM_ROLES:
            system_text += joined(item.content)
    return Talk(
        system_text,
        "" if first is None else joined(first.content),
        "" if last is None else joined(last.content),
        has_history,
    )
