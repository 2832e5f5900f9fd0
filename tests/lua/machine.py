"""Random histories of scripts on an emptied server, held against a model."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from redis import Redis

from cluster_gw.store.scripts import load_scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS
from tests.lua.window_fields import ANY_BYTES


class ScriptMachine(RuleBasedStateMachine):
    """A history; it owns the clock.

    Attributes:
        server: set by `run_machine`.
        redis: empty at the beginning.
        loaded: all scripts.
        now_ms: the clock.
    """

    server: RedisServer

    def __init__(self) -> None:
        super().__init__()
        self.redis = Redis.from_url(
            self.server.url, protocol=2, decode_responses=True, encoding_errors=ANY_BYTES
        )
        self.redis.flushall()
        self.loaded = load_scripts()
        self.now_ms = NOW_MS


def run_machine(
    machine: type[ScriptMachine], server: RedisServer, *, histories: int, steps: int
) -> None:
    """Run so many histories of so many steps at most."""
    machine.server = server
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
