"""Whether a failure says that a model takes no tools."""

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.outcome.tools_refused import refuses_tools


def refused(status: int | None, message: str, kind: FaultKind = FaultKind.HTTP_STATUS) -> bool:
    return refuses_tools(Fault(kind=kind, sent=Sent.SENT, status=status, message=message))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma3:1b does not support tools"),
        (400, "`tool calling` is not supported with this model"),
        (404, "No endpoints found that support tool use. To learn more about provider routing"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (422, "This model doesn't support function calling."),
        (400, "Tool use is not supported for this model"),
        (400, "tools is not supported in this model"),
    ],
)
def test_refusals_of_tools_are_known_by_what_vendors_write(status: int, message: str) -> None:
    assert refused(status, message)
    assert refused(None, message, FaultKind.IN_BAND)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Parallel tool calls are not supported with this model"),
        (400, "tool_choice 'required' is not supported: tools are not supported that way"),
        (400, "strict tools are not supported"),
        (400, "Failed to call a function. Please adjust your prompt."),
        (400, "tools[0].function.name: string does not match pattern"),
        (400, "images in a tool message are not supported"),
        (404, "The model does not exist"),
        (400, "temperature is not supported with this model"),
        (429, "tools are not supported on the free plan today"),
        (401, "does not support tools"),
    ],
)
def test_other_failures_say_nothing_of_tools(status: int, message: str) -> None:
    assert not refused(status, message)


def test_what_we_found_wrong_ourselves_says_nothing() -> None:
    assert not refused(None, "does not support tools", FaultKind.GATE)
