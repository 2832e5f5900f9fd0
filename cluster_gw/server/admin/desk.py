"""What the routes of the admin API work with."""

import msgspec

from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.server.inference import Deps


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as its administrator sees it.

    Attributes:
        deps: what its inference endpoints work with.
        foresight: asks how a request would be routed.
    """

    deps: Deps
    foresight: Foresight

    @property
    def config_version(self) -> int:
        """The version of the configuration in force here."""
        return self.deps.current.serving.runtime.catalog.version
