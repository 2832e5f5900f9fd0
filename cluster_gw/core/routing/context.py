"""What routing needs to know of one request (room 3).

Affinity and session keys are hashes that start with the client's id: prompt text never travels, and
two clients never share a pin. They are worked out when a strategy asks for them: hashing a long
prompt costs more than the rest of routing.
"""

from hashlib import blake2b

import msgspec

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.limits.demand import Demand, estimate_demand
from cluster_gw.core.routing.catalog import Needs, Resolved
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.task import looks_like_code
from cluster_gw.units import ClientId

KEY_BYTES = 16
MAX_LABEL_CHARACTERS = 255  # a longer run or session label means no label (field convention)


class RouteContext(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The request as routing sees it.

    Attributes:
        request: what was asked.
        client: who asks; every key starts with it.
        run_label: what the client sent in its headers, None when nothing.
        session_label: likewise.
        named_task: likewise; `auto` when nothing.
    """

    resolved: Resolved
    needs: Needs
    demand: Demand
    request: ChatRequest
    client: ClientId
    run_label: str | None = None
    session_label: str | None = None
    named_task: Task = Task.AUTO

    @property
    def task(self) -> Task:
        """What the client named, else code where the request looks like it."""
        if self.named_task is Task.AUTO and (
            self.needs.tools or looks_like_code(self.request.last_user_text)
        ):
            return Task.CODE
        return self.named_task

    @property
    def affinity_key(self) -> str:
        """Hash of client, system text and first user text; 32 hex characters."""
        return _scoped_key(self.client, "affinity", self.request.affinity_text)

    @property
    def run_key(self) -> str:
        """Hash of the client's run label, else the affinity key."""
        return _labelled_key(self.client, "run", self.run_label) or self.affinity_key

    @property
    def session_key(self) -> str:
        """Hash of the client's session label, else of client and first user text."""
        named = _labelled_key(self.client, "session", self.session_label)
        return named or _scoped_key(self.client, "first", self.request.first_user_text)

    def __repr__(self) -> str:
        """Name the combo only: a repr may reach a log, and the text is a prompt."""
        return f"RouteContext({self.resolved.combo})"


def build_context(
    request: ChatRequest,
    resolved: Resolved,
    client: ClientId,
    *,
    run_label: str | None = None,
    session_label: str | None = None,
    task: Task = Task.AUTO,
) -> RouteContext:
    """Derive needs and demand; labels and task are what the client sent in its headers, or None."""
    return RouteContext(
        resolved=resolved,
        needs=Needs(
            tools=request.wants_tools,
            vision=request.image_count > 0,
            format=request.wants_format,
        ),
        demand=estimate_demand(request),
        client=client,
        request=request,
        run_label=run_label,
        session_label=session_label,
        named_task=task,
    )


def _labelled_key(client: ClientId, kind: str, label: str | None) -> str | None:
    if not label or len(label) > MAX_LABEL_CHARACTERS:
        return None
    return _scoped_key(client, kind, label)


def _scoped_key(client: ClientId, kind: str, text: str) -> str:
    # A length prefix keeps ("a", "bc") and ("ab", "c") apart without an escape.
    material = f"{len(client)}:{client}:{kind}:{text}".encode("utf-8", "surrogatepass")
    return blake2b(material, digest_size=KEY_BYTES).hexdigest()
