#!/usr/bin/env python3
"""Builds and runs all tests: release, Python, installation, address and thread sanitizer.

    scripts/run_tests.py [--jobs N] [STAGE...]      stages: release python install asan tsan

Every stage runs, also after one that failed. The last line is `N passed, N failed, N skipped`, counted from what the
test programs reported; a build that fails counts as one failed test. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"
LONGEST_LISTED = 5  # slow tests named for each stage
SLOW_SECONDS = 10.0
FUZZ_SECONDS = "60"
"""What all fuzzers of messages have together in the release build; elsewhere some seconds."""


@dataclass
class Results:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, other: Results) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def heading(text: str) -> None:
    print(f"==> {text}", flush=True)


def run(command: list[str], env: dict[str, str] | None = None) -> bool:
    """Runs a command in the root of the repository, its output going where ours goes."""
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


def skip_reason(case: ET.Element) -> str:
    skipped = case.find("skipped")
    message = "" if skipped is None else skipped.get("message", "")
    if message.startswith("SKIP_"):  # CTest says only that it was skipped; GoogleTest's output says why
        found = re.search(r": Skipped\n(.*?)\n\[", case.findtext("system-out") or "", re.DOTALL)
        message = " ".join(found[1].split()) if found else ""
    return f" ({message.strip()})" if message.strip() else ""


def read_junit(stage: str, file: Path) -> Results:
    """The results of CTest, GoogleTest or pytest. A test that was neither run nor skipped on purpose has failed."""
    results = Results()
    try:
        cases = list(ET.parse(file).getroot().iter("testcase"))
    except (OSError, ET.ParseError) as error:
        return Results(failed=[f"{stage}: no readable test report ({error})"])
    seconds: list[tuple[float, str]] = []
    for case in cases:
        class_name = case.get("classname", "")
        test = case.get("name", "")
        name = f"{stage}: {test}" if class_name in ("", test) else f"{stage}: {class_name}.{test}"
        seconds.append((float(case.get("time") or 0), name))
        skipped = case.find("skipped")
        on_purpose = skipped is not None and (
            case.get("status") is None
            or case.get("result") == "skipped"
            or skipped.get("message", "").startswith("SKIP_")
        )
        if on_purpose or case.get("status") == "disabled" or case.get("result") == "suppressed":
            results.skipped.append(name + skip_reason(case))
        elif case.find("failure") is not None or case.find("error") is not None or case.get("status", "run") != "run":
            results.failed.append(name)
        else:
            results.passed += 1
    slow = sorted((s for s in seconds if s[0] >= SLOW_SECONDS), reverse=True)[:LONGEST_LISTED]
    for duration, name in slow:
        print(f"    slow: {name}: {duration:.0f} s")
    return results


def works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def without_leaks_if_refused(preset: str, env: dict[str, str]) -> None:
    """LeakSanitizer stops its own process with ptrace, which some containers forbid; every test would fail."""
    programs = sorted((ROOT / "build" / preset / "bin").glob("lacuna_*_tests"))
    if not programs:
        return
    probe = subprocess.run([programs[0], "--gtest_list_tests"], capture_output=True, text=True, check=False)
    if "LeakSanitizer has encountered a fatal error" in probe.stderr:
        print("    note: this machine forbids ptrace, so leaks are not looked for")
        env["ASAN_OPTIONS"] = "detect_leaks=0"


def cmake_stage(preset: str, jobs: int) -> Results:
    heading(f"{preset}: building")
    if not run(["cmake", "--preset", preset, "--log-level=WARNING"]):
        return Results(failed=[f"{preset}: configuring"])
    if not run(["cmake", "--build", "--preset", preset, "--parallel", str(jobs)]):
        return Results(failed=[f"{preset}: building"])

    heading(f"{preset}: testing")
    env = dict(os.environ)
    if preset == "release":
        env.setdefault("LACUNA_FUZZ_SECONDS", FUZZ_SECONDS)
    prefix: list[str] = []
    if preset == "asan":
        without_leaks_if_refused(preset, env)
    if preset == "tsan":
        print("    note: tests between two processes are left out: tsan does not see across processes")
        # Kernels with much address randomisation put mappings where GCC 12's tsan does not expect them.
        prefix = ["setarch", "-R"] if works(["setarch", "-R", "true"]) else []
    report = RESULTS / f"{preset}.xml"
    report.unlink(missing_ok=True)
    shares = ROOT / "build" / preset / "shares"
    shutil.rmtree(shares, ignore_errors=True)
    command = [*prefix, "ctest", "--preset", preset, "-j", str(jobs), "--output-junit", str(report)]
    ok = run(command, env)
    results = read_junit(preset, report)
    if reports := sorted(shares.glob("*.xml")):  # CTest's tests are shares of GoogleTest's; a crash leaves no report
        failed_shares = results.failed
        results = Results()
        for share in reports:
            results.add(read_junit(preset, share))
        reported = {f"{preset}: {share.stem}" for share in reports}
        results.failed += [share for share in failed_shares if share not in reported]
    if not ok and not results.failed:
        results.failed.append(f"{preset}: ctest")
    return results


def python_stage() -> Results:
    heading("python: building the package")
    if not run(["make", "package"], env={**os.environ, "LACUNA_WERROR": "ON"}):
        return Results(failed=["python: building the package"])
    heading("python: testing")
    if not any((ROOT / "tests" / "python").glob("test_*.py")):
        print("    no tests in tests/python")
        return Results()
    report = RESULTS / "python.xml"
    report.unlink(missing_ok=True)
    ok = run([sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"])
    results = read_junit("python", report)
    if not ok and not results.failed:
        results.failed.append("python: pytest")
    return results


def install_stage() -> Results:
    heading("install: using the installed library from outside")
    results = Results()
    with subprocess.Popen(
        [ROOT / "scripts" / "check_install.sh"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"    {line}", end="", flush=True)
            verdict, _, name = line.rstrip().partition(" ")
            if verdict == "PASS":
                results.passed += 1
            elif verdict == "FAIL":
                results.failed.append(f"install: {name}")
            elif verdict == "SKIP":
                results.skipped.append(f"install: {name}")
    if process.returncode != 0 and not results.failed:
        results.failed.append("install: scripts/check_install.sh")
    return results


def main() -> int:
    stages = ["release", "python", "install", "asan", "tsan"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these: " + " ".join(stages))
    options = parser.parse_args()
    unknown = set(options.stages) - set(stages)
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")

    RESULTS.mkdir(parents=True, exist_ok=True)
    total = Results()
    times: list[str] = []
    for stage in options.stages or stages:
        start = time.monotonic()
        if stage == "python":
            results = python_stage()
        elif stage == "install":
            results = install_stage()
        else:
            results = cmake_stage(stage, options.jobs)
        total.add(results)
        times.append(f"{stage} {time.monotonic() - start:.0f} s")

    heading(f"results ({', '.join(times)})")
    for title, names in (("skipped", total.skipped), ("failed", total.failed)):
        if names:
            print(f"{title}:")
        for name in names:
            print(f"    {name}")
    print(f"{total.passed} passed, {len(total.failed)} failed, {len(total.skipped)} skipped", flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
