#!/usr/bin/env python3
"""Runs the tests of the NIC seam and of the methods on NIC verbs: in a virtual machine, on Debian's Soft-RoCE.

    scripts/rdma_vm/test.py

Needs build/release. The last line is `N passed, M failed, K skipped`; exits with 1 if any failed. What Soft-RoCE takes
for a transfer says nothing about hardware.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from vm import ROOT, NoMachineError, run

RESULTS = ROOT / "build" / "results" / "rdma"
PROGRAMS = ("nic", "method")
FILTER = "*wire*TwoProcesses*:*TwoProcesses*wire*"
TIMEOUT = "14"
"""LACUNA_VERBS_TIMEOUT: 67 ms to an attempt, so that a dead peer is told of within a second."""
SECONDS = 1500.0


def read(file: Path) -> tuple[int, list[str], list[str]]:
    """How many passed, which failed, and which were skipped, with the reason."""
    passed = 0
    failed: list[str] = []
    skipped: list[str] = []
    for case in ET.parse(file).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        left_out = case.find("skipped")
        if case.find("failure") is not None:
            failed.append(name)
        elif left_out is not None:
            skipped.append(f"{name} ({left_out.get('message', '').strip().splitlines()[-1]})")
        else:
            passed += 1
    return passed, failed, skipped


def main() -> int:
    RESULTS.mkdir(parents=True, exist_ok=True)
    passed = 0
    failed: list[str] = []
    skipped: list[str] = []
    for program in PROGRAMS:
        report = RESULTS / f"{program}.xml"
        report.unlink(missing_ok=True)
        print(f"==> {program}: on rxe0", flush=True)
        settings = ["LACUNA_TEST_NIC=verbs:rxe0", f"LACUNA_VERBS_TIMEOUT={TIMEOUT}"]
        test = [f"build/release/bin/lacuna_{program}_tests", "--gtest_brief=1"]
        test += [f"--gtest_filter={FILTER}", f"--gtest_output=xml:{report}"]
        try:
            status = run(["env", *settings, *test], memory=2048, timeout=SECONDS, results=RESULTS)
        except NoMachineError as error:
            print(f"lacuna: {error}", file=sys.stderr)
            return 1
        if not report.exists():
            failed.append(f"{program}: no report; the machine ended with {status}")
            continue
        its_passed, its_failed, its_skipped = read(report)
        passed += its_passed
        failed += its_failed
        skipped += its_skipped
        if status != 0 and not its_failed:
            failed.append(f"{program}: exit status {status}")
    for title, names in (("skipped", skipped), ("failed", failed)):
        if names:
            print(f"{title}:")
        for name in names:
            print(f"    {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
