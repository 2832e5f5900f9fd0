"""Each decoder under the fuzzer: a moment, or 20 s in CI; `make fuzz` takes its time."""

import inspect
import os
from types import ModuleType

import pytest

from cluster_gw import providers, surfaces
from cluster_gw.providers.base import Provider, StreamDecoder
from cluster_gw.surfaces.base import Surface
from tests.fuzz.codecs import providers as provider_codecs
from tests.fuzz.codecs import surfaces as surface_codecs
from tests.fuzz.runs import fuzzed
from tests.fuzz.seeds import seeds
from tests.fuzz.structs import classes_below
from tests.fuzz.targets import targets

SECONDS = 20 if os.environ.get("CI") else 1
SEED = 1  # what is new is for `make fuzz` to find, not for a change of something else
FEW_INPUTS = 20


def makers_of(package: ModuleType, *methods: str) -> set[type]:
    """Classes that have all these methods, themselves or of a base; the bases do not count."""
    return {
        one
        for one in classes_below(package)
        if all(hasattr(one, name) for name in methods)
        and not inspect.isabstract(one)
        and one not in {StreamDecoder, Provider, Surface}
    }


@pytest.mark.fuzz
@pytest.mark.timeout(180)
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
    fuzzed_kinds = {type(codec.stream_decoder()) for codec in provider_codecs().values()}

    assert makers_of(providers, "decode", "flush") == fuzzed_kinds


def test_every_codec_is_fuzzed() -> None:
    assert makers_of(providers, "decode_completion") == set(map(type, provider_codecs().values()))
    assert makers_of(surfaces, "decode_request") == set(map(type, surface_codecs().values()))
