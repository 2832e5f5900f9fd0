"""The composition root of a worker: the only place that constructs."""

from cluster_gw.app.base import Servers
from cluster_gw.app.engine import Engine
from cluster_gw.app.serving import build_serving
from cluster_gw.app.worker import WorkerOptions, run_worker

__all__ = ["Engine", "Servers", "WorkerOptions", "build_serving", "run_worker"]
