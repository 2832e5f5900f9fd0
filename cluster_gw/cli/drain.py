"""`cluster-gw drain`: has workers go out of use while they live, or take part again."""

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_lines, tell


@click.command("drain", short_help="Take workers out of use, or back.")
@config_option
@click.argument("worker", required=False)
@click.option("--all", "is_all", is_flag=True, help="All workers of all groups.")
@click.option("--undo", is_flag=True, help="They take part again.")
@json_option
def command(
    config: str | None, worker: str | None, *, is_all: bool, undo: bool, as_json: bool
) -> int:
    """Have WORKER, or all of them, drained: probes say so, what is under way ends.

    Load balancers send nothing more once all workers of a group are drained; what comes all the
    same is served. `cluster-gw status` lists the workers, and what they still do.
    """
    if is_all == bool(worker):
        raise click.UsageError("name a worker, or --all")
    if undo:
        query = {"worker": worker or None, "all": "true" if is_all else None}
        call = Call(method="DELETE", path="/api/drain", query=query)
    else:
        body = {"all": True} if is_all else {"worker": worker}
        call = Call(method="POST", path="/api/drain", body=body)
    return tell(config, call, print_lines, as_json=as_json)
