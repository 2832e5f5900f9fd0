"""`cluster-gw demo`: a whole group with simulated providers, ready to be called with curl."""

import os
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cluster_gw.cli.options import address_options, environ_with
from cluster_gw.cli.process import say
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.providers.free_tier import FREE_TIER
from cluster_gw.providers.presets import PRESETS, Preset
from cluster_gw.providers.quirks import ACCOUNT_IN_KEY
from cluster_gw.settings import Settings, load
from cluster_gw.settings.document import read_document
from cluster_gw.settings.faults import Faults
from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.supervisor.companion import Companion
from cluster_gw.supervisor.group import GroupOptions, run_group
from cluster_gw.supervisor.runtime_dir import RuntimeDir
from cluster_gw.telemetry.log import Log
from cluster_gw.wire.host_port import host_port

BUNDLED: Final = "demo.yaml"
CLIENT_KEY: Final = "demo-key"
EXAMPLE: Final = '{"model":"auto","messages":[{"role":"user","content":"Say hello"}]}'
STREAMED: Final = EXAMPLE.replace('"auto"', '"auto","stream":true')


@click.command("demo", short_help="Try it: a gateway with simulated providers.")
@address_options
def command(host: str | None, port: int | None, admin_port: int | None, workers: int | None) -> int:
    """Run the gateway with two simulated providers on a temporary Redis."""
    ports = {"FAST": _free_port(), "STEADY": _free_port()}
    environ = environ_with(host=host, port=port, admin_port=admin_port, workers=workers)
    environ |= {f"GW_DEMO_{name}_PORT": str(number) for name, number in ports.items()}
    folder = RuntimeDir()
    try:
        path, data_dir = folder.path / "demo.json", folder.path / "data"
        document = demo_document(environ)
        path.write_bytes(msgspec.json.encode(document))
        loaded = load(path, environ)
        settings = loaded.settings
        path.write_bytes(msgspec.json.encode(standing_alone(document, settings, data_dir)))
        options = GroupOptions(
            loaded=loaded,
            config_path=path,
            environ=environ,
            data_dir=data_dir,
            companions=tuple(
                _companion(folder.path, simulator)
                for simulator in simulators(ports["FAST"], ports["STEADY"])
            ),
            hang_up_ends=True,
        )
        log = Log(console=settings.telemetry.is_text)
        text = greeting(settings, added_presets(environ), path)
        return run_group(options, log, lambda: say(text))
    finally:
        folder.remove()


def demo_document(environ: Mapping[str, str]) -> dict[str, Any]:
    """Give the bundled configuration, with every provider whose key is in the environment.

    References stay references: no credential is written anywhere.

    Raises:
        ConfigInvalidError: the bundled file is broken.
    """
    faults = Faults()
    data = resources.files("cluster_gw.cli").joinpath(BUNDLED).read_bytes()
    document = read_document(data, faults)
    if faults.lines:
        raise ConfigInvalidError(faults.lines)
    for name in added_presets(environ):
        document["providers"][name] = {"preset": name}
        document["keys"].append(
            {"id": f"{name}-env", "provider": name, "secret": f"env:{PRESETS[name].env}"}
        )
    return document


def standing_alone(document: dict[str, Any], settings: Settings, data_dir: Path) -> dict[str, Any]:
    """Give the document as another shell can use it: addresses and Redis stand in it.

    Only keys of real providers stay references to the environment.
    """
    server = settings.server
    addresses = {
        "host": str(server.host),
        "port": int(server.port),
        "admin_host": str(server.admin_host),
        "admin_port": int(server.admin_port),
    }
    providers = {
        name: {**given, "base_url": str(settings.providers[name].base_url)}
        if "base_url" in given
        else given
        for name, given in document["providers"].items()
    }
    return {
        **document,
        "server": {**document["server"], **addresses},
        "redis": {**document.get("redis", {}), "data_dir": str(data_dir)},
        "providers": providers,
    }


def added_presets(environ: Mapping[str, str]) -> list[str]:
    """Name the bundled providers whose key is in the environment and that bring a model."""
    return [
        name
        for name, preset in PRESETS.items()
        if name in FREE_TIER and _is_usable(environ.get(preset.env), preset)
    ]


def _is_usable(key: str | None, preset: Preset) -> bool:
    """Whether a variable holds a key as the provider's are: others use its name for theirs."""
    return bool(key) and (ACCOUNT_IN_KEY not in preset.quirks or ":" in (key or ""))


def simulators(fast_port: int, steady_port: int) -> tuple[SimulatorConfig, ...]:
    """Describe the providers of the demo; their limits are those the gateway is told."""
    fast = KeyLimits(rpm=30, tpm=20_000)
    return (
        SimulatorConfig(
            name="sim-fast",
            port=fast_port,
            keys={"demo-fast-a": fast, "demo-fast-b": fast},
            models=("sim-small",),
            ttft_ms=30,
            tokens_per_s=120,
            output_tokens=40,
        ),
        SimulatorConfig(
            name="sim-steady",
            port=steady_port,
            keys={"demo-steady-a": KeyLimits(rpm=600, tpm=1_000_000)},
            models=("sim-large", "sim-embed"),
            ttft_ms=120,
            tokens_per_s=60,
            output_tokens=60,
        ),
    )


def greeting(settings: Settings, added: Sequence[str] = (), path: Path = Path("demo.json")) -> str:
    """Give what is printed when the demo can be called: three lines to paste into a shell.

    Args:
        settings: what runs.
        added: presets that were added because their keys are in the environment.
        path: of the configuration, for other commands.
    """
    server = settings.server
    data = f"http://{host_port(server.host, server.port)}"
    operations = f"http://{host_port(server.admin_host, server.admin_port)}"
    program = own_program()
    called = shlex.quote(f"{data}/v1")  # shells would read the brackets of IPv6 as a pattern
    login = f"-H 'Authorization: Bearer {CLIENT_KEY}'"
    body = f"{login} -H 'Content-Type: application/json'"
    return "\n".join(
        [
            "",
            f"cluster-gw is ready on {data}, operations on {operations}. Try:",
            "",
            f"curl -s {called}/chat/completions {body} -d '{EXAMPLE}'",
            f"curl -sN {called}/chat/completions {body} -d '{STREAMED}'",
            f"curl -s {called}/models {login}",
            "",
            "Where a request would go now, and what Redis holds; from another shell:",
            "",
            f"export GW_CONFIG={shlex.quote(str(path))}",
            f"echo '{EXAMPLE}' | {program} explain --request -",
            f"{program} redis KEYS 'gw1:*'",
            "",
            *([_tell_of(added), ""] if added else []),
            "Ctrl-C ends it.",
            "",
        ]
    )


def own_program(python: str = sys.executable) -> str:
    """Give the words that run this program in any shell, also outside its virtual environment."""
    script = Path(python).with_name("cluster-gw")
    if script.is_file():
        return shlex.quote(str(script))
    return f"{shlex.quote(python)} -m cluster_gw"


def _tell_of(added: Sequence[str]) -> str:
    named = ", ".join(f"{name} ({PRESETS[name].env})" for name in added)
    return (
        f"Added, since their keys are in the environment: {named}. Your prompts go to them, at\n"
        "their price, when you name them or when the simulated providers are at their limits."
    )


def _companion(folder: Path, simulator: SimulatorConfig) -> Companion:
    path = folder / f"{simulator.name}.json"
    path.write_bytes(msgspec.json.encode(simulator))
    words = (
        *(sys.executable, "-m", "cluster_gw", "simulate-provider"),
        *("--config", str(path), "--parent-pid", str(os.getpid())),
    )
    return Companion(name=simulator.name, words=words, port=simulator.port)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
