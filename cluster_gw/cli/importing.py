"""`cluster-gw import`: the configuration of another gateway as one of ours."""

from pathlib import Path
from typing import Any, BinaryIO, Final

import click
import msgspec

from cluster_gw.cli.options import json_option
from cluster_gw.cli.process import say
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import load_bytes
from cluster_gw.settings.document import read_document
from cluster_gw.settings.faults import Faults
from cluster_gw.settings.litellm import Imported, translate
from cluster_gw.supervisor.failure import ExitCode, StartError

STAND_IN: Final = "set"
ADDRESS: Final = "http://127.0.0.1:9"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints; `faults` is why the result cannot be used as it is."""

    config: dict[str, Any]
    notes: tuple[str, ...]
    variables: tuple[str, ...]
    faults: tuple[str, ...]


@click.group("import", short_help="Translate another gateway's configuration.")
def command() -> None:
    """Translate the configuration of another gateway."""


@command.command("litellm", short_help="Translate the config.yaml of a LiteLLM proxy.")
@click.argument("file", type=click.File("rb"), metavar="FILE|-")
@click.option("--out", type=click.Path(path_type=Path), help="Write it there, not to the screen.")
@json_option
def litellm(file: BinaryIO, out: Path | None, *, as_json: bool) -> int:
    """Print our configuration; what cannot be carried over is named on standard error.

    Secrets that stand in the file are not repeated: the result names a variable for each. It ends
    with 2 where the result needs work before it can be used.
    """
    faults = Faults()
    document = read_document(file.read(), faults)
    if faults.lines:
        raise ConfigInvalidError(faults.lines)
    # Not the real environment: the result must not depend on what is set where it is made.
    imported = translate(document, {})
    text = yaml_of(imported.config)
    wrong = tuple(faults_in(text, imported))
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StartError(f"{out} cannot be written: {error.strerror}") from None
    if as_json:
        told = Report(
            config=imported.config,
            notes=imported.notes,
            variables=imported.variables,
            faults=wrong,
        )
        click.echo(msgspec.json.encode(told))
    elif out is None:
        click.echo(text, nl=False)
    if not as_json:
        for line in (*imported.notes, *(f"result: {fault}" for fault in wrong)):
            say(line, err=True)
        if imported.variables:
            say(f"set before it is used: {', '.join(imported.variables)}", err=True)
    return ExitCode.BAD_CONFIGURATION if wrong else ExitCode.OK


def faults_in(text: str, imported: Imported) -> tuple[str, ...]:
    """Tell why a result cannot be used, once all variables that it names are set."""
    addresses = str([one.get("base_url") for one in imported.config["providers"].values()])
    environ = {
        name: ADDRESS if f"${{{name}}}" in addresses else STAND_IN for name in imported.variables
    }
    try:
        load_bytes(text.encode(), environ)
    except ConfigInvalidError as fault:
        return fault.faults
    return ()


def yaml_of(config: dict[str, Any]) -> str:
    """Write a configuration: a line for each thing, its fields as JSON, which is YAML."""
    lines = []
    for name, value in config.items():
        if isinstance(value, dict) and name == "providers":
            lines.append(f"{name}:")
            lines += [f"  {one}: {_json(fields)}" for one, fields in value.items()]
        elif isinstance(value, list):
            lines.append(f"{name}:")
            lines += [f"  - {_json(fields)}" for fields in value]
        else:
            lines.append(f"{name}: {_json(value)}")
    return "".join(f"{line}\n" for line in lines)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
