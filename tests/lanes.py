"""Which tests of a run in several processes follow each other in one of them.

A module is dealt out whole: what it starts (gateways, Redis, providers) starts once. Tests that
measure processes of the gateway form one lane, and so do the fuzzers: two of a kind beside each
other would take each other's time. Lanes are dealt out first, as they take longest.
"""

from types import MappingProxyType
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

LANES: Final = MappingProxyType(
    {
        "tests/fuzz/test_fuzz.py::test_no_input_breaks_a_decoder": "fuzz",
        "tests/cluster/": "cluster",
        "tests/sdk/": "sdk",
        "tests/ui/": "ui",
    }
)
NAMES: Final = tuple(LANES.values())


def lane_of(node_id: str) -> str:
    """The lane of a test, which is the path of its module where nothing else is said."""
    for start, lane in LANES.items():
        if node_id.startswith(start):
            return lane
    return node_id.partition("::")[0]


def turn_of(item: pytest.Item) -> int:
    """Which turn a test has, from 0: lanes in their order, then all else."""
    lane = lane_of(item.nodeid)
    return NAMES.index(lane) if lane in NAMES else len(NAMES)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Deals out one lane after the other, in the order in which tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)
