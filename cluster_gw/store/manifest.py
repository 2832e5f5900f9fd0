"""Rewrites what follows from the scripts: `python -m cluster_gw.store.manifest`.

Run by a developer after scripts changed; new SHA-1s in `lua/manifest.json` and new rights in
`docs/redis-acl.md` then show up in the review.
"""

import sys
from pathlib import Path

import msgspec

from cluster_gw.store.rights import write_rights
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
    """Write the manifest and the rights of this checkout and say where."""
    folder = find_folder()
    page = folder.parent / "docs" / "redis-acl.md"
    sys.stdout.write(f"{write_manifest(folder)}\n")
    write_rights(folder, page)
    sys.stdout.write(f"{page}\n")


if __name__ == "__main__":
    main()
