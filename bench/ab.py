"""Measures the gateway beside nginx and a bare pass-through, in turns, on this machine.

`python -m bench.ab --all` runs every load and writes `bench/results/`; `--quick` takes about a
minute and fails when a bound is broken. The method is in `bench/README.md`.
"""

import argparse
import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.machine import TOOL_CORE, pinned, tree_usage
from bench.report import Facts, Round, Row, Table, render, row_of, verdicts
from bench.scenarios import SCENARIOS, Scenario, body_of
from bench.targets import (
    CLIENT_KEY,
    HERE,
    LIMITED_KEY,
    Target,
    bare,
    built,
    direct,
    first_answer_s,
    gateway,
    mock_and_redis,
    nginx,
    start,
)

WARM_S = 1.0
QUICK_WARM_S, QUICK_S = 0.5, 2.5
GONE_LIMIT_S = 2.0
CACHED = "x-gw-cache: on"  # switches the cache on for a request, so that one gateway does both
PACKAGES = ("starlette", "uvicorn", "uvloop", "httptools", "redis", "hiredis", "msgspec")


class Bench:
    """One run: where its files lie, which Redis is watched, which programs are alive."""

    def __init__(
        self, folder: Path, loadgen: Path, redis_pid: int | None, *, is_quick: bool
    ) -> None:
        self.folder = folder
        self.loadgen = loadgen
        self.redis_pid = redis_pid
        self.warm_s = QUICK_WARM_S if is_quick else WARM_S
        self.limit_s = QUICK_S if is_quick else float("inf")
        self.alive: dict[str, subprocess.Popen[bytes]] = {}

    def load(self, target: Target, scenario: Scenario, seconds: float) -> dict[str, float]:
        """Runs the generator once; an empty result means the target refused to work at all."""
        kind = f"{scenario.upstream}-{scenario.prompt_bytes}-{scenario.chunks}-{scenario.is_new}"
        body = self.folder / f"{kind}.json"
        body.write_bytes(body_of(scenario))
        port = target.port or int(scenario.upstream)
        command = [str(self.loadgen), "--port", str(port), "--body", str(body)]
        command += ["--path", target.path.format(upstream=scenario.upstream)]
        command += ["--conns", str(scenario.conns), "--seconds", str(seconds)]
        for header in target.headers:
            limited = header.replace(CLIENT_KEY, LIMITED_KEY)
            command += ["--header", limited if scenario.is_limited else header]
        if scenario.is_cached:
            command += ["--header", CACHED]
        if scenario.rate:
            command += ["--rate", str(scenario.rate)]
        if scenario.chunks:
            command.append("--stream")
        done = subprocess.run(
            pinned(command, TOOL_CORE), capture_output=True, timeout=seconds + 20, check=False
        )
        return msgspec.json.decode(done.stdout) if done.returncode == 0 else {}

    def measure(self, target: Target, scenario: Scenario) -> Round:
        """One round: a warm-up outside the count, then the load between two looks at the CPU."""
        self.load(target, scenario, self.warm_s)
        process = self.alive.get(target.name)
        before, redis_before = self._usage(process), self._redis_s()
        got = self.load(target, scenario, min(scenario.seconds, self.limit_s))
        after, redis_after = self._usage(process), self._redis_s()
        count = int(got.get("requests", 0))
        each = 1e6 / count if count else 0.0
        return Round(
            requests=count,
            bad=int(got.get("bad", 1)),
            rps=got.get("rps", 0.0),
            cpu_us=(after[0] - before[0]) * each,
            redis_cpu_us=(redis_after - redis_before) * each if target.name == "gateway" else 0.0,
            p50_us=got.get("p50_us", 0.0),
            p99_us=got.get("p99_us", 0.0),
            first_p50_us=got.get("first_p50_us", 0.0),
            first_p99_us=got.get("first_p99_us", 0.0),
            rss_mb=after[2],
            tree_mb=after[1],
        )

    def run(self, scenario: Scenario, targets: Sequence[Target], rounds: int) -> list[Row]:
        """Alternates the targets, so that a change of the machine touches all of them."""
        taken: dict[str, list[Round]] = {target.name: [] for target in targets}
        for _ in range(rounds):
            for target in targets:
                taken[target.name].append(self.measure(target, scenario))
        return [row_of(scenario.name, name, list_of) for name, list_of in taken.items()]

    def facts(self, target: Target, start_s: float) -> Facts:
        """Start-up, idle memory, and how soon a client that leaves is noticed upstream."""
        return Facts(
            target=target.name,
            start_s=start_s,
            idle_mb=self._usage(self.alive[target.name])[2],
            gone_ms=client_gone_ms(target),
        )

    def _usage(self, process: subprocess.Popen[bytes] | None) -> tuple[float, float, float]:
        return tree_usage(process.pid) if process is not None else (0.0, 0.0, 0.0)

    def _redis_s(self) -> float:
        return tree_usage(self.redis_pid).cpu_s if self.redis_pid is not None else 0.0


def client_gone_ms(target: Target) -> float | None:
    """Opens a stream, leaves in its middle; ms until the mock saw its own connection close."""
    scenario = next(one for one in SCENARIOS if one.chunks)
    body = body_of(scenario)
    lines = [f"POST {target.path.format(upstream=scenario.upstream)} HTTP/1.1", "host: bench"]
    lines += ["content-type: application/json", *target.headers, f"content-length: {len(body)}"]
    before = mock_aborted()
    with socket.create_connection(("127.0.0.1", target.port), timeout=5) as client:
        client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        got = b""
        while b"data:" not in got and (data := client.recv(65_536)):
            got += data
    left = time.monotonic()
    while time.monotonic() - left < GONE_LIMIT_S:
        if mock_aborted() > before:
            return (time.monotonic() - left) * 1000
        time.sleep(0.001)
    return None


def mock_aborted() -> int:
    """Streams whose client went away, as the mock counts them."""
    with socket.create_connection(("127.0.0.1", 19100), timeout=5) as asking:
        asking.sendall(b"GET /stats HTTP/1.1\r\nhost: bench\r\n\r\n")
        page = asking.recv(4096)
    return int(msgspec.json.decode(page.partition(b"\r\n\r\n")[2])["aborted"])


def run_all(args: argparse.Namespace, folder: Path) -> tuple[list[Row], list[Facts]]:
    """Starts everything, measures, ends everything."""
    loadgen = built("loadgen", ("-lm",))
    if loadgen is None:
        sys.exit("the load generator needs gcc")
    wanted = [nginx(folder), gateway()] if args.quick else [nginx(folder), bare(), gateway()]
    if args.targets:
        wanted = [target for target in wanted if target.name in args.targets.split(",")]
    rows: list[Row] = []
    facts: list[Facts] = []
    with contextlib.ExitStack() as stack:
        redis_pid = stack.enter_context(mock_and_redis(folder))
        bench = Bench(folder, loadgen, redis_pid, is_quick=args.quick)
        targets = []
        for target in wanted:
            process = stack.enter_context(start(target, folder))
            bench.alive[target.name] = process
            start_s = first_answer_s(target, process, body_of(SCENARIOS[0]))
            if start_s is None:
                print(f"{target.name}: does not answer; see its log\n{last_lines(folder, target)}")
                continue
            targets.append(target)
            facts.append(bench.facts(target, start_s))
        for scenario in SCENARIOS:
            if (args.quick and not scenario.is_quick) or args.only not in scenario.name:
                continue
            chosen = targets if scenario.rate is None else [*targets, direct()]
            found = bench.run(scenario, chosen, args.rounds)
            print(render(found), flush=True)
            rows += found
    return rows, facts


def missing_tools() -> list[str]:
    """What a run needs and this machine has not got."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return [
        name for name in ("gcc", "nginx", "redis-server") if shutil.which(name, path=path) is None
    ]


def last_lines(folder: Path, target: Target) -> str:
    """The end of a target's log."""
    return "\n".join((folder / f"{target.name}.log").read_text(errors="replace").splitlines()[-15:])


def about() -> str:
    """Versions and machine, as the first lines of a results file."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    # Whose build it is matters: of two 3.11 on one machine one was a tenth faster.
    python = f"Python {platform.python_version()} ({platform.python_compiler()})"
    system = f"Linux {platform.release()}, {python}"
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of {model}, {system}, {packages}"


def facts_table(facts: Sequence[Facts]) -> str:
    lines = ["| target | start s | RSS idle MB | client gone ms |", "| --- | --- | --- | --- |"]
    for fact in facts:
        gone = "not seen" if fact.gone_ms is None else f"{fact.gone_ms:.1f}"
        lines.append(f"| {fact.target} | {fact.start_s:.2f} | {fact.idle_mb:.0f} | {gone} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit 0 when all bounds that could be judged hold and the gateway was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every load, results written")
    parser.add_argument("--quick", action="store_true", help="about 60 s, only the bounds")
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="where a tool is missing nothing is measured, which is no fault but in CI",
    )
    parser.add_argument("--targets", default="", help="comma list of nginx, bare, gateway")
    parser.add_argument("--only", default="", help="only loads whose name holds this text")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    missing = missing_tools()
    if args.if_possible and missing and not os.environ.get("CI"):
        print(f"speed is not measured: {', '.join(missing)} not found")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended, too
    with tempfile.TemporaryDirectory(prefix="gw-bench-") as name:
        rows, facts = run_all(args, Path(name))
    table = Table(rows, facts)
    text, holds = verdicts(table)
    print(facts_table(facts) + "\n" + text)
    if args.all:
        write_results(rows, facts, text)
    measured = any(row.target == "gateway" and not row.is_void for row in rows)
    void = [row for row in rows if row.is_void]
    for row in void:
        print(f"void: {row.scenario}, {row.target}: {row.bad} bad replies")
    return 0 if holds and not void and (measured or args.targets) else 1


def write_results(rows: Sequence[Row], facts: Sequence[Facts], text: str) -> None:
    """Markdown for people and JSON for programs, named by the day."""
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    stem = time.strftime("%Y-%m-%d")
    page = [about(), "", text, facts_table(facts), render(rows)]
    (folder / f"{stem}.md").write_text(f"# Results of {stem}\n\n" + "\n".join(page))
    data = {"about": about(), "rows": rows, "facts": facts}
    (folder / f"{stem}.json").write_bytes(msgspec.json.format(msgspec.json.encode(data)) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
