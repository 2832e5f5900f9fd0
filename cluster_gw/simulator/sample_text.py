"""Text that follows from its inputs alone, so that a test can foretell it."""

import hashlib
import re
from typing import Final

# Some words are not ASCII: a reader that splits UTF-8 in the middle of a character must survive.
WORDS: Final = tuple(
    re.findall(
        r"\S+",
        "amber basin cedar delta ember fjord grove haven inlet jade knoll lagoon maple north oasis "
        "prairie quartz ridge slate tundra umber valley willow xenon yarrow zephyr größe naïve "
        "東京 señal über 🌊",
    )
)
WORDS_PER_DIGEST: Final = 32
PIECE: Final = re.compile(r"\s*\S{1,12}|\s+")


def expected_text(
    user_text: str,
    *,
    tokens: int,
    seed: int = 0,
    request_seed: int | None = None,
    choice: int = 0,
) -> str:
    """The answer to a last user message, unless a directive or a format sets another.

    Args:
        user_text: text of the last user message, a directive in it included.
        tokens: length in word pieces: the directive's, else `output_tokens`, at most `max_tokens`.
        seed: the provider's own seed.
        request_seed: `seed` of the request.
        choice: index of the choice.
    """
    return " ".join(_words(f"{seed}|{request_seed}|{choice}|{user_text}", tokens))


def split_pieces(text: str) -> tuple[str, ...]:
    """The word pieces of a text, joined equal to it; their number is its tokens."""
    return tuple(PIECE.findall(text))


def _words(source: str, count: int) -> list[str]:
    words: list[str] = []
    for block in range(-(-count // WORDS_PER_DIGEST)):
        digest = hashlib.blake2b(f"{block}|{source}".encode(), digest_size=WORDS_PER_DIGEST)
        words.extend(WORDS[byte % len(WORDS)] for byte in digest.digest())
    return words[:count]
