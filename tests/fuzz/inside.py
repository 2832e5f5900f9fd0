"""One target in one process, which ends with it: `python -m tests.fuzz.inside TARGET SECONDS`."""

import sys
import time
from pathlib import Path

import atheris

# What is imported here is instrumented, and it must be here for the first time.
with atheris.instrument_imports(include=["cluster_gw"]):
    from tests.fuzz.mutation import NAMES, mutated
    from tests.fuzz.seeds import MAX_BYTES, seeds
    from tests.fuzz.targets import targets

FOLDER = Path("build/fuzz")
HANG_S = 10
SLOW_S = 1.0  # of CPU for one input
RSS_MB = 1024


class SlowInputError(AssertionError):
    """One input took more CPU than any may."""


def fuzz(name: str, seconds: int, scratch: Path, seed_number: int) -> None:
    """Run one target; does not come back.

    Args:
        name: of the target.
        seconds: how long.
        scratch: an empty folder, for what is tried.
        seed_number: of the fuzzer's own randomness; 0 for another one each time.
    """
    target = targets()[name]
    FOLDER.mkdir(parents=True, exist_ok=True)

    def once(data: bytes) -> None:
        begun_s = time.process_time()
        target(data)
        if time.process_time() - begun_s > SLOW_S:
            raise SlowInputError(f"{len(data)} bytes took more than {SLOW_S} s")

    def blindly(data: bytes, max_bytes: int) -> bytes:
        return bytes(atheris.Mutate(data, max_bytes))

    def mutate(data: bytes, max_bytes: int, seed: int) -> bytes:
        return mutated(data, max_bytes, seed, blindly)

    for place, seed in enumerate(seeds(name)):
        (scratch / f"seed-{place}").write_bytes(seed)
    words = FOLDER / "words"
    words.write_text("".join(f'"\\"{word}\\":"\n' for word in NAMES if word.isascii()))
    arguments = [
        sys.argv[0],
        f"-max_total_time={seconds}",
        f"-seed={seed_number}",
        f"-timeout={HANG_S}",
        f"-rss_limit_mb={RSS_MB}",
        f"-max_len={MAX_BYTES}",
        f"-dict={words}",
        f"-artifact_prefix={FOLDER}/{name}-",
        "-print_final_stats=1",
        str(scratch),
    ]
    atheris.Setup(arguments, once, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
