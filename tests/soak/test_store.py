"""No limit is ever exceeded, none is left unused, and counters are exact, whoever dies when.

Eight processes share forty-nine targets on one real Redis, bounded by the windows of models, keys
and accounts, by caps over all models of a key, and by how many requests may run at a time; in
virtual time, fifty hours of it. Their clocks are up to ten minutes off, they settle late and twice,
and some are killed in the middle of a call. The judge only reads what they wrote.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.fakes.redis_server import RedisServer, needed_redis
from tests.lua.calls import texts
from tests.lua.window_fields import present
from tests.soak.crowd import CALLERS, Crowd
from tests.soak.judge import utilisation, violations
from tests.soak.subjects import GROUPS

LEAST_USED: Final = 0.95
SIZES: Final = [
    pytest.param(20_000, 6, marks=[pytest.mark.cluster, pytest.mark.timeout(300)], id="20000"),
    pytest.param(1_000_000, 40, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="million"),
]


@pytest.mark.parametrize(("admissions", "kills"), SIZES)
async def test_eight_processes_exceed_nothing_waste_nothing_and_count_exactly(
    admissions: int, kills: int, tmp_path: Path
) -> None:
    with RedisServer(needed_redis()) as server:
        crowd = Crowd(
            server.url, tmp_path, share=admissions // GROUPS, kills=kills, seed=admissions
        )
        async with crowd:
            await crowd.run()
            in_flight = {
                scope.name: present(texts(crowd.look, scope.name))["i"]
                for scope in crowd.scopes
                if not scope.caps.needs_record()
            }
    ledger = crowd.ledger
    used = utilisation(ledger, crowd.every, crowd.scopes)

    assert violations(ledger, crowd.every, crowd.scopes) == []
    assert crowd.faults == []
    assert set(in_flight.values()) == {0}
    assert {subject.kind for subject in crowd.every} == set(used)
    assert min(used.values()) >= LEAST_USED, used
    assert len(ledger.granted) >= admissions
    assert crowd.killed >= kills
    assert ledger.duplicates > len(ledger.granted) / 50
    assert CALLERS == 8
