"""The master key comes from the environment, whole, or not at all."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_gw.settings import Loaded

Load = Callable[..., Loaded]
FaultsOf = Callable[..., list[str]]
KEY = bytes(range(32))


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        KEY.hex().upper(),
        *(f(KEY).decode() for f in (base64.b64encode, base64.urlsafe_b64encode)),
    ],
)
def test_a_key_is_written_in_digits_or_in_base64(text: str, load: Load) -> None:
    key = load(GW_MASTER_KEY=text).master_key

    assert key is not None
    assert key.reveal() == KEY.hex()
    assert KEY.hex() not in repr(load(GW_MASTER_KEY=text))


def test_a_key_may_lie_in_a_file(tmp_path: Path, load: Load) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY.hex()}\n", encoding="utf-8")
    loaded = load(GW_MASTER_KEY=f"file:{file}")

    assert loaded.master_key is not None
    assert loaded.master_key.reveal() == KEY.hex()
    assert loaded.source.files == {str(file): f"{KEY.hex()}\n".encode()}


@pytest.mark.parametrize("absent", [{}, {"GW_MASTER_KEY": ""}])
def test_without_the_variable_there_is_none(absent: dict[str, str], load: Load) -> None:
    assert load(**absent).master_key is None


@pytest.mark.parametrize("text", ["short", "zz" * 32, KEY.hex()[:-2], "a passphrase of mine"])
def test_anything_else_is_refused_without_being_repeated(text: str, faults: FaultsOf) -> None:
    assert faults(GW_MASTER_KEY=text) == [
        "GW_MASTER_KEY: must be 32 bytes, as 64 hexadecimal digits or in base64"
    ]


def test_the_key_before_stands_beside_the_present_one(load: Callable[..., Loaded]) -> None:
    before = "cd" * 32
    both = load(GW_MASTER_KEY=KEY.hex(), GW_MASTER_KEY_PREVIOUS=before)
    same = load(GW_MASTER_KEY=KEY.hex(), GW_MASTER_KEY_PREVIOUS=KEY.hex())

    assert [key.reveal() for key in both.master_keys] == [KEY.hex(), before]
    assert [key.reveal() for key in same.master_keys] == [KEY.hex()]


def test_the_key_before_is_no_key_by_itself(faults: Callable[..., list[str]]) -> None:
    assert faults(GW_MASTER_KEY_PREVIOUS="cd" * 32) == [
        "GW_MASTER_KEY_PREVIOUS: is set without GW_MASTER_KEY: that has to be the present key"
    ]
    assert faults(GW_MASTER_KEY=KEY.hex(), GW_MASTER_KEY_PREVIOUS="short") == [
        "GW_MASTER_KEY_PREVIOUS: must be 32 bytes, as 64 hexadecimal digits or in base64"
    ]
