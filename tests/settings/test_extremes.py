"""Numbers of any size, nesting of any depth and bytes that are no text are faults with a path."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import Loaded, load_bytes
from cluster_gw.settings.document import TOO_DEEP
from cluster_gw.settings.loading import ROOT
from cluster_gw.settings.overlay import read_table
from tests.settings.test_faults import put

FaultsOf = Callable[..., list[str]]
Load = Callable[..., Loaded]

NO_UTF8: Final = b"\xff".decode(errors="surrogateescape")  # as a variable holds such a byte
NO_TEXT: Final = "must be text in UTF-8"
TOO_LONG: Final = "got a number of too many digits"
NUMBERS: Final = {
    "longer than a float": "9" * 309,
    "longest Python reads": "9" * 4300,
    "negative": "-" + "9" * 400,
    "hexadecimal": "0x" + "f" * 5000,
}
DEPTHS: Final = st.integers(1, 120) | st.sampled_from([300, 900, 1100, 3000])
WEIGHTS: Final = "MODEL_ROUTING_OVERRIDES"


def number_fields(kind: inspect.Type, steps: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every place of a document that takes a number, as the steps that lead there."""
    match kind:
        case inspect.StructType():
            for field in kind.fields:
                yield from number_fields(field.type, (*steps, field.name))
        case inspect.UnionType():
            for arm in kind.types:
                yield from number_fields(arm, steps)
        case inspect.VarTupleType():
            yield from number_fields(kind.item_type, (*steps, "[0]"))
        case inspect.DictType():
            yield from number_fields(kind.value_type, (*steps, "x"))
        case inspect.IntType() | inspect.FloatType():
            yield steps


FIELDS: Final = list(dict.fromkeys(number_fields(ROOT)))


def path_of(steps: tuple[str, ...]) -> str:
    return ".".join(steps).replace(".[", "[")


def holding(steps: tuple[str, ...], value: str) -> bytes:
    """A file that holds a value at one place and nothing else."""
    for step in reversed(steps):
        value = f"[{value}]" if step == "[0]" else f"{{{step}: {value}}}"
    return value.removeprefix("{").removesuffix("}").encode()


def faults_in(data: bytes, **environ: str) -> tuple[str, ...]:
    try:
        load_bytes(data, environ)
    except ConfigInvalidError as error:
        return error.faults
    return ()


def test_every_section_with_numbers_is_among_the_fields() -> None:
    sections = {steps[0] for steps in FIELDS}

    assert sections >= {"server", "routing", "providers", "keys", "models", "combos", "clients"}
    assert len(FIELDS) > 100


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_a_number_of_too_many_digits_is_a_fault_of_its_field(number: str) -> None:
    for steps in FIELDS:
        path = path_of(steps)
        told = [line for line in faults_in(holding(steps, number)) if line.startswith(f"{path}: ")]

        assert len(told) == 1, path
        assert told[0].endswith(TOO_LONG)


@settings(max_examples=60)
@given(
    steps=st.sampled_from(FIELDS),
    digits=st.integers(1, 6000),
    sign=st.sampled_from(["", "-", "+", "0x", "0o", "1.", "1e", "1e-", "."]),
)
@example(steps=("server", "workers"), digits=309, sign="")  # the first that no float can hold
@example(steps=("server", "drain_s"), digits=308, sign="")
@example(steps=("server", "drain_s"), digits=4301, sign="")  # the first that Python does not read
def test_a_number_of_any_size_is_taken_or_a_fault(
    steps: tuple[str, ...], digits: int, sign: str
) -> None:
    lines = faults_in(holding(steps, sign + "7" * digits))

    assert all(len(line) < 400 for line in lines)


@pytest.mark.parametrize("value", ["9" * 309, "9" * 400, "9" * 5000, "1e999", "-" + "9" * 400])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("GW_SERVER__WORKERS", "server.workers"),
        ("GW_ROUTING__TASK_WEIGHT_SHARE", "routing.task_weight_share"),
        ("GW_ROUTING__COOLDOWN__CEILING_S", "routing.cooldown.ceiling_s"),
    ],
)
def test_a_variable_of_too_many_digits_is_ignored_with_a_warning(
    load: Load, name: str, path: str, value: str
) -> None:
    (warning,) = load(**{name: value}).warnings

    assert warning.startswith(f"{name}: expected a")
    assert warning.endswith(f" (sets {path}); it is ignored")
    assert len(warning) < 200


def test_a_reference_to_too_many_digits_is_a_fault(base: dict[str, Any], faults: FaultsOf) -> None:
    put(base, "server.workers", "${DIGITS}")

    (line,) = faults(base, DIGITS="9" * 400)

    assert line.startswith("server.workers: expected a whole number from 1 to ")
    assert line.endswith(", got a number (environment variable DIGITS)")


@pytest.mark.parametrize("entry", ["9" * 400, '{"weight": %s}' % ("9" * 400), "-" + "9" * 400])
def test_an_overriding_weight_of_too_many_digits_is_ignored_with_a_warning(
    load: Load, entry: str
) -> None:
    loaded = load(**{WEIGHTS: f'{{"big": {entry}}}'})

    assert loaded.warnings == (
        f'{WEIGHTS}: "big" needs a number from 0 to 2; the entry is ignored',
    )
    assert loaded.settings.models[0].weight == 1


@pytest.mark.parametrize("text", [NO_UTF8, f'{{"big{NO_UTF8}": 1}}', '{"big": ' + "[" * 5000])
def test_overriding_weights_that_cannot_be_read_are_ignored_with_a_warning(
    load: Load, text: str
) -> None:
    assert load(**{WEIGHTS: text}).warnings == (f"{WEIGHTS}: is not a JSON object; it is ignored",)


@settings(max_examples=12, deadline=None)  # a second each, where YAML is read that deep
@given(
    depth=DEPTHS,
    opening=st.sampled_from(["[", '{"a":', '[{"a":', "{a: ", "[{b: "]),
    head=st.sampled_from(["", "server: ", '{"server": ', "\ufeff", " \n"]),
    is_closed=st.booleans(),
)
@example(depth=3000, opening='{"a":', head="", is_closed=False)
@example(depth=990, opening='{"a":', head="", is_closed=True)
def test_nesting_of_any_depth_is_a_fault(
    depth: int, opening: str, head: str, is_closed: bool
) -> None:
    ends = {"[": "]", "{": "}"}
    closing = "".join(ends[one] for one in reversed(opening) if one in ends) * depth
    text = head + opening * depth + "1" + closing * is_closed + "}" * head.startswith("{")

    assert faults_in(text.encode())


@pytest.mark.parametrize("depth", [34, 200, 900, 3000])
def test_a_file_that_nests_too_deeply_is_told_so(depth: int) -> None:
    text = '{"server":' + '{"a":' * depth + "1" + "}" * depth + "}"

    assert f"configuration: {TOO_DEEP}" in faults_in(text.encode())


@pytest.mark.parametrize("depth", [40, 700, 3000])
@pytest.mark.parametrize("head", ['{"models":{"a/one":', '{"settings":{"routing":'])
def test_an_overlay_that_nests_too_deeply_is_none(head: str, depth: int) -> None:
    with pytest.raises(ConfigInvalidError, match=f"^overlay: {TOO_DEEP}$"):
        read_table(head + '{"a":' * depth + "1" + "}" * (depth + 2))


@pytest.mark.parametrize("name", ["GW_SERVER__HOST", "GW_REDIS__DATA_DIR", "GW_DEFAULT_COMBO"])
def test_a_variable_that_is_no_utf8_is_a_fault(faults: FaultsOf, name: str) -> None:
    (line,) = faults(None, **{name: f"a{NO_UTF8}"})

    assert line.startswith(f"{name}: {NO_TEXT}")


def test_a_reference_to_what_is_no_utf8_is_a_fault(base: dict[str, Any], faults: FaultsOf) -> None:
    put(base, "models.0.name", "${NAME}")

    assert faults(base, NAME=NO_UTF8) == [f"models[0].name: {NO_TEXT} (environment variable NAME)"]


def test_a_secret_in_a_file_whose_name_is_no_utf8_is_a_fault(
    base: dict[str, Any], faults: FaultsOf, tmp_path: Path
) -> None:
    (tmp_path / NO_UTF8).write_text("sk-private")
    put(base, "keys.0.secret", "file:${FOLDER}/" + "${NAME}")

    (line,) = faults(base, FOLDER=str(tmp_path), NAME=NO_UTF8)

    assert line.startswith(f"keys[0].secret: file {tmp_path}{os.sep}\\udcff cannot be read as text")


def test_a_warning_about_a_variable_whose_name_is_no_utf8_can_be_written(load: Load) -> None:
    (warning,) = load(**{f"GW_{NO_UTF8}__X": "1"}).warnings

    assert warning == "GW_\\udcff__X: names no setting"
