#!/usr/bin/env python3
"""Messages between two network namespaces, beside what libfabric and UCX do there themselves.

    scripts/network_bench.py [--nic ofi:tcp] [--quick] [--json FILE]

Contiguous bytes: Lacuna, `fi_pingpong` on the same provider, `ucx_perftest` over TCP, in turn. DDTBench's layouts of
32 KiB and more: Lacuna, and loops that pack by hand around the same endpoints. Lacuna's messages are verified, gaps
too, in the same run (tools/bench/network). Times are those of one message, half a round trip; of each contender the
shortest of the repetitions, since what else the machine does only makes times longer. Each end has a CPU of its own.

Debian's packages are libfabric-bin and ucx-utils; without them their columns are skipped, which is said. Exits with 1
if wrong bytes arrived, with 77 where this machine makes no such namespaces.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "build" / "release" / "bin" / "lacuna-network-bench"
NETWORKS = ROOT / "scripts" / "two_networks.sh"
MEET = "10.77.0.1"
"""Where scripts/two_networks.sh puts the first end."""

KIB = 1024
MIB = KIB * KIB
SMALL = 8
LARGE = (MIB, 4 * MIB)
DDTBENCH = (32 * KIB, 64 * MIB)
"""Bytes: rows of fewer are not about bandwidth; DDTBench has none of more."""

SHORT_TRIPS = 20000
LONG_TRIPS = 300
SKIPPED = 77
LIMIT = 300
"""Seconds of one program."""

GOALS = {"latency": 1.3, "bandwidth": 0.9, "ddtbench": 0.8}


class SkipError(Exception):
    """This machine cannot do it."""


class WrongError(Exception):
    """A program failed, or wrong bytes arrived."""


@dataclass
class Found:
    us: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """By contender, by bytes: of each repetition."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of DDTBench, as tools/bench/job/measure.hpp says."""
    hello: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, contender: str, size: int, us: float) -> None:
        self.us.setdefault(contender, {}).setdefault(size, []).append(us)

    def best(self, contender: str, size: int) -> float | None:
        times = self.us.get(contender, {}).get(size)
        return min(times) if times else None


def between(first: str, second: str) -> str:
    """What the first of two shell commands prints; each has the CPU of its number."""
    line: list[str | Path] = [
        NETWORKS,
        "bash",
        "-c",
        f"exec taskset -c 0 {first}",
        "--",
        "bash",
        "-c",
        f"exec taskset -c 1 {second}",
    ]
    environment = {**os.environ, "LACUNA_SECRET": secrets.token_hex(16)}
    run = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    if run.returncode == SKIPPED:
        raise SkipError(run.stderr.strip().splitlines()[-1])
    if run.returncode != 0:
        raise WrongError(f"{first}: exit status {run.returncode}: {run.stderr.strip()[-2000:]}")
    return run.stdout


def lacuna(found: Found, nic: str, suite: str, fewest: int, most: int, milliseconds: int) -> None:
    command = "{} '{}' {}:7481 {} {} {} {} {}"
    ends = [command.format(BENCH, nic, MEET, rank, suite, fewest, most, milliseconds) for rank in (0, 1)]
    for line in between(*ends).splitlines():
        said = json.loads(line)
        if "error" in said:
            raise WrongError(said["error"])
        found.hello = said.get("hello", found.hello)
        row = said.get("row")
        if row and suite == "contiguous":
            found.add("lacuna", row["payload_bytes"], row["contenders"][0]["us"])
        elif row:
            found.rows.append(row)


def fi_pingpong(found: Found, nic: str, size: int) -> None:
    provider = nic.removeprefix("ofi:")
    kind = "rdm" if ";" in provider else "msg"
    trips = SHORT_TRIPS if size < MIB else LONG_TRIPS
    command = f"fi_pingpong -p '{provider}' -e {kind} -I {trips} -S {size}"
    said = between(command, f'bash -c "sleep 0.5; exec {command} {MEET}"')
    found.add("fi_pingpong", size, float(said.split()[-2]))


def ucx(found: Found, _nic: str, size: int) -> None:
    """UCX finds its devices in /sys, which is another one in each namespace; the end that connects prints the times."""
    trips = SHORT_TRIPS if size < MIB else LONG_TRIPS
    program = f"env UCX_TLS=tcp UCX_NET_DEVICES=cable{{}} ucx_perftest -f -t tag_lat -s {size} -n {trips}"
    own_sys = "unshare --mount bash -c 'mount -t sysfs sysfs /sys && {}'"
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as said:
        listens = own_sys.format(f"{program.format(0)} > /dev/null")
        between(listens, own_sys.format(f"sleep 0.5; {program.format(1)} {MEET} > {said.name}"))
        numbers = [line.split() for line in said if re.match(r"\s*\d+\s", line)]
    if not numbers:
        raise WrongError("ucx_perftest printed no times")
    found.add("ucx_perftest", size, float(numbers[-1][3]))  # iterations; of a message half, mean and overall


def measure(nic: str, quick: bool) -> Found:
    found = Found()
    others = {"fi_pingpong": fi_pingpong, "ucx_perftest": ucx}
    for tool in list(others):
        if shutil.which(tool) is None or (tool == "fi_pingpong" and not nic.startswith("ofi:")):
            found.skipped.append(f"{tool} is not here, or not for NIC {nic} (`scripts/peers.sh install`)")
            del others[tool]
    for _ in range(2 if quick else 5):
        for size in (SMALL, *LARGE):
            lacuna(found, nic, "contiguous", size, size, 200)
            for other in others.values():
                other(found, nic, size)
    lacuna(found, nic, "ddtbench", *DDTBENCH, 20 if quick else 100)
    return found


def by_hand(row: dict[str, Any]) -> float:
    """Lacuna's time over that of the better loop."""
    return max(float(contender["ratio"]) for contender in row["contenders"][1:])


def mean(ratios: list[float]) -> float:
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def report(found: Found) -> dict[str, Any]:
    contiguous = []
    for size in (SMALL, *LARGE):
        times = {name: found.best(name, size) for name in found.us}
        ours = times["lacuna"] or 0.0
        ratios = {name: ours / us for name, us in times.items() if name != "lacuna" and us and ours}
        contiguous.append({"bytes": size, "us": times, "ratios": ratios})
    packed = sorted(by_hand(row) for row in found.rows)
    ddtbench = {"rows": found.rows, "mean_ratio": mean(packed), "worst_ratio": packed[-1], "cases": len(packed)}
    hello = {name: found.hello.get(name) for name in ("version", "nic", "machine", "compiler", "instruction_set")}
    return {**hello, "contiguous": contiguous, "ddtbench": ddtbench, "goals": GOALS, "skipped": found.skipped}


def show(made: dict[str, Any]) -> None:
    for row in made["contiguous"]:
        times = ", ".join(f"{name} {us:.4g} us" for name, us in row["us"].items() if us)
        ratios = ", ".join(f"{ratio:.2f} of {name}'s" for name, ratio in row["ratios"].items())
        print(f"{row['bytes']:>9} B  {times}; time: {ratios or 'nothing to compare with'}")
    for row in sorted(made["ddtbench"]["rows"], key=by_hand):
        print(f"{by_hand(row):5.2f}  {row['case']}, {row['payload_bytes']} B, {row['contenders'][0]['us']:.4g} us")
    ddtbench = made["ddtbench"]
    mean_ratio, worst = ddtbench["mean_ratio"], ddtbench["worst_ratio"]
    print(f"DDTBench, {ddtbench['cases']} rows: {mean_ratio:.2f} of packing by hand in the mean, {worst:.2f} at worst")
    for skipped in made["skipped"]:
        print(f"skipped: {skipped}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nic", default="ofi:tcp")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, a minute in all")
    parser.add_argument("--json", type=Path, help="where the figures go")
    chosen = parser.parse_args()
    try:
        made = report(measure(chosen.nic, chosen.quick))
    except SkipError as why:
        print(f"skipped: {why}")
        return SKIPPED
    except WrongError as why:
        print(f"failed: {why}", file=sys.stderr)
        return 1
    if chosen.json:
        chosen.json.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    show(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
