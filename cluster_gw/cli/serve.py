"""`cluster-gw serve`: the gateway, in the foreground."""

import click

from cluster_gw.cli.options import address_options, config_option, data_dir_of, environ_with
from cluster_gw.settings import config_path, load
from cluster_gw.supervisor.group import GroupOptions, run_group
from cluster_gw.telemetry.log import Log


@click.command("serve", short_help="Run the gateway until told to end.")
@address_options
@config_option
def command(
    host: str | None,
    port: int | None,
    admin_port: int | None,
    workers: int | None,
    config: str | None,
) -> int:
    """Run workers, and with `redis.url: embedded:` an embedded Redis, until told to end."""
    environ = environ_with(host=host, port=port, admin_port=admin_port, workers=workers)
    path = config_path(config, environ)
    loaded = load(path.absolute(), environ)
    settings = loaded.settings
    options = GroupOptions(
        loaded=loaded,
        config_path=path.absolute(),
        environ=environ,
        data_dir=data_dir_of(settings.redis.data_dir),
    )
    return run_group(options, Log(console=settings.telemetry.is_text))
