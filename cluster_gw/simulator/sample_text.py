"""Text and JSON values that follow from their inputs alone, so that a test can foretell them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

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
MAX_DEPTH: Final = 12


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


def sample_value(schema: Mapping[str, Any], word: str) -> Any:
    """A JSON value that obeys a schema; texts are made of `word`.

    Understands type, enum, const, properties, items, minItems, minLength, minimum, anyOf, oneOf,
    allOf and local references; anything else is ignored.
    """
    return _sample(schema, schema, word, 0)


def _sample(root: Mapping[str, Any], schema: Mapping[str, Any], word: str, depth: int) -> Any:
    schema = _resolved(root, schema)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _sample(root, schema[key][0], word, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, Sequence) and not isinstance(kind, str):
        kind = kind[0]
    if kind == "object":
        return _sample_object(root, schema, word, depth)
    if kind == "array":
        return _sample_array(root, schema, word, depth)
    return _sample_scalar(str(kind), schema, word)


def _resolved(root: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema a local reference means; chains are followed, a dead end means anything."""
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref")
        if reference is None:
            return schema
        target: Any = root
        for step in str(reference).removeprefix("#").strip("/").split("/"):
            target = target.get(step, {}) if step and isinstance(target, Mapping) else target
        schema = target if isinstance(target, Mapping) else {}
    return {}


def _sample_object(
    root: Mapping[str, Any], schema: Mapping[str, Any], word: str, depth: int
) -> dict[str, Any]:
    """All properties; only the required ones once the schema has proved to be deep."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    return {
        name: _sample(root, inner, word, depth + 1)
        for name, inner in properties.items()
        if depth < MAX_DEPTH // 2 or (name in required and depth < MAX_DEPTH)
    }


def _sample_array(
    root: Mapping[str, Any], schema: Mapping[str, Any], word: str, depth: int
) -> list[Any]:
    count = schema.get("minItems", 1 if depth < MAX_DEPTH // 2 else 0)
    return [
        _sample(root, schema.get("items", {"type": "string"}), word, depth + 1)
        for _ in range(count if depth < MAX_DEPTH else 0)
    ]


def _sample_scalar(kind: str, schema: Mapping[str, Any], word: str) -> Any:
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return word.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
