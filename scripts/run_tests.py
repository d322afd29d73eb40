#!/usr/bin/env python3
"""Builds and runs the tests of a tier.

    scripts/run_tests.py [--tier check|test|gate|all] [--jobs N] [STAGE...]      stages: those of the tier by default

A tier has the tests of those before it, and more; CONTRIBUTING.md has the tiers. SHARD=K/N in the environment runs the
K-th of N parts. Every stage runs, also after one that failed. What took how long is printed at the end, and kept in
build/results/times.json. The last line is `N passed, N failed, N skipped`, counted from what the test programs
reported; a build or a check that fails counts as one failed test. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from test_times import Times

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"
GATE = ("lint", "build", "wheels", "release", "python", "install", "asan", "tsan", "rdma")
TIERS = {
    "check": ("build", "release", "python", "ruff"),
    "test": ("build", "release", "python", "install"),
    "gate": GATE,
    "all": (*GATE, "static", "benchmarks", "coverage"),
}
WHOLE = ("lint", "install", "static", "benchmarks", "coverage")
"""Stages that have no parts: the first shard runs them."""
SANITIZED_TIER = {"check": "check", "test": "check", "gate": "test", "all": "all"}
"""Of the tests that a sanitizer runs: it takes ten times as long, and sees most in the first tiers."""
FUZZ_SECONDS = "120"
"""What all fuzzers of messages have together in tier all; before it each has a number of rounds."""
FUZZ_TIMES = "20"
"""Of a smoke run of lacuna_fuzz, in tier all."""
SAID_LINES = 20
"""Of what a failed test printed, shown again at the end."""
REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")
"""The first line of what a sanitizer says."""
RDMA_STEPS = {"gate": ("nic",), "all": ()}
"""Of scripts/rdma_vm/test.py; none are all."""


@dataclass
class Results:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    seconds: list[tuple[float, str]] = field(default_factory=list)
    """Of each test, its name."""
    said: dict[str, str] = field(default_factory=dict)
    """The end of what failed tests printed."""

    def add(self, other: Results) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.seconds += other.seconds
        self.said |= other.said


@dataclass(frozen=True)
class Run:
    """What all stages know."""

    tier: str
    jobs: int
    times: Times


def heading(text: str) -> None:
    print(f"==> {text}", flush=True)


def run(command: list[str], env: dict[str, str] | None = None) -> bool:
    """Runs a command in the root of the repository, its output going where ours goes."""
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


def one(name: str, passed: bool) -> Results:
    """A check that is one test."""
    return Results(passed=1) if passed else Results(failed=[name])


def skip_reason(case: ET.Element) -> str:
    skipped = case.find("skipped")
    message = "" if skipped is None else skipped.get("message", "")
    return f" ({' '.join(message.split())})" if message.strip() else ""


def telling(lines: list[str]) -> list[str]:
    """The lines that say why: of a sanitizer's report its beginning, below the test that ran; else the last ones."""
    start = next((i for i, line in enumerate(lines) if REPORT.search(line)), None)
    if start is None:
        return lines[-SAID_LINES:]
    test = [line for line in lines[:start] if line.startswith("[ RUN ")][-1:]
    return test + lines[start : start + 2 * SAID_LINES]


def last_words(case: ET.Element) -> str:
    """Why a test failed, by what its report has."""
    parts = [case.find(tag) for tag in ("failure", "error", "system-out")]
    texts = [part.text or part.get("message") or "" for part in parts if part is not None]
    return "\n".join("\n".join(telling(text.splitlines())) for text in texts if text.strip())


def read_junit(stage: str, file: Path) -> Results:
    """The results of CTest, GoogleTest or pytest. A test that was neither run nor skipped on purpose has failed."""
    results = Results()
    try:
        cases = list(ET.parse(file).getroot().iter("testcase"))
    except (OSError, ET.ParseError) as error:
        return Results(failed=[f"{stage}: no readable test report ({error})"])
    for case in cases:
        class_name = case.get("classname", "")
        test = case.get("name", "")
        name = f"{stage}: {test}" if class_name in ("", test) else f"{stage}: {class_name}.{test}"
        results.seconds.append((float(case.get("time") or 0), name))
        skipped = case.find("skipped")
        on_purpose = skipped is not None and (case.get("status") is None or case.get("result") == "skipped")
        if on_purpose or case.get("status") == "disabled" or case.get("result") == "suppressed":
            results.skipped.append(name + skip_reason(case))
        elif case.find("failure") is not None or case.find("error") is not None or case.get("status", "run") != "run":
            results.failed.append(name)
            results.said[name] = last_words(case)
        else:
            results.passed += 1
    return results


def left_out(stage: str, file: Path) -> list[str]:
    """What programs that are no GoogleTests left out: lines of theirs that begin with SKIP."""
    try:
        outputs = [case.findtext("system-out") or "" for case in ET.parse(file).getroot().iter("testcase")]
    except (OSError, ET.ParseError):
        return []  # read_junit() says so
    lines = [line for output in outputs for line in output.splitlines()]
    return [f"{stage}: {line.removeprefix('SKIP: ')}" for line in lines if line.startswith("SKIP: ")]


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


def environment(tier: str) -> dict[str, str]:
    env = {**os.environ, "LACUNA_TIER": tier, "LACUNA_SHARD": os.environ.get("SHARD", "")}
    if tier == "all":
        env.setdefault("LACUNA_FUZZ_SECONDS", FUZZ_SECONDS)
        env.setdefault("LACUNA_FUZZ_TIMES", FUZZ_TIMES)
    return env


def ctest(preset: str, tier: str, jobs: int) -> Results:
    """The test programs of a build, in CTest's shares of them."""
    env = environment(tier)
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
    command += ["--test-output-size-passed", "65536"]  # what they leave out is in it
    if tier == "check":
        command += ["-LE", "programs"]
    ok = run(command, env)
    results = Results()
    reports = {file.stem: file for file in sorted(shares.glob("*.xml"))}
    for file in reports.values():
        results.add(read_junit(preset, file))
    programs = read_junit(preset, report)  # the shares themselves, and programs that are no GoogleTests
    told = {f"{preset}: {share}" for share in reports}
    results.failed += [name for name in programs.failed if name not in told]  # a share that crashed leaves no report
    results.said |= programs.said
    results.skipped += left_out(preset, report)
    others = [name for _, name in programs.seconds if name not in told]
    results.passed += len(others) - sum(name in programs.failed for name in others)
    if not ok and not results.failed:
        results.failed.append(f"{preset}: ctest")
    return results


# --- stages -----------------------------------------------------------------------------------------------------------


def lint(_: Run) -> Results:
    return one("lint", run(["make", "lint"]))


def build(state: Run) -> Results:
    if not run(["make", "build"]):
        return Results(failed=["build: make build"])
    state.times.add_targets("release", ROOT / "build" / "release")
    return one("build: the Python package", run(["make", "package"]))


def release(state: Run) -> Results:
    return ctest("release", state.tier, state.jobs)


def sanitizer(preset: str, state: Run) -> Results:
    undefined = "all" if state.tier == "all" else "some"
    if not run(["cmake", "--preset", preset, "--log-level=WARNING", f"-DLACUNA_UNDEFINED={undefined}"]):
        return Results(failed=[f"{preset}: configuring"])
    if not run(["cmake", "--build", "--preset", preset, "--parallel", str(state.jobs)]):
        return Results(failed=[f"{preset}: building"])
    state.times.add_targets(preset, ROOT / "build" / preset)
    return ctest(preset, SANITIZED_TIER[state.tier], state.jobs)


def python(state: Run) -> Results:
    report = RESULTS / "python.xml"
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(state.jobs),
        "--dist",
        "loadgroup",
        f"--junitxml={report}",
    ]
    ok = run(command, environment(state.tier))
    results = read_junit("python", report)
    if not ok and not results.failed:
        results.failed.append("python: pytest")
    return results


def ruff(_: Run) -> Results:
    tool = str(ROOT / ".venv" / "bin" / "ruff")
    return one("ruff", run([tool, "check", "."]) and run([tool, "format", "--check", "."]))


def wheels(_: Run) -> Results:
    """What tests/python/install installs."""
    return one("wheels: building and checking", run(["make", "wheel"]))


def install(build_folder: str, _: Run) -> Results:
    results = Results()
    command = [str(ROOT / "scripts" / "check_install.sh"), build_folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"    {line}", end="", flush=True)
            verdict, _space, name = line.rstrip().partition(" ")
            if verdict == "PASS":
                results.passed += 1
            elif verdict == "FAIL":
                results.failed.append(f"install: {name}")
            elif verdict == "SKIP":
                results.skipped.append(f"install: {name}")
    if process.returncode != 0 and not results.failed:
        results.failed.append("install: scripts/check_install.sh")
    return results


def static(state: Run) -> Results:
    folder = "build/static"
    options = ["-DBUILD_SHARED_LIBS=OFF", "-DLACUNA_TESTS=OFF", "-DLACUNA_EXAMPLES=OFF"]
    if not run(["cmake", "--preset", "release", "-B", folder, "--log-level=WARNING", *options]):
        return Results(failed=["static: configuring"])
    if not run(["cmake", "--build", folder, "--parallel", str(state.jobs)]):
        return Results(failed=["static: building"])
    return install(folder, state)


def benchmarks(state: Run) -> Results:
    folder = "build/benchmarks"
    if not run(["cmake", "--preset", "release", "-B", folder, "--log-level=WARNING", "-DLACUNA_BENCH=ON"]):
        return Results(failed=["benchmarks: configuring"])
    command = ["cmake", "--build", folder, "--parallel", str(state.jobs), "--target", "lacuna_benchmarks"]
    return one("benchmarks: building", run(command))


def coverage(_: Run) -> Results:
    return one("coverage of the interposer", run(["make", "coverage"]))


def rdma(state: Run) -> Results:
    if not run(["scripts/setup.sh", "rdma"]):
        return Results(failed=["rdma: packages"])
    report = RESULTS / "rdma.xml"
    report.unlink(missing_ok=True)
    ok = run(["python3", "scripts/rdma_vm/test.py", "--junitxml", str(report), *RDMA_STEPS[state.tier]])
    results = read_junit("rdma", report)
    if not ok and not results.failed:
        results.failed.append("rdma: scripts/rdma_vm/test.py")
    return results


STAGES: dict[str, Callable[[Run], Results]] = {
    "lint": lint,
    "build": build,
    "wheels": wheels,
    "release": release,
    "python": python,
    "ruff": ruff,
    "install": partial(install, "build/release"),
    "static": static,
    "benchmarks": benchmarks,
    "coverage": coverage,
    "asan": partial(sanitizer, "asan"),
    "tsan": partial(sanitizer, "tsan"),
    "rdma": rdma,
}


def shard() -> tuple[int, int]:
    """Of SHARD=K/N: K and N; 1 and 1 without it."""
    text = os.environ.get("SHARD") or "1/1"
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        sys.exit(f"SHARD is '{text}'; it may be K/N, K from 1 to N")
    return int(found[1]), int(found[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=TIERS, default="test")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these: " + " ".join(STAGES))
    options = parser.parse_args()
    if unknown := set(options.stages) - set(STAGES):
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    first = shard()[0] == 1

    RESULTS.mkdir(parents=True, exist_ok=True)
    total = Results()
    times = Times(options.tier)
    for stage in options.stages or TIERS[options.tier]:
        if stage in WHOLE and not first:
            continue
        heading(stage)
        start = time.monotonic()
        results = STAGES[stage](Run(options.tier, options.jobs, times))
        times.add_stage(stage, time.monotonic() - start, results.passed, len(results.failed), len(results.skipped))
        times.add_tests(results.seconds)
        total.add(results)

    times.write(RESULTS / "times.json")
    heading("where the time went (build/results/times.json)")
    times.show()
    for title, names in (("skipped", total.skipped), ("failed", total.failed)):
        if names:
            heading(title)
        for name in names:
            print(f"    {name}")
            if title == "failed":
                print(textwrap.indent(total.said.get(name, ""), " " * 8))
    print(f"{total.passed} passed, {len(total.failed)} failed, {len(total.skipped)} skipped", flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
