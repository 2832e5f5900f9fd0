"""What routing needs to know of a messages request, read off the already decoded body."""

from typing import Final, NamedTuple

from cluster_gw.wire.anthropic_messages import Block, Inner, Message, MessagesBody, Source

IMAGE: Final = "image"
DOCUMENT: Final = "document"
DOCUMENT_CHARACTERS: Final = 8000  # of a PDF by its address or its bytes: about 2,000 tokens


class Talk(NamedTuple):
    """What was said, as far as routing looks at it.

    Attributes:
        characters: the system prompt and the tools, where there are any, then each message.
        images: image blocks, those in results of tools among them.
    """

    characters: tuple[int, ...]
    images: int
    system_text: str
    first_user_text: str
    last_user_text: str
    has_history: bool


def talk_of(body: MessagesBody) -> Talk:
    """Look at the request once."""
    system_text, has_history, images = system_of(body), False, 0
    before = (len(system_text), sum(map(len, body.tools or ())))
    characters = [count for count in before if count]
    first: Message | None = None
    last: Message | None = None
    for message in body.messages:
        if message.role == "assistant":
            has_history = True
        elif says_something(message):
            last = message
            first = first or message
        content = message.content
        if isinstance(content, str):
            characters.append(len(content))
        else:
            characters.append(sum(map(characters_of, content)))
            images += sum(map(images_of, content))
    first_text = "" if first is None else text_of(first)
    last_text = first_text if last is first or last is None else text_of(last)
    return Talk(tuple(characters), images, system_text, first_text, last_text, has_history)


def system_of(body: MessagesBody) -> str:
    """All text of the system prompt."""
    system = body.system
    if system is None or isinstance(system, str):
        return system or ""
    return "".join([block.text or "" for block in system])


def says_something(message: Message) -> bool:
    """Whether a user speaks, and not tools alone."""
    content = message.content
    return isinstance(content, str) or any(block.type != "tool_result" for block in content)


def text_of(message: Message) -> str:
    """All text of one message."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join([block.text or "" for block in content])


def characters_of(block: Block) -> int:
    """Text characters of one block: words, thoughts, calls and results of tools."""
    count = len(block.text or "") + len(block.thinking or "") + len(bytes(block.input))
    content = block.content
    if isinstance(content, str):
        count += len(content)
    elif isinstance(content, list):
        count += sum([inner_characters(inner) for inner in content])
    if block.type == DOCUMENT and isinstance(block.source, Source):
        is_text = block.source.type == "text"
        count += len(block.source.data or "") if is_text else DOCUMENT_CHARACTERS
    return count


def inner_characters(inner: Inner) -> int:
    """Text characters of one block inside a result."""
    return DOCUMENT_CHARACTERS if inner.type == DOCUMENT else len(inner.text or "")


def images_of(block: Block) -> int:
    """Images in one block."""
    if block.type == IMAGE:
        return 1
    inside = block.content
    return sum(inner.type == IMAGE for inner in inside) if isinstance(inside, list) else 0
