import re
from pathlib import Path

import msgspec
import pytest

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS, Gate
from cluster_gw.errors import ScriptContractError
from cluster_gw.store.asking import LEASE_MAX_MS
from cluster_gw.store.key_shapes import KEY_SHAPES
from cluster_gw.store.manifest import write_manifest
from cluster_gw.store.scripts import (
    Scripts,
    build_manifest,
    expand,
    find_folder,
    load_scripts,
    read_header,
    read_manifest,
)
from cluster_gw.store.settlement import RETRY_FOR_S

FOLDER = find_folder()
NAMES = sorted(load_scripts())
HEADER = """#!lua
-- @name a/b
-- @since 0.1.0
-- @summary Does it.
-- @keys 1 thing string 1min what it is
-- @args last now_ms ms the clock
-- @returns {1, 'ok'}
-- @errors none
-- @idempotent yes
-- @complexity O(1)
-- @slot {x}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "a" / "b.lua").write_text(HEADER + "return {1, 'ok'}\n")
    return tmp_path


def body(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


@pytest.mark.parametrize("name", NAMES)
def test_every_key_a_script_uses_is_in_its_header(scripts: Scripts, name: str) -> None:
    script = scripts[name]
    code = body(script.text)
    used = {int(index) for index in re.findall(r"KEYS\[(\d+)\]", code)}
    computed = bool(re.search(r"KEYS\[(?!\d+\])", code))

    assert used <= set(range(1, script.key_count + 1))
    assert computed == script.has_more_keys


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_a_script_reads_is_in_its_header(scripts: Scripts, name: str) -> None:
    header = scripts[name].header
    own = body((FOLDER / f"{name}.lua").read_text())
    used = {int(at) for at in re.findall(r"(?:ARGV\[|whole\()(\d+)\b", own)}
    fixed = {int(arg.index) for arg in header.args if arg.index.isdigit()}
    repeated = [int(arg.index[:-2]) for arg in header.args if arg.index.endswith("..")]
    has_last = any(arg.index == "last" for arg in header.args)

    documented = fixed | ({max(fixed) + 1} if has_last and not repeated else set())
    assert used <= documented
    assert fixed == set(range(1, len(fixed) + 1))
    assert fixed <= used
    assert repeated == ([len(fixed) + 1] if repeated else [])


@pytest.mark.parametrize("name", NAMES)
def test_scripts_name_keys_only_through_keys(scripts: Scripts, name: str) -> None:
    assert not re.search(r"gw\d|'[a-z]+:", body(scripts[name].text))


@pytest.mark.parametrize("name", NAMES)
def test_scripts_never_answer_nil_or_a_truth_value(scripts: Scripts, name: str) -> None:
    own = body((FOLDER / f"{name}.lua").read_text())
    answers = re.findall(r"^\s*return (\{.*\})$", own, flags=re.MULTILINE)

    assert answers
    assert not any(re.search(r"\b(nil|true|false)\b", answer) for answer in answers)


def test_gate_codes_of_lua_and_python_are_the_same() -> None:
    codes = (FOLDER / "lib" / "codes.lua").read_text()
    quoted = set(re.findall(r"'([a-z_]+)'", body(codes)))

    # The cap of a minute is counted as requests of the key's window; the worker names it, and it
    # does not even ask for a key that it knows to be rejected, or a model to be retired.
    named_here = {
        *(Gate.PROVIDER_MINUTE_CAP, Gate.KEY_INVALID, Gate.MODEL_RETIRED, Gate.RECORD_UNREADABLE)
    }
    assert {gate.value for gate in Gate} - named_here <= quoted
    assert quoted - {gate.value for gate in Gate} == {
        *("ok", "settled", "reclaimed", "late", "too_old", "alive", "held", "stale", "none")
    }


def test_constants_of_lua_and_python_are_the_same() -> None:
    window = (FOLDER / "lib" / "window.lua").read_text()

    assert f"SECONDS, HOURS = {MINUTE_BUCKETS}, {DAY_BUCKETS} " in window
    assert f"LEASE_MAX_MS = {LEASE_MAX_MS}\n" in window
    mark_ms = int(re.findall(r"MARK_MS = (\d+)", window)[0])
    assert mark_ms >= RETRY_FOR_S * 1000 + 30_000


def test_ttls_in_headers_are_those_of_the_key_table(scripts: Scripts) -> None:
    ttls = {shape.ttl.replace(" ", "") for shape in KEY_SHAPES}
    told = {key.ttl for script in scripts.values() for key in script.header.keys}

    assert told - {"as_4", "argument"} <= ttls


def test_manifest_is_that_of_the_scripts() -> None:
    assert read_manifest(FOLDER) == build_manifest(FOLDER)


def test_index_lists_every_script() -> None:
    index = (FOLDER / "README.md").read_text()

    assert [name for name in NAMES if f"`{name}`" not in index] == []


def test_written_manifest_lets_the_scripts_load(folder: Path) -> None:
    write_manifest(folder)

    assert list(load_scripts(folder)) == ["a/b"]


@pytest.mark.parametrize("change", ["edit", "add", "remove", "schema", "no manifest", "not json"])
def test_scripts_that_differ_from_the_manifest_refuse_to_load(folder: Path, change: str) -> None:
    path = write_manifest(folder)
    script = folder / "a" / "b.lua"
    match change:
        case "edit":
            script.write_text(script.read_text() + "\n")
        case "add":
            (folder / "a" / "c.lua").write_text(HEADER.replace("a/b", "a/c"))
        case "remove":
            script.unlink()
        case "schema":
            manifest = read_manifest(folder)
            path.write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, schema=99)))
        case "no manifest":
            path.unlink()
        case _:
            path.write_text("{")

    with pytest.raises(ScriptContractError, match=r"manifest"):
        load_scripts(folder)


def test_include_is_expanded_once_in_place(folder: Path) -> None:
    (folder / "lib" / "one.lua").write_text("local one = 1\n")
    (folder / "lib" / "two.lua").write_text("--@include lib/one.lua\nlocal two = one + 1\n")
    script = folder / "a" / "b.lua"
    script.write_text("#!lua\n--@include lib/two.lua\n--@include lib/one.lua\nreturn two\n")

    assert expand(script, folder) == "#!lua\nlocal one = 1\nlocal two = one + 1\nreturn two\n"


def test_include_cycle_is_named(folder: Path) -> None:
    (folder / "lib" / "one.lua").write_text("--@include lib/two.lua\n")
    (folder / "lib" / "two.lua").write_text("--@include lib/one.lua\n")

    with pytest.raises(ScriptContractError, match=r"lib/one.lua -> lib/two.lua -> lib/one.lua"):
        expand(folder / "lib" / "one.lua", folder)


@pytest.mark.parametrize("target", ["lib/none.lua", "../outside.lua"])
def test_include_from_elsewhere_is_refused(folder: Path, target: str) -> None:
    (folder.parent / "outside.lua").write_text("return 1\n")
    (folder / "lib" / "one.lua").write_text(f"--@include {target}\n")

    with pytest.raises(ScriptContractError, match="no such include"):
        expand(folder / "lib" / "one.lua", folder)


@pytest.mark.parametrize(
    "text",
    [
        HEADER.removeprefix("#!lua\n"),
        HEADER.replace("-- @slot {x}\n", ""),
        HEADER.replace("string 1min what it is", "string"),
        HEADER.replace("now_ms ms the clock", "now_ms"),
        "",
    ],
)
def test_incomplete_header_is_refused(text: str) -> None:
    with pytest.raises(ScriptContractError):
        read_header(text)


def test_script_under_another_name_is_refused(folder: Path) -> None:
    (folder / "a" / "b.lua").rename(folder / "a" / "c.lua")

    with pytest.raises(ScriptContractError, match="calls itself a/b"):
        build_manifest(folder)
