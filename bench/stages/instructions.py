"""Instructions of a request, counted and not timed: what other work on the machine cannot move.

Runs the gateway under valgrind's callgrind, which counts only while a load runs after the warm-up,
and divides by the requests of that load. Instructions of user space alone: what the kernel does for
a request is not in them.

    python -m bench.stages.instructions [--load "json 1 KB"] [--functions 40] [--keep FILE]
    python -m bench.stages.instructions --write bench/results/instructions.json
    python -m bench.stages.instructions --against bench/results/instructions.json [--slack 0.02]
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.ab import Bench
from bench.machine import tree_of
from bench.scenarios import SCENARIOS, Scenario, body_of
from bench.targets import built, first_answer_s, gateway, mock_and_redis, start, stop

CONNS: Final = 16
"""Few, since callgrind makes each request some fifty times slower; enough to share round trips."""
IDLE_S: Final = 5.0
START_TIMEOUT_S: Final = 120.0
NAME: Final = re.compile(r"^.*?:(?=\S)|(?<=\[)/\S*/")
"""What callgrind writes before the name of a function, and before that of its file."""
SUMMARY: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)


class Count(NamedTuple):
    """What one load came to."""

    load: str
    requests: int
    instructions: float
    """Of one request."""
    functions: tuple[tuple[float, str], ...] = ()
    """The same by function of the interpreter and its libraries, most first."""


def control(root: int, *options: str) -> None:
    """Tell the gateway's processes, each of which runs under callgrind, to do something."""
    for pid in sorted(tree_of(root)):
        subprocess.run(
            ["callgrind_control", *options, str(pid)], check=True, capture_output=True, timeout=60
        )


def count(scenario: Scenario, seconds: float, functions: int, keep: Path | None) -> Count:
    """Run the load and count; ends the program when it cannot be measured."""
    loadgen = built("loadgen", ("-lm",))
    if loadgen is None or shutil.which("valgrind") is None:
        sys.exit("counting instructions needs gcc and valgrind")
    load = scenario._replace(conns=CONNS, rate=None)
    with tempfile.TemporaryDirectory() as name, mock_and_redis(Path(name)) as redis_pid:
        out = Path(name) / "callgrind.out"
        target = gateway()
        valgrind = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--trace-children=yes")
        target = target._replace(
            command=(
                *valgrind,
                "--quiet",
                f"--callgrind-out-file={out}.%p",
                *(target.command or ()),
            )
        )
        bench = Bench(Path(name), loadgen, redis_pid, is_quick=False)
        # the order of sets and the seeds of draws must not move the count
        with start(target, Path(name), {"PYTHONHASHSEED": "0"}) as process:
            if first_answer_s(target, process, body_of(load), START_TIMEOUT_S) is None:
                sys.exit("the gateway does not answer under valgrind")
            bench.alive[target.name] = process
            bench.load(target, load, 4.0)
            control(process.pid, "-i", "on")
            bench.load(target, load, 2.0)
            control(process.pid, "-z")
            began_s = time.monotonic()
            time.sleep(IDLE_S)
            control(process.pid, "-d")
            idle_s = time.monotonic() - began_s
            began_s = time.monotonic()
            got = bench.load(target, load, seconds)
            control(process.pid, "-d")
            load_s = time.monotonic() - began_s
            control(process.pid, "-i", "off")
            stop(process)
        if got.get("bad", 1) or not got.get("requests"):
            sys.exit(f"the load did not go well: {got}")
        requests = int(got["requests"])
        (_, idle), (dump, total) = sums_of(out)
        # What a worker does each second, whatever is asked of it, is no request's.
        total -= round(idle * load_s / idle_s)
        if keep is not None:
            shutil.copy(dump, keep)
        return Count(load.name, requests, total / requests, functions_of(dump, requests, functions))


def sums_of(out: Path) -> list[tuple[Path, int]]:
    """All instructions of the idle worker and of the one under load, each with its file.

    Each dump of each process has a file of its own; the supervisor's are small beside the worker's.
    """
    dumps: dict[str, list[tuple[Path, int]]] = {}
    for path in sorted(out.parent.glob(f"{out.name}.*.*"), key=lambda one: int(one.suffix[1:])):
        found = SUMMARY.search(path.read_text(errors="replace"))
        dumps.setdefault(path.stem, []).append((path, int(found[1]) if found else 0))
    of_worker = max(dumps.values(), key=lambda several: sum(count for _, count in several))
    return of_worker[:2]


def functions_of(dump: Path, requests: int, most: int) -> tuple[tuple[float, str], ...]:
    """Instructions of a request within each function, most first."""
    if not most:
        return ()
    text = subprocess.run(
        ["callgrind_annotate", "--threshold=99", str(dump)],
        check=True, capture_output=True, text=True, timeout=300,
    ).stdout  # fmt: skip
    rows = re.findall(r"^\s*([\d,]+) \([^)]*\)\s+(.+)$", text, re.MULTILINE)
    counted = (
        (int(number.replace(",", "")) / requests, NAME.sub("", where))
        for number, where in rows
        if "PROGRAM TOTALS" not in where
    )
    return tuple(sorted(counted, reverse=True)[:most])


def main() -> None:
    """Count and print, keep or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", default=SCENARIOS[0].name)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--functions", type=int, default=0, help="also print that many functions")
    parser.add_argument("--keep", type=Path, help="callgrind's own file, for callgrind_annotate")
    parser.add_argument("--write", type=Path, help="keep the count in this file")
    parser.add_argument("--against", type=Path, help="fail if more than the kept count")
    parser.add_argument("--slack", type=float, default=0.02, help="share that is let through")
    args = parser.parse_args()
    scenario = next(one for one in SCENARIOS if one.name == args.load)
    counted = count(scenario, args.seconds, args.functions, args.keep)
    print(f"{counted.load}: {counted.instructions:,.0f} instructions a request")
    print(f"counted over {counted.requests:,} requests")
    for number, name in counted.functions:
        print(f"{number:10,.0f} {name}")
    if args.write:
        args.write.write_bytes(msgspec.json.encode(counted._replace(functions=())) + b"\n")
    if args.against:
        kept = msgspec.json.decode(args.against.read_bytes(), type=Count)
        more = counted.instructions / kept.instructions - 1
        print(f"{more:+.1%} of {kept.instructions:,.0f} kept")
        if more > args.slack:
            sys.exit(f"more than {args.slack:.0%} above the kept count")


if __name__ == "__main__":
    main()
