"""Rewrites what follows from the scripts: `python -m cluster_gw.store.manifest`.

Run by a developer after scripts or keys changed; new SHA-1s in `lua/manifest.json`, new rights in
`docs/redis-acl.md` and new keys in `docs/redis-keys.md` then show up in the review.
"""

import sys
from pathlib import Path

import msgspec

from cluster_gw.store.key_page import write_key_page
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
    """Write the manifest, the rights and the keys of this checkout and say where."""
    folder = find_folder()
    docs = folder.parent / "docs"
    sys.stdout.write(f"{write_manifest(folder)}\n")
    for name, write in (("redis-acl.md", write_rights), ("redis-keys.md", write_key_page)):
        write(folder, docs / name)
        sys.stdout.write(f"{docs / name}\n")


if __name__ == "__main__":
    main()
