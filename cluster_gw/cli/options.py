"""Options several commands share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

PORTS: Final = click.IntRange(1, 65_535)

config_option: Final = click.option(
    "--config",
    metavar="FILE",
    help="Configuration; else GW_CONFIG, else ./cluster-gw.yaml.",
)
json_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of text."
)
version_option: Final = click.option(
    "--if-match",
    type=click.IntRange(0),
    metavar="N",
    help="Change nothing unless config_version is N.",
)
parent_option: Final = click.option("--parent-pid", type=int, hidden=True)


def address_options(function: Decorated) -> Decorated:
    """Add the options of commands that serve; they beat file and environment."""
    for option in (
        click.option("--workers", type=click.IntRange(1, 256), help="Worker processes."),
        click.option("--admin-port", type=PORTS, help="Port of the operations plane."),
        click.option("--port", type=PORTS, help="Port of the data plane."),
        click.option("--host", help="Address of the data plane."),
    ):
        function = option(function)
    return function


def environ_with(**fields: str | int | None) -> dict[str, str]:
    """Give the environment with fields of the `server` section set on top.

    Workers read the same file in the same environment, so they see the same addresses.
    """
    environ = dict(os.environ)
    for name, value in fields.items():
        if value is not None:
            environ[f"GW_SERVER__{name.upper()}"] = str(value)
    return environ


def data_dir_of(configured: str | None) -> Path:
    """Tell where the embedded Redis keeps its data."""
    return Path(configured or "cluster-gw-data")
