"""The page of Redis keys for whoever looks with redis-cli: `docs/redis-keys.md`.

Written from the table of keys and the headers of the scripts, so that neither can move alone.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cluster_gw.store.key_shape import KeyShape
from cluster_gw.store.key_shapes import KEY_SHAPES
from cluster_gw.store.scripts import Script, read_script, script_files

HEAD: Final = """# Redis keys

Every key the gateway writes, without the prefix (`redis.prefix`, `gw1` by default). Angle brackets
stand for percent-encoded text; the part in braces decides the slot of a cluster. Times are in
milliseconds since the epoch, by the clock of the Redis server. Reading is safe at any time; whoever
deletes or writes a key changes what is admitted. Of a model behind a relay `<model>` is
`model@endpoint`, and `<provider>` of `pb` and `hz` is `provider@endpoint`.

Look at one with `cluster-gw redis HGETALL 'gw1:w:{openai.key-1}:key-1:gpt-4o'`, at all of an
account with `cluster-gw redis SCAN 0 MATCH 'gw1:*{openai.key-1}*' COUNT 1000`.

Scripts tell all workers of changes on the channel `gw1:events`: `health <key> <gate or well> <for
how many ms> <when>`, `config <version> <when>` and others. Listen with `redis-cli SUBSCRIBE
gw1:events`; nothing relies on it.

This page is generated: `make manifest`.

## Keys

| Key | Type | Lives | Holds |
|---|---|---|---|
"""
SCRIPTS: Final = """
## Scripts

Nothing but these scripts changes a key, each in one step that no other call can divide; of `ses`
alone the keys are plain strings, written by `SET` and read by `GETEX`.

| Script | Does | Slot | May be repeated by |
|---|---|---|---|
"""


def key_page(shapes: Iterable[KeyShape], scripts: Iterable[Script]) -> str:
    """Give the page as Markdown."""
    keys = [_row(f"`{s.pattern}`", s.type, s.ttl, s.content) for s in shapes]
    calls = [
        _row(f"`{s.name}`", s.header.summary, f"`{s.header.slot}`", s.header.idempotent)
        for s in scripts
    ]
    return "".join([HEAD, *keys, SCRIPTS, *calls])


def write_key_page(folder: Path, page: Path) -> None:
    """Write the page for the scripts below `folder`."""
    scripts = [read_script(path, folder) for path in script_files(folder)]
    page.write_text(key_page(KEY_SHAPES, scripts), encoding="utf-8")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
