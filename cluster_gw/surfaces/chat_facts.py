"""What routing needs to know of a chat request, read off the already decoded body."""

from typing import Final

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


def opening(messages: list[Message]) -> tuple[str, str]:
    """System texts before the first user text, and that text."""
    system = ""
    for message in messages:
        if message.role in SYSTEM_ROLES:
            system += text_of(message)
        elif message.role == "user":
            return system, text_of(message)
    return system, ""


def has_history(messages: list[Message]) -> bool:
    """Whether the model has answered before."""
    return any(message.role == "assistant" for message in messages)


def last_user_text(messages: list[Message]) -> str:
    """The text of the last user message."""
    for message in reversed(messages):
        if message.role == "user":
            return text_of(message)
    return ""


def max_tokens_of(body: ChatBody) -> int | None:
    """The client's bound of the output; 0 and below mean none."""
    given = body.max_completion_tokens
    if given is None:
        given = body.max_tokens
    return given if given is not None and given > 0 else None
