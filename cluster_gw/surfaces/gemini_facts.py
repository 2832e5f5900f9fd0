"""What routing needs to know of a generateContent request, and how crowded one may be."""

from typing import Final, NamedTuple

import msgspec

from cluster_gw.surfaces.chat_bounds import (
    MAX_ITEMS,
    MAX_MESSAGES,
    MIN_ITEM_BYTES,
    UNCOUNTED_BYTES,
    Excess,
    excess_of_crowd,
    excess_of_parts,
    excess_of_values,
    is_crowded,
    too_many,
)
from cluster_gw.wire.gemini import AnyObject, FactsBody, FactsConfig, FactsContent, FactsPart
from cluster_gw.wire.gemini_names import has_other_names
from cluster_gw.wire.json_codec import JsonReader

MODEL_ROLE: Final = "model"
KEPT: Final = ("https://generativelanguage.googleapis.com/", "gs://")
JSON_MEDIA_TYPE: Final = "application/json"


class Crowd(msgspec.Struct):
    """A body of which only the contents are counted."""

    contents: list[AnyObject]


CROWD_READER: Final = JsonReader[Crowd](Crowd)


class Talk(NamedTuple):
    """What was said, as far as routing looks at it; see `canonical.request.ChatRequest`."""

    input_characters: tuple[int, ...]
    image_count: int
    system_text: str
    first_user_text: str
    last_user_text: str
    has_history: bool


def excess_of_body(body: bytes) -> Excess | None:
    """The bound that a body surely exceeds, told without reading it.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is crowded and no request at all.
    """
    if len(body) <= MIN_ITEM_BYTES * MAX_ITEMS:
        return None
    if not is_crowded(body):  # what has other names is read whole
        return excess_of_values(body, MAX_ITEMS) if has_other_names(body) else None
    return excess_of_crowd("contents", len(CROWD_READER.read(body).contents))


def excess_of(body: FactsBody, size_bytes: int) -> Excess | None:
    """The bound that a request of that many bytes exceeds."""
    if size_bytes <= UNCOUNTED_BYTES:
        return None
    contents = contents_of(body)
    if len(contents) > MAX_MESSAGES:
        return too_many("contents", len(contents))
    return excess_of_parts(
        "contents",
        (
            (f"contents[{place}].parts", len(parts_of(content)))
            for place, content in enumerate(contents)
        ),
    )


def contents_of(body: FactsBody) -> list[FactsContent]:
    """All contents; the vendor takes one alone as well."""
    return [body.contents] if isinstance(body.contents, FactsContent) else body.contents


def parts_of(content: FactsContent) -> list[FactsPart]:
    """All parts of a content; the vendor takes one alone as well."""
    if isinstance(content.parts, FactsPart):
        return [content.parts]
    return content.parts or []


def text_of(content: FactsContent) -> str:
    """All text of a content."""
    return "".join([part.text for part in parts_of(content) if part.text])


def talk_of(body: FactsBody) -> Talk:
    """Look at the contents once."""
    system = body.system_instruction
    system_text = text_of(system) if isinstance(system, FactsContent) else system or ""
    counts = [len(system_text)] if system_text else []
    first = last = None
    has_history, image_count = False, 0
    for content in contents_of(body):
        parts = parts_of(content)
        text = "".join([part.text for part in parts if part.text])
        counts.append(len(text))
        image_count += sum([is_image(part) for part in parts if part.text is None])
        if content.role == MODEL_ROLE:
            has_history = True
        elif text:
            last = text
            first = text if first is None else first
    return Talk(tuple(counts), image_count, system_text, first or "", last or "", has_history)


def kept_elsewhere(body: FactsBody) -> str | None:
    """The path of what names state that a vendor keeps for somebody; None without such a thing."""
    if body.cached_content:
        return "cachedContent"
    for place, content in enumerate(contents_of(body)):
        for number, part in enumerate(parts_of(content)):
            if part.file_data is not None and (part.file_data.file_uri or "").startswith(KEPT):
                return f"contents[{place}].parts[{number}].fileData.fileUri"
    return None


def is_image(part: FactsPart) -> bool:
    """Whether a part shows an image."""
    media = part.inline_data or part.file_data
    return media is not None and (media.mime_type or "").startswith("image/")


def wants_format(config: FactsConfig) -> bool:
    """Whether structured output is asked for."""
    return (
        config.response_schema is not None
        or config.response_json_schema is not None
        or config.response_mime_type == JSON_MEDIA_TYPE
    )
