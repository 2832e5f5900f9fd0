"""The parent process of the tests: a real group with stub workers.

Arguments: the configuration, the data folder, and optionally companions as `name:port`.
"""

import os
import sys
from pathlib import Path

from cluster_gw.settings import load
from cluster_gw.supervisor.companion import Companion
from cluster_gw.supervisor.failure import StartError
from cluster_gw.supervisor.group import GroupOptions, run_group
from cluster_gw.telemetry.log import Log

STUB = (sys.executable, str(Path(__file__).with_name("stub_worker.py")))
# A real worker gives up the first connection to Redis after 5 s; no test has to wait for that.
IMPATIENT = (
    "import cluster_gw.app.engine as e, cluster_gw.cli.main as m; e.REDIS_START_S = 0.2; m.main()"
)
REAL = (sys.executable, "-c", IMPATIENT, "worker")


def main() -> int:
    path, data_dir = Path(sys.argv[1]), Path(sys.argv[2])
    loaded = load(path, os.environ)
    options = GroupOptions(
        loaded=loaded,
        config_path=path,
        environ=dict(os.environ),
        data_dir=data_dir,
        worker_words=REAL if "GROUP_IS_REAL" in os.environ else STUB,
        companions=tuple(
            Companion(
                name=name,
                words=(sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"),
                port=int(port),
            )
            for name, port in (word.split(":") for word in sys.argv[3:])
        ),
        silent_s=float(os.environ.get("GROUP_SILENT_S", "15")),
        hang_up_ends="GROUP_ENDS_ON_HANG_UP" in os.environ,
    )
    try:
        return run_group(options, Log(), lambda: print("ready", flush=True))  # noqa: T201
    except StartError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.code


if __name__ == "__main__":
    sys.exit(main())
