"""What capacity is taken and given back with: the parts that admission and settlement share."""

from typing import NamedTuple

from cluster_gw.pipeline.condition import Conditions
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.pipeline.holding import Holding
from cluster_gw.store.admission import Admissions
from cluster_gw.telemetry.registry import Registry


class Counting(NamedTuple):
    """Both count in the same places.

    Attributes:
        admissions: of targets.
        holding: of clients.
        conditions: of models, providers and keys.
        estimator: of tokens.
        registry: where numbers go.
    """

    admissions: Admissions
    holding: Holding
    conditions: Conditions
    estimator: Estimator
    registry: Registry
