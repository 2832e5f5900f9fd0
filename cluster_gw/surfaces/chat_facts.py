"""What routing needs to know of a chat request, read off the already decoded body."""

from typing import Final, NamedTuple

from cluster_gw.wire.openai_chat import ChatBody, Message, Part

SYSTEM_ROLES: Final = frozenset({"system", "developer"})
IMAGE_TYPES: Final = frozenset({"image_url", "input_image", "image"})


def characters_of(message: Message) -> int:
    """Text characters of one message."""
    content = message.content
    if content is None:
        return 0
    if isinstance(content, str):
        return len(content)
    return sum(len(part_text(part)) for part in content)


def part_text(part: str | Part) -> str:
    """The text of one part of a message; empty for images and the like."""
    return part if isinstance(part, str) else part.text or ""


def text_of(message: Message) -> str:
    """All text of one message."""
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(map(part_text, content))


def count_images(messages: list[Message]) -> int:
    """Image parts over all messages."""
    return sum(
        1
        for message in messages
        if isinstance(message.content, list)
        for part in message.content
        if isinstance(part, Part) and part.type in IMAGE_TYPES
    )


class Talk(NamedTuple):
    """What was said, as far as routing looks at it.

    Attributes:
        system_text: system texts before the first user text.
        first_user_text: the first user text.
        last_user_text: the last one.
        has_history: whether the model has answered before.
    """

    system_text: str
    first_user_text: str
    last_user_text: str
    has_history: bool


def talk_of(messages: list[Message]) -> Talk:
    """Look at the messages once."""
    system_text, has_history = "", False
    first: Message | None = None
    last: Message | None = None
    for message in messages:
        role = message.role
        if role == "user":
            last = message
            first = first or message
        elif role == "assistant":
            has_history = True
        elif first is None and role in SYSTEM_ROLES:
            system_text += text_of(message)
    first_text = "" if first is None else text_of(first)
    last_text = first_text if last is first or last is None else text_of(last)
    return Talk(system_text, first_text, last_text, has_history)


def max_tokens_of(body: ChatBody) -> int | None:
    """The client's bound of the output; 0 and below mean none."""
    given = body.max_completion_tokens
    if given is None:
        given = body.max_tokens
    return given if given is not None and given > 0 else None
