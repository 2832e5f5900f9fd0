"""Runs checkov over what every file of `ci/` renders to; `python -m tests.chart.checkov PROGRAM`.

A finding that is not in `REVIEWED` fails, and so does a line there that finds nothing any more.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.chart.rendering import CASES, Chart, case

Finding = tuple[str, str]

CPU: Final = "a CPU limit stops a loop that serves streams for parts of each 0.1 s; requests share"
DIGEST: Final = "a digest is the operator's to set (image.digest); none can be shipped"
PULL: Final = "a tag of a version does not change; Always would need the registry at each restart"
IN_ENVIRONMENT: Final = (
    "passwords are parts of an address, which only variables can be put together to; the token of "
    "the admin API is read from the environment. Keys of providers are files."
)
ENDS: Final = "it ends by itself within seconds"
POLICY: Final = "networkPolicy.enabled is a choice: its peers are not known to the chart"
SNIPPET: Final = (
    "haproxytech has no other way to `option http-no-delay`, without which streams stutter"
)
REVIEWED: Final[Mapping[Finding, str]] = MappingProxyType(
    {
        ("CKV_K8S_11", "Deployment"): CPU,
        ("CKV_K8S_11", "StatefulSet"): CPU,
        ("CKV_K8S_11", "Pod"): CPU,
        ("CKV_K8S_43", "Deployment"): DIGEST,
        ("CKV_K8S_43", "StatefulSet"): DIGEST,
        ("CKV_K8S_43", "Pod"): DIGEST,
        ("CKV_K8S_15", "Deployment"): PULL,
        ("CKV_K8S_15", "StatefulSet"): PULL,
        ("CKV_K8S_15", "Pod"): PULL,
        ("CKV_K8S_35", "Deployment"): IN_ENVIRONMENT,
        ("CKV_K8S_35", "StatefulSet"): IN_ENVIRONMENT,
        ("CKV_K8S_8", "Pod"): ENDS,
        ("CKV_K8S_9", "Pod"): ENDS,
        ("CKV_K8S_153", "Ingress"): SNIPPET,
        ("CKV2_K8S_6", "Pod"): POLICY,
    }
)


def findings(program: str) -> dict[Finding, set[str]]:
    """What checkov finds, by check and kind, each with the files it is in."""
    chart = Chart()
    found: dict[Finding, set[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in CASES:
            objects = chart.render(without_others(case(path)))
            items = [json.dumps(item) for item in objects.all]
            (Path(folder) / path.name).write_text("\n---\n".join(items), encoding="utf-8")
        words = [program, "-d", folder, "--framework", "kubernetes", "--skip-download"]
        done = subprocess.run(
            [*words, "--quiet", "--compact", "--output", "json", "--soft-fail"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    for each in json.loads(done.stdout)["results"]["failed_checks"]:
        kind = each["resource"].partition(".")[0]
        found.setdefault((each["check_id"], kind), set()).add(Path(each["file_path"]).name)
    return found


def without_others(values: dict[str, Any]) -> dict[str, Any]:
    """The values without containers of somebody else: they are not the chart's to bound."""
    return {**values, "extraContainers": [], "extraInitContainers": []}


def main(program: str) -> int:
    """Print what is new and what is gone; 0 if nothing is."""
    found = findings(program)
    new = [
        f"{check} in {kind}: {files}"
        for (check, kind), files in found.items()
        if (check, kind) not in REVIEWED
    ]
    gone = [
        f"{check} in {kind} is not found any more"
        for check, kind in REVIEWED
        if (check, kind) not in found
    ]
    told = [*new, *gone] or [f"checkov: {len(found)} kinds of findings, all reviewed"]
    sys.stdout.write("\n".join([*told, ""]))
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
