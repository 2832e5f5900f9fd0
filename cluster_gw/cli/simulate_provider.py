"""`cluster-gw simulate-provider`: a provider that enforces limits and injects faults."""

from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import inspect

from cluster_gw.cli.options import parent_option
from cluster_gw.cli.process import say
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.amounts import parse_amount
from cluster_gw.settings.checking import Checker
from cluster_gw.settings.document import read_document
from cluster_gw.settings.expand import Expander, why
from cluster_gw.settings.faults import Faults
from cluster_gw.simulator.config import Limits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, run_simulator
from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.wire.host_port import host_port

DEFAULT_PORT: Final = 9001


@click.command("simulate-provider", short_help="Run a simulated provider that enforces limits.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; 0 lets the system choose.")
@click.option("--config", metavar="FILE", help="A simulated provider in YAML or JSON.")
@click.option(
    "--limits", metavar="NAME=N,…", help="Limits of every key: rpm=30,rpd=1k,tpm=6k,concurrency=4."
)
@parent_option
def command(
    host: str | None,
    port: int | None,
    config: str | None,
    limits: str | None,
    parent_pid: int | None,
) -> int:
    """Run a simulated provider until told to end. Without a file it takes any key and model."""
    settings = SimulatorConfig(port=DEFAULT_PORT, any_key=True, any_model=True)
    if config is not None:
        settings = read_simulator(Path(config))
    if limits is not None:
        settings = msgspec.structs.replace(settings, any_key=True, default_limits=_limits(limits))
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = msgspec.structs.replace(settings, **given)
    try:
        run_simulator(settings, expected_parent=parent_pid, on_ready=_announce)
    except OSError as error:
        raise StartError(
            f"cannot listen on {host_port(settings.host, settings.port)}: {error.strerror}"
        ) from None
    return ExitCode.OK


def read_simulator(path: Path) -> SimulatorConfig:
    """Read the description of a simulated provider.

    Raises:
        ConfigInvalidError: it cannot be used.
    """
    faults = Faults()
    try:
        document = read_document(path.read_bytes(), faults)
    except OSError as error:
        raise ConfigInvalidError(
            [f"configuration: file {path} cannot be read{why(error)}"]
        ) from None
    root = inspect.type_info(SimulatorConfig)
    checked = Checker(faults, Expander({}, faults).secret).check(document, root, "")
    if faults.lines:
        raise ConfigInvalidError(faults.lines)
    try:
        return msgspec.convert(checked, SimulatorConfig)
    except msgspec.ValidationError as error:
        raise ConfigInvalidError([f"configuration: {error}"]) from None


def _limits(text: str) -> Limits:
    known = {field.name for field in msgspec.structs.fields(Limits)}
    found: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        amount = parse_amount(number)
        if name not in known or amount is None:
            raise click.BadParameter(
                f"{part!r} is none of {', '.join(sorted(known))} with a number",
                param_hint="--limits",
            )
        found[name] = amount
    return Limits(**found)


def _announce(running: RunningSimulator) -> None:
    say(f"simulated provider on port {running.port}", err=True)
