"""Rewrites `lua/manifest.json` after scripts changed: `python -m cluster_gw.store.manifest`.

Run by a developer; the changed SHA-1s then show up in the review.
"""

import sys
from pathlib import Path

import msgspec

from cluster_gw.store.scripts import build_manifest, find_folder


def write_manifest(folder: Path) -> Path:
    """Write the manifest of the scripts below `folder` and give its path.

    Raises:
        ScriptContractError: a script's header or include is wrong.
    """
    path = folder / "manifest.json"
    document = msgspec.json.encode(build_manifest(folder))
    path.write_bytes(msgspec.json.format(document, indent=2) + b"\n")
    return path


def main() -> None:
    """Write the manifest of this checkout and say where."""
    sys.stdout.write(f"{write_manifest(find_folder())}\n")


if __name__ == "__main__":
    main()
