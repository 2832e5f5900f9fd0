"""Load balancers as docs/balancers shows them, before gateways of this machine."""

import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.fakes.group import free_port

FOLDER: Final = Path(__file__).parents[2] / "docs" / "balancers"
GATEWAY: Final = re.compile(r"192\.0\.2\.1([123])")
READY_S: Final = 10.0
STOP_S: Final = 5.0

Ports = tuple[int, int]
"""Of a gateway: data plane, operations plane."""


def envoy() -> str | None:
    """Envoy's program, which a package brings."""
    spec = find_spec("envoy")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "_bin" / "envoy"
    return str(program) if program.exists() else None


BALANCERS: Final[Mapping[str, tuple[str, Callable[[], str | None], tuple[str, ...]]]] = (
    MappingProxyType(
        {
            # file, program, how it is started; {file} and {folder} stand for what the test made
            "nginx": (
                "nginx.conf",
                lambda: shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin"),
                ("-p", "{folder}", "-c", "{file}", "-e", "stderr", "-g", "daemon off; pid pid;"),
            ),
            "haproxy": (
                "haproxy.cfg",
                lambda: shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin"),
                ("-db", "-f", "{file}"),
            ),
            "envoy": (
                "envoy.yaml",
                envoy,
                ("-c", "{file}", "--use-dynamic-base-id", "--concurrency", "1", "-l", "error"),
            ),
        }
    )
)


def program_of(name: str) -> str | None:
    """The program of a balancer, None where it is not installed."""
    return BALANCERS[name][1]()


def placed(text: str, port: int, gateways: Sequence[Ports]) -> str:
    """A file of docs/balancers with the addresses of this machine."""
    return "\n".join(_placed_line(line, port, gateways) for line in text.splitlines()) + "\n"


def _placed_line(line: str, port: int, gateways: Sequence[Ports]) -> str:
    found = GATEWAY.search(line)
    if found is None:
        return re.sub(r"\b8080\b", str(port), line)
    data, operations = gateways[int(found[1]) - 1]
    line = GATEWAY.sub("127.0.0.1", line)
    return re.sub(r"\b8081\b", str(operations), re.sub(r"\b8080\b", str(data), line))


@contextmanager
def balancer(name: str, gateways: Sequence[Ports]) -> Iterator[str]:
    """Run one before three gateways; its base URL."""
    file_name, _, words = BALANCERS[name]
    program = program_of(name)
    assert program is not None
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gwb") as folder:
        file = Path(folder) / file_name
        file.write_text(placed((FOLDER / file_name).read_text("utf-8"), port, gateways))
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, *(word.format(file=file, folder=folder) for word in words)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer:\n{log.read_text()}")
