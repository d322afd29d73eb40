#!/usr/bin/env python3
"""Measures what the preloaded library costs programs that it brings nothing: time preloaded over time plain.

    python tests/mpi/cost/cost.py [--mpi NAME]... [--only GROUP]... [--pairs N] [--json FILE] [--lib DIR]

Groups: once (a datatype for each message), many (4000 receives ended by each call), exchange (1 or 32 messages each way
at once, with and without gaps), busy (exchanges beside one process
that computes on each CPU, with 2 and 4 ranks), latency (8 bytes), bandwidth (contiguous bytes). Each pair is one job
without the library and one with it, one after the other, in turns. A row has the median of the pairs' ratios, the
least and the largest of them, and the median of the differences in ns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import run
from rich.console import Console
from rich.progress import Progress

SOURCE = Path(__file__).with_name("cost.c")
SECONDS = 300.0
"""What a job may take."""
COUNT = 4000


@dataclass(frozen=True)
class Case:
    """One way of use. `limit`: what the ratio is to be at most."""

    group: str
    arguments: str
    limit: float
    ranks: int = 2
    busy: bool = False
    threads: bool = False

    def name(self) -> str:
        notes = [f"{self.ranks} ranks"] * self.busy + ["threads"] * self.threads
        return " ".join([self.arguments.rsplit(" ", 1)[0], *notes])


@dataclass(frozen=True)
class Row:
    """What was measured of a case on one MPI. Times in ns."""

    mpi: str
    group: str
    case: str
    limit: float
    plain: float
    preloaded: float
    ratio: float
    least: float
    largest: float
    ratio_of_p90: float
    difference: float


def cases() -> list[Case]:
    once = [
        Case("once", f"once {kind} {blocks} {way} {rounds}", 1.1)
        for kind in ("vector", "indexed", "struct")
        for blocks, rounds in ((16, 400), (300, 200), (30_000, 15))
        for way in ("calls", "requests")
    ]
    calls = ("all", "any", "some", "testall", "testany", "testsome")
    many = [Case("many", f"many {call} {COUNT} 5", 1.3, threads=threads) for threads in (False, True) for call in calls]
    busy = [
        Case("busy", f"ring {size} {rounds}", 1.2, ranks=ranks, busy=True)
        for ranks in (2, 4)
        for size, rounds in ((1024, 60), (32_768, 60), (1 << 20, 40))
    ]
    exchange = [
        Case("exchange", f"exchange {kind} {numbers} {count} 60", 1.05)
        for kind in ("numbers", "vector")
        for numbers in (4, 16, 64, 256, 1024)
        for count in (1, 32)
    ]
    latency = [Case("latency", "ping 8 200", 1.0)]
    bandwidth = [Case("bandwidth", f"ping {size} 60", 1.01) for size in (1 << 16, 1 << 20, 1 << 22, 1 << 24)]
    return [*latency, *bandwidth, *exchange, *once, *many, *busy]


@contextlib.contextmanager
def computing(number: int) -> Iterator[None]:
    """So many processes that compute."""
    all_of_them = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for one in all_of_them:
            one.kill()
            one.wait()


def job(launched: run.Launch, built: Path, case: Case, preload: Path | None) -> tuple[float, float]:
    """Median and 90th percentile of its rounds, in ns. Raises RunError."""
    started = launched.of(case.ranks)
    inner = [f"LD_PRELOAD={preload}"] if preload else []
    threads = {"COST_THREADS": "1"} if case.threads else {}
    line = [*started.line, "env", *inner, str(built), *case.arguments.split()]
    try:
        done = subprocess.run(
            line, env=started.environment | threads, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as e:
        raise run.RunError(f"{case.name()}: longer than {SECONDS:.0f} s") from e
    said = done.stdout.split()
    if done.returncode != 0 or len(said) != 2:
        raise run.RunError(f"{case.name()}: ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    return float(said[0]), float(said[1])


def measure(name: str, launched: run.Launch, built: Path, preload: Path, case: Case, pairs: int) -> Row:
    plain, preloaded = [], []
    with computing(os.cpu_count() or 1) if case.busy else contextlib.nullcontext():
        for number in range(pairs):
            for with_it in (False, True) if number % 2 == 0 else (True, False):
                said = job(launched, built, case, preload if with_it else None)
                (preloaded if with_it else plain).append(said)
    ratios = [after[0] / before[0] for before, after in zip(plain, preloaded, strict=True)]
    return Row(
        mpi=name,
        group=case.group,
        case=case.name(),
        limit=case.limit,
        plain=statistics.median(median for median, _ in plain),
        preloaded=statistics.median(median for median, _ in preloaded),
        ratio=statistics.median(ratios),
        least=min(ratios),
        largest=max(ratios),
        ratio_of_p90=statistics.median(after[1] / before[1] for before, after in zip(plain, preloaded, strict=True)),
        difference=statistics.median(after[0] - before[0] for before, after in zip(plain, preloaded, strict=True)),
    )


def text(row: Row) -> str:
    mark = " " if row.ratio <= row.limit else "!"
    times = f"{row.plain / 1e3:11.2f} us {row.preloaded / 1e3:11.2f} us  {row.difference:9.0f} ns"
    ratios = f"{row.ratio:5.2f} ({row.least:.2f} to {row.largest:.2f})  p90 {row.ratio_of_p90:5.2f}"
    return f"{mark} {row.mpi:16} {row.case:34} {times}  {ratios}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="append", help="one of those of scripts/peers.sh")
    parser.add_argument("--only", action="append", help="a group")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--lib", help="a folder with the libraries")
    options = parser.parse_args()
    if options.lib:
        os.environ["LACUNA_MPI_LIB_DIR"] = options.lib
    chosen = [case for case in cases() if not options.only or case.group in options.only]
    peers = [peer for peer in run.installed() if not options.mpi or peer.name in options.mpi]
    if not chosen or not peers:
        parser.error("no such group, or no such MPI: see scripts/peers.sh all")
    rows: list[Row] = []
    failed = 0
    with Progress(console=Console(stderr=True, soft_wrap=True)) as progress:
        task = progress.add_task("measuring", total=len(chosen) * len(peers))
        for peer in peers:
            built = run.build(peer, SOURCE, run.BUILT)
            for case in chosen:
                try:
                    rows.append(measure(peer.name, run.launch(peer), built, run.library(peer), case, options.pairs))
                    progress.console.print(text(rows[-1]), highlight=False)
                except run.RunError as e:
                    failed += 1
                    progress.console.print(f"? {peer.name}: {e}", highlight=False)
                progress.advance(task)
                if options.json:
                    options.json.write_text(json.dumps({"schema": 1, "rows": [asdict(row) for row in rows]}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
