"""Each decoder under the fuzzer for a moment; `make fuzz` takes its time."""

import inspect

import pytest

from cluster_gw import providers, surfaces
from cluster_gw.providers.base import StreamDecoder
from tests.fuzz.codecs import providers as provider_codecs
from tests.fuzz.codecs import surfaces as surface_codecs
from tests.fuzz.runs import fuzzed
from tests.fuzz.seeds import seeds
from tests.fuzz.structs import classes_below
from tests.fuzz.targets import targets

SECONDS = 1
SEED = 1  # what is new is for `make fuzz` to find, not for a change of something else
FEW_INPUTS = 20


def is_stream_decoder(kind: type) -> bool:
    """Whether streams are decoded by it: what it has of a base counts, the base does not."""
    is_whole = not inspect.isabstract(kind) and kind is not StreamDecoder
    return is_whole and hasattr(kind, "decode") and hasattr(kind, "flush")


@pytest.mark.fuzz
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", targets())
def test_no_input_breaks_a_decoder(name: str) -> None:
    pytest.importorskip("atheris", reason="the fuzzer has no wheel for this platform")

    run = fuzzed(name, SECONDS, seed_number=SEED)

    assert run.is_sound, run.told
    assert run.count > FEW_INPUTS


@pytest.mark.parametrize("name", targets())
def test_every_seed_passes_its_target(name: str) -> None:
    given = list(seeds(name))

    for seed in given:
        targets()[name](seed)

    assert given
    targets()[name](b"")


def test_every_decoder_of_a_stream_is_fuzzed() -> None:
    kinds = set(filter(is_stream_decoder, classes_below(providers)))

    fuzzed_kinds = {type(codec.stream_decoder()) for codec in provider_codecs().values()}
    assert kinds == fuzzed_kinds


def test_every_codec_is_fuzzed() -> None:
    upstream = {one for one in classes_below(providers) if "decode_completion" in vars(one)}
    client = {one for one in classes_below(surfaces) if "decode_request" in vars(one)}

    protocols = {"Provider", "Surface"}
    assert {one.__name__ for one in upstream} - protocols == {
        type(codec).__name__ for codec in provider_codecs().values()
    }
    assert {one.__name__ for one in client} - protocols == {
        type(codec).__name__ for codec in surface_codecs().values()
    }
