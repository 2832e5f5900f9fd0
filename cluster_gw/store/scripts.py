"""Loads the Lua scripts: finds them, expands includes, reads headers, checks the manifest.

A script is sent by the SHA-1 of its expanded text (EVALSHA), so an old and a new worker can share
one Redis during a rollout. The manifest pins what was reviewed: a worker whose scripts differ from
it refuses to start. This module knows files and text; it never talks to Redis.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

import cluster_gw
from cluster_gw.errors import ScriptContractError

SCHEMA: Final = 2
"""The layout of what the scripts write; stored by `meta/open`."""
MIN_READER: Final = 2
"""The oldest schema whose workers understand what these scripts write."""

INCLUDE: Final = re.compile(r"^--@include (\S+)$")
FIELD: Final = re.compile(r"^-- @(\w+) (.+)$")
REPEATS: Final = ".."
SINGLE_FIELDS: Final = ("name", "since", "summary", "errors", "idempotent", "complexity", "slot")


class KeyField(msgspec.Struct, frozen=True, kw_only=True):
    """One documented key: `index` is a number, or `n..` for the tail that repeats."""

    index: str
    name: str
    type: str
    ttl: str
    text: str


class ArgField(msgspec.Struct, frozen=True, kw_only=True):
    """One documented argument: `index` is a number, `n..` for a repeating tail, or `last`."""

    index: str
    name: str
    unit: str
    text: str


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The machine-read comment block at the top of a script."""

    name: str
    since: str
    summary: str
    keys: tuple[KeyField, ...]
    args: tuple[ArgField, ...]
    returns: tuple[str, ...]
    errors: str
    idempotent: str
    complexity: str
    slot: str


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One script as Redis gets it; `sha` is the lower-case hex SHA-1 of `text`."""

    name: str
    text: str
    sha: str
    header: Header

    @property
    def key_count(self) -> int:
        """The least number of keys a call declares."""
        return sum(not key.index.endswith(REPEATS) for key in self.header.keys)

    @property
    def has_more_keys(self) -> bool:
        """Whether a call may declare further keys, in the pattern of the last ones."""
        return any(key.index.endswith(REPEATS) for key in self.header.keys)


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest pins of one script."""

    sha1: str
    keys: int
    more_keys: bool


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All reviewed scripts and the schema they write."""

    schema: int
    min_reader: int
    scripts: dict[str, ManifestEntry]


def find_folder() -> Path:
    """Tell where the scripts are: inside an installed wheel, else beside the package."""
    package = Path(cluster_gw.__file__).parent
    shipped = package / "_lua"
    return shipped if shipped.is_dir() else package.parent / "lua"


def script_files(folder: Path) -> Iterator[Path]:
    """List the scripts below `folder`, in order; `lib/` holds fragments, not scripts."""
    return (path for path in sorted(folder.glob("*/*.lua")) if path.parent.name != "lib")


def expand(path: Path, folder: Path) -> str:
    """Give the text of a script with each include in place of its directive, once.

    Raises:
        ScriptContractError: an include is missing, leaves `folder`, or includes itself.
    """
    return "".join(_expanded(path.resolve(), folder.resolve(), (), set()))


def _expanded(path: Path, folder: Path, stack: tuple[Path, ...], seen: set[Path]) -> Iterator[str]:
    if path in stack:
        cycle = " -> ".join(str(step.relative_to(folder)) for step in (*stack, path))
        raise ScriptContractError(f"include cycle: {cycle}")
    if not path.is_relative_to(folder) or not path.is_file():
        raise ScriptContractError(f"no such include: {path.name}")
    if path in seen:
        return
    seen.add(path)
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        include = INCLUDE.match(line.rstrip())
        if include:
            yield from _expanded((folder / include[1]).resolve(), folder, (*stack, path), seen)
        else:
            yield line


def read_header(text: str) -> Header:
    """Read the header block of a script.

    Raises:
        ScriptContractError: the first line is not `#!lua`, or a field is missing or malformed.
    """
    lines = text.splitlines()
    if not lines or not re.match(r"^#!lua( |$)", lines[0]):
        raise ScriptContractError("the first line of a script must be #!lua")
    fields: dict[str, list[str]] = {}
    for line in lines[1:]:
        match = FIELD.match(line)
        if match:
            fields.setdefault(match[1], []).append(match[2])
        elif not line.startswith("--"):
            break
    missing = [name for name in (*SINGLE_FIELDS, "keys", "args", "returns") if name not in fields]
    if missing:
        raise ScriptContractError(f"header lacks @{' @'.join(missing)}")
    return Header(
        keys=tuple(_key_field(value) for value in fields["keys"]),
        args=tuple(_arg_field(value) for value in fields["args"]),
        returns=tuple(fields["returns"]),
        **{name: fields[name][0] for name in SINGLE_FIELDS},
    )


def _words(value: str, count: int) -> list[str]:
    words = value.split(maxsplit=count - 1)
    if len(words) != count:
        raise ScriptContractError(f"header field needs {count} words: {value}")
    return words


def _key_field(value: str) -> KeyField:
    index, name, kind, ttl, text = _words(value, 5)
    return KeyField(index=index, name=name, type=kind, ttl=ttl, text=text)


def _arg_field(value: str) -> ArgField:
    index, name, unit, text = _words(value, 4)
    return ArgField(index=index, name=name, unit=unit, text=text)


def read_script(path: Path, folder: Path) -> Script:
    """Read one script, expanded.

    Raises:
        ScriptContractError: its header or an include is wrong.
    """
    text = expand(path, folder)
    header = read_header(text)
    name = path.relative_to(folder).with_suffix("").as_posix()
    if header.name != name:
        raise ScriptContractError(f"{name} calls itself {header.name}")
    # Redis names scripts by SHA-1; it is an address here, not a protection.
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name=name, text=text, sha=sha, header=header)


def build_manifest(folder: Path) -> Manifest:
    """Compute the manifest of the scripts below `folder` as they are now."""
    scripts = [read_script(path, folder) for path in script_files(folder)]
    return Manifest(
        schema=SCHEMA,
        min_reader=MIN_READER,
        scripts={
            script.name: ManifestEntry(
                sha1=script.sha, keys=script.key_count, more_keys=script.has_more_keys
            )
            for script in scripts
        },
    )


def read_manifest(folder: Path) -> Manifest:
    """Read the stored manifest.

    Raises:
        ScriptContractError: it is missing or malformed.
    """
    try:
        return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as fault:
        raise ScriptContractError(f"lua/manifest.json: {type(fault).__name__}") from fault


class Scripts(Mapping[str, Script]):
    """All scripts of this version by name, `admission/reserve`."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._by_name = {script.name: script for script in scripts}

    def __getitem__(self, name: str) -> Script:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def load_scripts(folder: Path | None = None) -> Scripts:
    """Load all scripts and hold them against the manifest.

    Args:
        folder: where they are; found by `find_folder` when None.

    Raises:
        ScriptContractError: a script is missing, unknown, malformed, or not the reviewed text.
    """
    place = folder or find_folder()
    scripts = [read_script(path, place) for path in script_files(place)]
    pinned = read_manifest(place)
    wrong = set(pinned.scripts) ^ {script.name for script in scripts}
    wrong |= {
        script.name
        for script in scripts
        if script.name in pinned.scripts and pinned.scripts[script.name].sha1 != script.sha
    }
    if wrong or pinned.schema != SCHEMA or pinned.min_reader != MIN_READER:
        raise ScriptContractError(f"lua/manifest.json does not match: {sorted(wrong) or 'schema'}")
    return Scripts(scripts)
