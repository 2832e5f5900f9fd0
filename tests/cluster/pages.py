"""Lines of the documents, run as if somebody typed them beside a running group."""

import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tests.architecture.source_tree import ROOT
from tests.fakes.admin import ENVIRON
from tests.fakes.group import GatewayGroup

BLOCK: Final = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def lines_of(page: str) -> list[str]:
    """Every line of the shell blocks of a page, continued ones as one."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        line for block in BLOCK.findall(text) for line in block.replace("\\\n", "").splitlines()
    ]


def run(group: GatewayGroup, line: str, **environ: str) -> str:
    """Run a line of a page; what it printed."""
    here = line.replace("127.0.0.1:8081", group.admin_url.removeprefix("http://"))
    return run_line(here, group.config_path, **environ)


def run_line(line: str, config_path: Path, **environ: str) -> str:
    """Run a line beside whatever has this configuration; what it printed."""
    done = subprocess.run(
        ["/bin/sh", "-ec", line.replace("cluster-gw ", f"{sys.executable} -m cluster_gw ")],
        env={**os.environ, **ENVIRON, "GW_CONFIG": str(config_path), **environ},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def page_config(base_url: str) -> dict[str, Any]:
    """One client, `app-a`, and one key of an upstream at that address."""
    return {
        "auth": {"mode": "keys"},
        "providers": {"a": {"dialect": "openai", "base_url": base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one"}],
        "clients": [{"id": "app-a", "key_sha256": sha256(b"sk-app").hexdigest()}],
    }
