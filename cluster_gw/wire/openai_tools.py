"""The tools a request of OpenAI's dialect declares, and the arguments of a call, decoded."""

from typing import Any, Final

import msgspec

from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    read_any,
)


class ToolFunction(msgspec.Struct):
    """The function of a declared tool."""

    name: str
    parameters: Any = None


class Tool(msgspec.Struct):
    """A declared tool; those of other kinds have no function.

    The Responses API says name and parameters beside the kind, not one level below.
    """

    function: ToolFunction | None = None
    name: str | None = None
    parameters: Any = None

    @property
    def called(self) -> ToolFunction | None:
        """The function, wherever it stands."""
        if self.function is not None or self.name is None:
            return self.function
        return ToolFunction(name=self.name, parameters=self.parameters)


TOOLS_READER: Final = JsonReader[list[Tool] | None](list[Tool] | None)
FUNCTIONS_READER: Final = JsonReader[list[ToolFunction] | None](list[ToolFunction] | None)


def read_tools(fields: Fields) -> dict[str, Any]:
    """Give the declared functions by name, each with its schema, or None where that is no object.

    What cannot be read declares nothing.
    """
    functions: list[ToolFunction] = []
    try:
        if "tools" in fields:
            tools = TOOLS_READER.read(fields["tools"]) or []
            functions += [one for tool in tools if (one := tool.called) is not None]
        if "functions" in fields:
            functions += FUNCTIONS_READER.read(fields["functions"]) or []
    except (InvalidJsonError, UnexpectedShapeError):
        return {}
    return {
        one.name: one.parameters if isinstance(one.parameters, dict) else None for one in functions
    }


def read_arguments(text: str) -> Any:
    """Decode the arguments of a call; none at all are an empty object.

    Raises:
        InvalidJsonError: they are no JSON.
    """
    return read_any(text.encode("utf-8", "surrogatepass")) if text.strip() else {}
