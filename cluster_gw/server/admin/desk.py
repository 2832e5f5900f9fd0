"""What the routes of the admin API work with."""

import msgspec

from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.server.admin.editor import Editor
from cluster_gw.server.inference import Deps
from cluster_gw.store.request_records import RequestRecords


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as its administrator sees it.

    Attributes:
        deps: what its inference endpoints work with.
        foresight: asks how a request would be routed.
        records: of requests that have ended.
        editor: shows and changes the configuration.
    """

    deps: Deps
    foresight: Foresight
    records: RequestRecords
    editor: Editor

    @property
    def config_version(self) -> int:
        """The version of the configuration in force here."""
        return self.editor.version
