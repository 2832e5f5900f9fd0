"""`cluster-gw worker`: one worker process; started by the parent, never by hand."""

import click

from cluster_gw.app import WorkerOptions, run_worker
from cluster_gw.supervisor.worker import REDIS_URL_VARIABLE


@click.command("worker", hidden=True)
@click.option("--config", required=True)
@click.option("--fd", type=int, required=True)
@click.option("--control-path", required=True)
@click.option("--parent-pid", type=int, required=True)
@click.option("--worker-id", required=True)
@click.option("--generation", type=int, required=True)
@click.option("--redis-url", envvar=REDIS_URL_VARIABLE, required=True)
def command(
    config: str,
    fd: int,
    control_path: str,
    parent_pid: int,
    worker_id: str,
    generation: int,
    redis_url: str,
) -> int:
    """Serve on an inherited socket until told to end."""
    return run_worker(
        WorkerOptions(
            config_path=config,
            socket_fd=fd,
            control_path=control_path,
            parent_pid=parent_pid,
            worker_id=worker_id,
            redis_url=redis_url,
            generation=generation,
        )
    )
