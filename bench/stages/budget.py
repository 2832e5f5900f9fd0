"""CPU of a request at saturation by stage, beside what each stage may take.

Samples the worker between its instructions (see `sampler/`) under the load "json 1 KB" or another:

    python -m bench.stages.budget [--load "json 1 KB"] [--seconds 10] [--functions 40]
"""

import argparse
import collections
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench.ab import Bench
from bench.scenarios import SCENARIOS, body_of
from bench.targets import ROOT, built, first_answer_s, gateway, mock_and_redis, start, stop

SAMPLER: Final = Path(__file__).parent / "sampler"
OTHER: Final = "other"

STAGES: Final = (
    # stage, budget in us, what its innermost frame begins with
    ("accept, parse, ASGI task, reply write", 24, (
        "uvicorn/", "cluster_gw/server/protocol", "cluster_gw/server/cycle", "asyncio/runners",
        "runners.py", "_weakrefset", "cluster_gw/pipeline/reply")),
    ("Starlette app, routing", 8, ("starlette/", "cluster_gw/server/routes")),
    ("auth, body, decode", 4, (
        "cluster_gw/server/auth", "cluster_gw/server/body", "cluster_gw/server/hints",
        "cluster_gw/server/ids", "cluster_gw/surfaces/", "cluster_gw/canonical/")),
    ("policy, routing decision", 8, (
        "cluster_gw/core/routing/", "cluster_gw/pipeline/plan", "cluster_gw/pipeline/targets",
        "cluster_gw/pipeline/backlog")),
    ("admission", 9, (
        "cluster_gw/pipeline/admit", "cluster_gw/pipeline/holding", "cluster_gw/store/admission",
        "cluster_gw/store/plan", "cluster_gw/core/limits/")),
    ("Redis lane, both scripts", 0, ("cluster_gw/store/", "redis/")),
    ("rewrite body", 1, ("cluster_gw/providers/openai_chat.py:encode_request",
                         "cluster_gw/providers/quirks")),
    ("upstream call", 15, ("cluster_gw/upstream/",)),
    ("usage decode, settle queue", 5, (
        "cluster_gw/providers/", "cluster_gw/store/settlement", "cluster_gw/store/lease",
        "cluster_gw/pipeline/settle", "cluster_gw/core/outcome/charge")),
    ("client and phase watch", 6, ("cluster_gw/server/departure", "cluster_gw/pipeline/watchdog")),
    ("metrics", 3, ("cluster_gw/telemetry/registry", "cluster_gw/pipeline/record.py:_observe")),
    ("log line", 2, ("cluster_gw/telemetry/log", "cluster_gw/pipeline/record.py:_line")),
    ("health", 3, ("cluster_gw/pipeline/health", "cluster_gw/store/refusals")),
    ("the loop, answer headers, trail", 12, (
        "cluster_gw/server/inference", "cluster_gw/pipeline/", "cluster_gw/core/outcome/")),
)  # fmt: skip


def stage_of(stack: str) -> str:
    """The stage of the innermost frame that has one; the longest matching beginning rules."""
    for frame in stack.split(";"):
        matching = [
            (len(start), stage)
            for stage, _, starts in STAGES
            for start in starts
            if frame.startswith(start)
        ]
        if matching:
            return max(matching)[1]
    return OTHER


def measure(load: str, seconds: float) -> tuple[float, dict[str, int]]:
    """CPU of a request in us, and how often each stack was met."""
    scenario = next(one for one in SCENARIOS if one.name == load)
    loadgen = built("loadgen", ("-lm",))
    if loadgen is None:
        sys.exit("the load generator needs gcc")
    with tempfile.TemporaryDirectory() as name, mock_and_redis(Path(name)) as redis_pid:
        samples = Path(name) / "samples.json"
        environ = {"BENCH_SAMPLES": str(samples), "PYTHONPATH": f"{SAMPLER}:{ROOT}"}
        bench = Bench(Path(name), loadgen, redis_pid, is_quick=False)
        target = gateway()
        with start(target, Path(name), environ) as process:
            if first_answer_s(target, process, body_of(scenario)) is None:
                sys.exit("the gateway does not answer")
            bench.alive[target.name] = process
            bench.load(target, scenario, 3.0)
            round_ = bench.measure(target, scenario._replace(seconds=seconds))
            stop(process)
        return round_.cpu_us, msgspec.json.decode(samples.read_bytes())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", default=SCENARIOS[0].name)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--functions", type=int, default=0, help="also print that many functions")
    args = parser.parse_args()
    cpu_us, stacks = measure(args.load, args.seconds)
    each = cpu_us / sum(stacks.values())
    spent: collections.Counter[str] = collections.Counter()
    functions: collections.Counter[str] = collections.Counter()
    for stack, count in stacks.items():
        spent[stage_of(stack)] += count
        functions[stack.partition(";")[0]] += count
    print("| stage | us | budget |\n| --- | --- | --- |")
    for stage, budget, _ in (*STAGES, (OTHER, 0, ())):
        print(f"| {stage} | {spent[stage] * each:.1f} | {budget or '-'} |")
    budget_us = sum(budget for _, budget, _ in STAGES)
    print(f"| total | {cpu_us:.1f} | {budget_us} |")
    for name, count in functions.most_common(args.functions):
        print(f"{count * each:6.2f} {name}")


if __name__ == "__main__":
    main()
