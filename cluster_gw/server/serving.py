"""What the endpoints of one worker serve with: the configuration in force and the loop's shell.

A reload builds a new `Serving` and swaps it in with one assignment; requests under way keep the one
they started with.
"""

import msgspec

from cluster_gw.pipeline.backlog import KeyTurns
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.view import NO_VIEW
from cluster_gw.server.auth import Clients
from cluster_gw.server.stranger_guard import StrangerPolicy


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration version as the endpoints see it.

    Attributes:
        file_version: of the file since its group started, from 1; the overlay's is the catalogue's.
        master_keys: names of those that this worker has.
        unread_secrets: keys whose secret was set at run time and cannot be read here.
    """

    runtime: Runtime
    clients: Clients
    max_body_bytes: int
    strangers: StrangerPolicy = StrangerPolicy()
    file_version: int = 1
    master_keys: tuple[str, ...] = ()
    unread_secrets: tuple[str, ...] = ()

    @property
    def change(self) -> int:
        """Grows with each change of the file or of what is over it, in this worker."""
        return self.runtime.catalog.version + self.file_version


class Current:
    """Holds the configuration in force and the state of this worker.

    Attributes:
        serving: replaced as a whole.
        is_started: the worker accepts requests.
        is_draining: no new requests; open ones finish.
        is_drained: operators want load balancers to send nothing here; what comes is served.
        in_flight: requests being served now.
        turns: among the keys of each route.
        view: the snapshot requests are ranked by: replaced as a whole.
    """

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.is_started = False
        self.is_draining = False
        self.is_drained = False
        self.in_flight = 0
        self.turns = KeyTurns()
        self.view = NO_VIEW

    @property
    def status(self) -> str:
        """`starting`, `ready` or `draining`; `degraded` is added by who knows Redis."""
        if self.is_draining or self.is_drained:
            return "draining"
        return "ready" if self.is_started else "starting"
