"""What the loop over targets acts through, joined."""

import msgspec

from cluster_gw.pipeline.admit import Admitter
from cluster_gw.pipeline.alarms import Alarms
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.condition import Conditions
from cluster_gw.pipeline.memory import Memory
from cluster_gw.pipeline.quotas import Quotas
from cluster_gw.pipeline.record import Recorder
from cluster_gw.pipeline.repeating import Repeating
from cluster_gw.pipeline.sessions import Sessions
from cluster_gw.pipeline.settle import Accounts
from cluster_gw.pipeline.waiting import WaitingRoom
from cluster_gw.upstream.client import UpstreamClient


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop acts through; one per worker."""

    admitter: Admitter
    accounts: Accounts
    conditions: Conditions
    quotas: Quotas
    upstream: UpstreamClient
    alarms: Alarms
    waiting: WaitingRoom
    memory: Memory
    recorder: Recorder
    sessions: Sessions
    repeating: Repeating
    clock: Clock
