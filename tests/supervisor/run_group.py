"""The parent process of the tests: a real group with stub workers.

Arguments: the configuration, the data folder, and optionally companions as `name:port`.
"""

import os
import sys
from pathlib import Path

from cluster_gw.settings import load
from cluster_gw.supervisor.failure import StartError
from cluster_gw.supervisor.group import Companion, GroupOptions, run_group
from cluster_gw.telemetry.log import Log


def main() -> int:
    path, data_dir = Path(sys.argv[1]), Path(sys.argv[2])
    loaded = load(path, os.environ)
    options = GroupOptions(
        settings=loaded.settings,
        config_path=path,
        files=loaded.files,
        environ=dict(os.environ),
        data_dir=data_dir,
        worker_words=(sys.executable, str(Path(__file__).with_name("stub_worker.py"))),
        companions=tuple(
            Companion(
                name=name,
                words=(sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"),
                port=int(port),
            )
            for name, port in (word.split(":") for word in sys.argv[3:])
        ),
    )
    try:
        return run_group(options, Log(), lambda: print("ready", flush=True))  # noqa: T201
    except StartError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.code


if __name__ == "__main__":
    sys.exit(main())
