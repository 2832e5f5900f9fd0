"""What routing needs to know of one request, computed once (room 3).

Affinity and session keys are hashes that start with the client's id: prompt text never travels, and
two clients never share a pin.
"""

from hashlib import blake2b

import msgspec

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.limits.demand import Demand, estimate_demand
from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.units import ClientId

KEY_BYTES = 16
MAX_LABEL_CHARACTERS = 255  # a longer run or session label means no label (field convention)


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities a route must have."""

    tools: bool
    vision: bool
    format: bool


class RouteContext(msgspec.Struct, frozen=True, kw_only=True):
    """The request as routing sees it.

    Attributes:
        affinity_key: hash of client, system text and first user text; 32 hex characters.
        run_key: hash of the client's run label, else the affinity key.
        session_key: hash of the client's session label, else the affinity key.
    """

    resolved: Resolved
    needs: Needs
    demand: Demand
    affinity_key: str
    run_key: str
    session_key: str


def build_context(
    request: ChatRequest,
    resolved: Resolved,
    client: ClientId,
    *,
    run_label: str | None = None,
    session_label: str | None = None,
) -> RouteContext:
    """Derive needs, demand and keys; labels are what the client sent in its headers, or None."""
    affinity = _scoped_key(client, "affinity", request.affinity_text)
    return RouteContext(
        resolved=resolved,
        needs=Needs(
            tools=request.wants_tools,
            vision=request.image_count > 0,
            format=request.wants_format,
        ),
        demand=estimate_demand(request),
        affinity_key=affinity,
        run_key=_labelled_key(client, "run", run_label) or affinity,
        session_key=_labelled_key(client, "session", session_label) or affinity,
    )


def _labelled_key(client: ClientId, kind: str, label: str | None) -> str | None:
    if not label or len(label) > MAX_LABEL_CHARACTERS:
        return None
    return _scoped_key(client, kind, label)


def _scoped_key(client: ClientId, kind: str, text: str) -> str:
    # A length prefix keeps ("a", "bc") and ("ab", "c") apart without an escape.
    material = f"{len(client)}:{client}:{kind}:{text}".encode("utf-8", "surrogatepass")
    return blake2b(material, digest_size=KEY_BYTES).hexdigest()
