"""`cluster-gw worker`: one worker process; started by the parent, never by hand."""

import click

from cluster_gw.app import WorkerOptions, run_worker
from cluster_gw.supervisor.worker import REDIS_URL_VARIABLE


@click.command("worker", hidden=True)
@click.option("--config-fd", type=int, required=True)
@click.option("--fd", type=int, required=True)
@click.option("--control-path", required=True)
@click.option("--parent-pid", type=int, required=True)
@click.option("--worker-id", required=True)
@click.option("--redis-url", envvar=REDIS_URL_VARIABLE, required=True)
def command(
    config_fd: int,
    fd: int,
    control_path: str,
    parent_pid: int,
    worker_id: str,
    redis_url: str,
) -> int:
    """Serve on an inherited socket until told to end."""
    return run_worker(
        WorkerOptions(
            config_fd=config_fd,
            socket_fd=fd,
            control_path=control_path,
            parent_pid=parent_pid,
            worker_id=worker_id,
            redis_url=redis_url,
        )
    )
