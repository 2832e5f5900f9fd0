"""Vectors that follow from their text alone, in the OpenAI dialect."""

import base64
import hashlib
import math
import struct
from typing import Annotated, Any, Final, Literal

import msgspec

from cluster_gw.simulator.api_error import ApiError, invalid
from cluster_gw.simulator.chat_request import CHARACTERS_PER_TOKEN, parameter_of

BYTE_CENTRE: Final = 127.5


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Texts, or token numbers, to turn into vectors."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=8192)] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The inputs one by one, token numbers written out."""
        if isinstance(self.input, str):
            return (self.input,)
        if all(isinstance(each, int) for each in self.input):
            return (" ".join(map(str, self.input)),)
        return tuple(each if isinstance(each, str) else str(each) for each in self.input)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all inputs: characters / 4, rounded up; a token number is one."""
        if isinstance(self.input, str):
            return math.ceil(len(self.input) / CHARACTERS_PER_TOKEN)
        characters = sum(len(each) for each in self.input if isinstance(each, str))
        numbers = sum(len(each) for each in self.input if isinstance(each, list))
        numbers += sum(isinstance(each, int) for each in self.input)
        return math.ceil(characters / CHARACTERS_PER_TOKEN) + numbers


def decode_embedding_request(body: bytes) -> EmbeddingRequest | ApiError:
    """The request, or the 400 the provider answers."""
    try:
        request = msgspec.json.decode(body, type=EmbeddingRequest)
    except msgspec.ValidationError as error:
        return invalid(str(error), param=parameter_of(str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return invalid("We could not parse the JSON body of your request.")
    if not request.texts or not all(request.texts):
        return invalid("'$.input' is invalid.", param="input")
    return request


def expected_vector(text: str, dimensions: int) -> tuple[float, ...]:
    """The unit vector of a text."""
    digest = hashlib.shake_128(text.encode()).digest(dimensions)
    raw = [byte - BYTE_CENTRE for byte in digest]
    length = math.sqrt(sum(value * value for value in raw))
    return tuple(value / length for value in raw)


def embedding_body(request: EmbeddingRequest, dimensions: int) -> bytes:
    """The JSON document of the answer."""
    data: list[dict[str, Any]] = []
    for index, text in enumerate(request.texts):
        vector = expected_vector(text, request.dimensions or dimensions)
        shown: Any = vector
        if request.encoding_format == "base64":
            packed = struct.pack(f"<{len(vector)}f", *vector)
            shown = base64.b64encode(packed).decode()
        data.append({"object": "embedding", "index": index, "embedding": shown})
    tokens = request.prompt_tokens
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    document = {"object": "list", "data": data, "model": request.model, "usage": usage}
    return msgspec.json.encode(document)
