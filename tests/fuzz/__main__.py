"""Feeds decoders with inputs that coverage leads to: `python -m tests.fuzz --seconds 20 [TARGET]`.

Each target runs in a process of its own, one after the other. What breaks one is kept as
`build/fuzz/TARGET-crash-*`, and `--replay FILE TARGET` runs it again without the fuzzer.
"""

import argparse
import sys
from pathlib import Path

from tests.fuzz.runs import fuzzed
from tests.fuzz.targets import targets


def main() -> int:
    """Run what the command line names; 1 when something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    parser.add_argument("--replay", type=Path, help="a kept input")
    parser.add_argument("names", nargs="*", metavar="TARGET", help="all without any")
    given = parser.parse_args()
    if given.replay:
        targets()[given.names[0]](given.replay.read_bytes())
        return 0
    broken = 0
    for name in given.names or targets():
        run = fuzzed(name, given.seconds)
        broken += not run.is_sound
        sys.stdout.write(f"{name}: {run.count} inputs, {'sound' if run.is_sound else 'BROKEN'}\n")
        sys.stdout.write("" if run.is_sound else run.told)
        sys.stdout.flush()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
