"""Whether a failure says that a model takes no tools (room 10).

Providers name models that call tools and refuse them all the same: the runtime was started without
a parser, the host behind a router has none. The vendor's text is looked at and never kept.
"""

import re
from typing import Final

from cluster_gw.canonical.failure import Fault, FaultKind

ANSWERED: Final = frozenset({FaultKind.HTTP_STATUS, FaultKind.IN_BAND})
STATUSES: Final = frozenset({None, 400, 404, 405, 422, 500, 501})

_TOOLS: Final = (
    r"(?:tools|tool[ _-](?:use|usage|calls?|calling)|function[ _-]calls?|function[ _-]calling)"
)
_NOT: Final = r"(?:not (?:supported|enabled|available|allowed|implemented)|unsupported)"
REFUSES: Final = re.compile(
    rf"\b{_TOOLS}\b['\"`]? ?.{{0,40}}\b{_NOT}"
    rf"|(?:\bnot|n't|\bcannot|\bunable to) (?:currently )?support\b.{{0,40}}\b{_TOOLS}\b"
    rf"|\bno endpoints found that support {_TOOLS}"
    rf"|\bunsupported param(?:eter)?\W{{1,4}}{_TOOLS}\b"
    r"|\btools param requires\b|--enable-auto-tool-choice",
    re.IGNORECASE,
)
"""Ollama, Groq, OpenRouter, llama.cpp, vLLM and those that sound like them."""
A_PART: Final = re.compile(r"\bparallel\b|\bstrict\b|\brequired\b|\bnamed\b", re.IGNORECASE)
"""A way to call tools is refused, not tools."""


def refuses_tools(fault: Fault) -> bool:
    """Tell whether a provider refused a request for its tools.

    Args:
        fault: of a request that had some.
    """
    if fault.kind not in ANSWERED or fault.status not in STATUSES:
        return False
    text = " ".join(part for part in (fault.type, fault.code, fault.message) if part)
    return REFUSES.search(text) is not None and A_PART.search(text) is None
