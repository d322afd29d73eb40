"""Where the time of a run of tests went: stages, what was compiled, the slowest tests."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

SLOWEST = 60
"""Tests, and targets, that are kept."""
SHOWN = 10
"""Of these, that are printed."""


class Times:
    def __init__(self, tier: str) -> None:
        self._tier = tier
        self._began = time.time()
        self._stages: list[dict[str, object]] = []
        self._targets: list[tuple[float, str]] = []
        self._tests: list[tuple[float, str]] = []

    def add_stage(self, name: str, seconds: float, passed: int, failed: int, skipped: int) -> None:
        self._stages.append(
            {"name": name, "seconds": round(seconds, 1), "passed": passed, "failed": failed, "skipped": skipped}
        )

    def add_tests(self, seconds: list[tuple[float, str]]) -> None:
        """Of each test its seconds and its name."""
        self._tests += seconds

    def add_targets(self, preset: str, build: Path) -> None:
        """What Ninja made in this folder since this run began. Its log has a line for each: start and end in
        milliseconds, the time stamp of the file in nanoseconds, the file."""
        log = build / ".ninja_log"
        lines = log.read_text().splitlines()[1:] if log.exists() else []
        for line in lines:
            start, end, stamp, output = line.split("\t")[:4]
            if int(stamp) / 1e9 >= self._began:
                self._targets.append(((int(end) - int(start)) / 1000, f"{preset}: {output}"))

    def write(self, file: Path) -> None:
        total = sum(float(str(stage["seconds"])) for stage in self._stages)
        content = {
            "tier": self._tier,
            "cpus": len(os.sched_getaffinity(0)),
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began)),
            "seconds": round(total, 1),
            "stages": self._stages,
            "targets": [{"name": name, "seconds": seconds} for seconds, name in _slowest(self._targets)],
            "tests": [{"name": name, "seconds": seconds} for seconds, name in _slowest(self._tests)],
        }
        file.write_text(json.dumps(content, indent=1) + "\n")

    def show(self) -> None:
        print(f"    {'stage':<12}{'seconds':>9}{'passed':>8}{'failed':>8}{'skipped':>9}")
        for stage in self._stages:
            numbers = f"{stage['passed']:>8}{stage['failed']:>8}{stage['skipped']:>9}"
            print(f"    {stage['name']:<12}{stage['seconds']:>9}{numbers}")
        print(f"    {'all':<12}{sum(float(str(stage['seconds'])) for stage in self._stages):>9.1f}")
        for title, times in (("compiled", self._targets), ("tests", self._tests)):
            if times:
                print(f"    {len(times)} {title}, {sum(t for t, _ in times):.0f} s in all; those that took longest:")
            for seconds, name in _slowest(times)[:SHOWN]:
                print(f"    {seconds:>9.1f}  {name}")


def _slowest(times: list[tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(times, reverse=True)[:SLOWEST]
