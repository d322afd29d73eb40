#!/usr/bin/env python3
"""Runs the tests of the NIC seam and of the methods on NIC verbs: in virtual machines, on Debian's Soft-RoCE.

    scripts/rdma_vm/test.py [--junitxml FILE] [STEP...]

Steps: nic methods layouts messages mpi link inter_node wire loss guide.

One machine has both ends of each connection, two processes; in `inter_node`, `wire`, `loss` and `guide` two machines
have one each, with a cable between them, which in `loss` loses 1 % of the packets. In `mpi` that machine is two hosts,
whose MPI talks by TCP and leaves data with gaps to the device. Needs build/release, and for `mpi` and `guide` the
package in .venv.

The last line is `N passed, M failed, K skipped`; exits with 1 if any failed. What Soft-RoCE takes for a transfer says
nothing about hardware.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vm import ADDRESSES, ROOT, Cable, Machine, NoMachineError, plugged_in

RESULTS = ROOT / "build" / "results" / "rdma"
TIMEOUT = "14"
"""LACUNA_VERBS_TIMEOUT: 67 ms to an attempt, so that a dead peer is told of within a second."""
SECONDS = 900.0
"""That a step may take; the longest takes two minutes here."""
PORT = 7471
GUIDE_BUDGET = "30"
"""Seconds that the guide may measure: some cells are enough."""
GUIDE_SILENCE = "60"
"""Seconds after which the guide gives its worker up: two emulated machines may be all that this one can do."""
NOT_HARDWARE = "What Soft-RoCE takes says nothing about hardware."


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    program: str
    filter: str
    machines: int = 1
    netem: str = ""
    settings: tuple[str, ...] = ()


MPI = "openmpi4-debian"
MPI_PROGRAMS = ("types", "patterns-halo", "persistent", "collect", "errors", "f08")
"""Of tests/mpi: whatever has gaps and is longer than a descriptor goes by the device."""
READ = "read by a device"
"""What the report of READERS says then; of the others some go in collectives, and persistent sends in chunks."""
READERS = ("types", "patterns-halo", "f08")
ON_WIRE = "*wire*TwoProcesses*:*TwoProcesses*wire*"
LAYOUTS = "*DdtBenchMoves*wire*"
PINNING = "Every/Messages.*/Pinning_*:Pinned.*:Registering.*:RegistrationAttack.*"
FROM_AFAR = "*EveryMethod*TwoProcesses*wire_Default:*DdtBenchMoves*Irregular*wire:*SgrsWithDifferentLists*wire"
PATIENT = ("LACUNA_VERBS_RETRIES=7",)
"""For Soft-RoCE without end: a machine that shares two CPUs with another one may stop for longer than half a second."""
MAY_TAKE_DOWN = ("LACUNA_TEST_LINK=wire0",)
STEPS = (
    Step("nic", "the NIC seam", "nic", f"{ON_WIRE}:RegistrationCost.*"),
    Step("methods", "all methods, their counts, peers that die", "method", f"{ON_WIRE}:-{LAYOUTS}"),
    Step("layouts", "DDTBench's and irregular layouts by all methods", "method", LAYOUTS),
    Step("messages", "messages and registrations, also under attack", "protocol", PINNING),
    Step("link", "link down, device removed", "nic", "LinkDown.*:DeviceRemoved.*", settings=MAY_TAKE_DOWN),
    Step("inter_node", "the NIC seam between two machines", "nic", f"{ON_WIRE}:LinkDown.*", 2, settings=MAY_TAKE_DOWN),
    Step("wire", "all methods between two machines", "method", FROM_AFAR, 2, settings=PATIENT),
    Step("loss", "the same, with 1 % of the packets lost", "method", FROM_AFAR, 2, "loss,1%", PATIENT),
)


@dataclass
class Outcome:
    """What became of one test; on two machines, of both its ends."""

    result: str
    """passed, failed or skipped"""
    reason: str = ""
    notes: dict[str, str] = field(default_factory=dict)


def read(report: Path) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        left_out = case.find("skipped")
        outcome = Outcome("passed")
        if case.find("failure") is not None:
            outcome = Outcome("failed")
        elif left_out is not None:
            outcome = Outcome("skipped", left_out.get("message", "").strip().splitlines()[-1])
        for note in case.iter("property"):
            outcome.notes[note.get("name", "")] = note.get("value", "")
        outcomes[name] = outcome
    return outcomes


def both(reports: list[dict[str, Outcome]]) -> dict[str, Outcome]:
    """A test that one end has not seen has failed."""
    merged: dict[str, Outcome] = {}
    for name in {name: None for report in reports for name in report}:
        ends = [report.get(name, Outcome("failed")) for report in reports]
        if {end.result for end in ends} == {"passed"} or {end.result for end in ends} == {"skipped"}:
            merged[name] = ends[0]
        else:
            merged[name] = Outcome("failed")
        merged[name].notes = {key: value for end in reversed(ends) for key, value in end.notes.items()}
    return merged


class Listener(threading.Thread):
    """Reads a machine's serial line, keeps it in a file, and shows what happens, if asked for."""

    def __init__(self, machine: Machine, log: Path, shown: bool) -> None:
        super().__init__(daemon=True)
        self._machine, self._log, self._shown = machine, log, shown
        self.start()

    def run(self) -> None:
        skipping = False
        with self._log.open("w") as log:
            for raw in self._machine.output:
                line = raw.decode(errors="replace").rstrip()
                print(line, file=log, flush=True)
                skipping = line.endswith(": Skipped") or (skipping and not line.startswith("["))
                bookkeeping = line.startswith(
                    ("[---", "[===", "[ RUN", "[  SKIPPED", "[  PASSED", "Note:", "Running", "GUEST")
                )
                if self._shown and line and not (skipping or bookkeeping):
                    print(f"    {line}", flush=True)


def start(step: Step, end: int, socket: Path, report: Path) -> Machine:
    report.unlink(missing_ok=True)
    environment = ["LACUNA_TEST_NIC=verbs:rxe0", f"LACUNA_VERBS_TIMEOUT={TIMEOUT}", f"LACUNA_TEST_RESULTS={RESULTS}"]
    environment += step.settings
    alone = step.machines == 1
    if not alone:
        environment += [f"LACUNA_TEST_RANK={end}", f"LACUNA_TEST_MEET={ADDRESSES[0]}:{PORT}"]
    test = [f"build/release/bin/lacuna_{step.program}_tests", "--gtest_color=no"]
    test += [f"--gtest_filter={step.filter}", f"--gtest_output=xml:{report}"]
    return Machine(
        ["env", *environment, *test],
        memory=2048 if alone else 1024,
        cpus=2 if alone else 1,  # the host may have no more than two
        results=RESULTS,
        cable=None if alone else Cable(socket, end, step.netem),
        output=subprocess.PIPE,
    )


def lost_packets(logs: list[Path]) -> Outcome:
    """Whether the emulator at each end of the cable dropped any, as it says."""
    counts = [re.search(r"(\d+) pkt \(dropped (\d+)", log.read_text()) for log in logs]
    seen = "; ".join(f"{count[2]} of {int(count[1]) + int(count[2])} packets" for count in counts if count)
    dropped = all(count is not None and int(count[2]) > 0 for count in counts)
    return Outcome("passed" if dropped else "failed", notes={"seen": seen})


def run_step(step: Step) -> dict[str, Outcome]:
    """What became of each test; a machine that gives no report counts as one."""
    reports = [RESULTS / f"{step.name}-{end}.xml" for end in range(step.machines)]
    logs = [report.with_suffix(".log") for report in reports]
    machines: list[Machine] = []
    listeners: list[Listener] = []
    deadline = time.monotonic() + SECONDS
    with ExitStack() as stack:
        socket = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "cable"
        for end, (report, log) in enumerate(zip(reports, logs, strict=True)):
            machines.append(stack.enter_context(start(step, end, socket, report)))
            listeners.append(Listener(machines[-1], log, shown=end == 0))
            if end + 1 < step.machines:
                plugged_in(socket)
        statuses = [machine.wait(max(1.0, deadline - time.monotonic())) for machine in machines]
    for listener in listeners:
        listener.join(10)
    outcomes = both([read(report) if report.exists() else {} for report in reports])
    for end, (log, status) in enumerate(zip(logs, statuses, strict=True)):
        if reports[end].exists() and (status == 0 or any(o.result == "failed" for o in outcomes.values())):
            continue
        print(f"    the end of {log}:")
        print("\n".join(f"        {line}" for line in log.read_text().splitlines()[-20:]))
        outcomes[f"machine {end} ended with {status}"] = Outcome("failed")
    if step.netem:
        outcomes["packets are lost"] = lost_packets(logs)
    if not outcomes:
        outcomes["no test matches"] = Outcome("failed")
    return {f"{step.name}: {name}": outcome for name, outcome in outcomes.items()}


def guide_command(end: int, folder: Path) -> list[str]:
    command = [
        "env",
        "LACUNA_SECRET=a cable between two machines",
        "PYTHONDONTWRITEBYTECODE=1",
        "XDG_DATA_HOME=/tmp",
        "TERM=dumb",
        "LACUNA_VERBS_RETRIES=7",
    ]
    command += [".venv/bin/lacuna", "guide", "--nic", "verbs:rxe0"]
    if end == 0:
        return [*command, "--listen", f"{ADDRESSES[0]}:{PORT}"]
    return [
        *command,
        "--quick",
        "--timeout",
        GUIDE_SILENCE,
        "--budget",
        GUIDE_BUDGET,
        "--output",
        str(folder),
        f"{ADDRESSES[0]}:{PORT}",
    ]


def run_guide() -> dict[str, Outcome]:
    """`lacuna guide` between two machines: both end well, and what was measured is there and says on what."""
    folder = RESULTS / "guide"
    shutil.rmtree(folder, ignore_errors=True)
    logs = [RESULTS / f"guide-{end}.log" for end in range(2)]
    deadline = time.monotonic() + SECONDS
    with ExitStack() as stack:
        socket = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "cable"
        machines: list[Machine] = []
        for end, log in enumerate(logs):
            machine = Machine(
                guide_command(end, folder),
                cpus=1,
                results=RESULTS,
                cable=Cable(socket, end),
                output=subprocess.PIPE,
            )
            machines.append(stack.enter_context(machine))
            Listener(machines[-1], log, shown=end == 1)
            if end == 0:
                plugged_in(socket)
        statuses = [machine.wait(max(1.0, deadline - time.monotonic())) for machine in machines]
    outcomes = {
        f"guide: {who} ends well": Outcome("passed" if status == 0 else "failed", notes={"seen": f"status {status}"})
        for who, status in zip(("who listens", "who measures"), statuses, strict=True)
    }
    report = folder / "guide.json"
    measured = json.loads(report.read_text()) if report.exists() else {}
    rows = len(measured.get("rows", []))
    outcomes["guide: rows were measured"] = Outcome("passed" if rows else "failed", notes={"seen": f"{rows} rows"})
    page = folder / "report.html"
    said = page.exists() and "its timings say nothing about hardware" in page.read_text()
    outcomes["guide: its report says that this is no hardware"] = Outcome("passed" if said else "failed")
    return outcomes


def run_mpi() -> dict[str, Outcome]:
    """MPI programs on two hosts, plain against preloaded. They are compiled here, where that takes seconds."""
    only = [word for program in MPI_PROGRAMS for word in ("--only", program)]
    line = [".venv/bin/python", "tests/mpi/run.py", "--inter-node", "--mpi", MPI, *only]
    built = subprocess.run([*line, "--build-only"], cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return {"mpi: programs are built": Outcome("failed", notes={"seen": built.stdout + built.stderr})}
    variables = [
        "LACUNA_MPI_NIC=verbs:rxe0",
        "LACUNA_MPI_REPORT=1",
        "PYTHONDONTWRITEBYTECODE=1",
        "LACUNA_CHECK_SECONDS=240",
    ]
    log = RESULTS / "mpi.log"
    with Machine(["env", *variables, *line, "--says", READ], memory=3072, output=subprocess.PIPE) as machine:
        listener = Listener(machine, log, shown=True)
        status = machine.wait(SECONDS)
        listener.join(10)
    outcomes: dict[str, Outcome] = {}
    for program, result, reason in re.findall(
        rf"^{MPI} (\S+): (ok|FAILED|skipped)(.*)$", log.read_text(), re.MULTILINE
    ):
        how = {"ok": "passed", "FAILED": "failed", "skipped": "skipped"}[result]
        if how == "passed" and program in READERS and READ not in reason:
            how = "failed"
        outcomes[f"mpi: {program}"] = Outcome(how, reason.strip(": "))
    if status != 0 or set(outcomes) != {f"mpi: {program}" for program in MPI_PROGRAMS}:
        outcomes[f"mpi: the machine ended with {status}"] = Outcome("failed")
    return outcomes


def print_registration(file: Path) -> None:
    if not file.exists():
        return
    report = json.loads(file.read_text())
    print(f"registering memory on {report['nic']}, medians, µs. {NOT_HARDWARE}")
    print("         bytes    register  deregister")
    for row in report["rows"]:
        print(f"    {row['bytes']:>10}  {row['register_us']:>10.1f}  {row['deregister_us']:>10.1f}")


def print_notes(outcomes: dict[str, Outcome]) -> None:
    for key, title in (("seen", "seen"), ("left_out", "layouts that were left out")):
        lines: dict[str, None] = {}
        for name, outcome in outcomes.items():
            for line in outcome.notes.get(key, "").splitlines():
                lines[line if key == "left_out" else f"{name}: {line}"] = None
        if lines:
            print(f"{title}:")
            print("\n".join(f"    {line}" for line in lines))


def print_listed(outcomes: dict[str, Outcome], result: str) -> None:
    listed = {name: outcome for name, outcome in outcomes.items() if outcome.result == result}
    if listed:
        print(f"{result}:")
    for name, outcome in listed.items():
        print(f"    {name}{f' ({outcome.reason})' if outcome.reason else ''}")


def write_junit(file: Path, outcomes: dict[str, Outcome]) -> None:
    suite = ET.Element("testsuite", name="rdma")
    for name, outcome in outcomes.items():
        case = ET.SubElement(suite, "testcase", name=name)
        if outcome.result == "skipped":
            ET.SubElement(case, "skipped", message=outcome.reason)
        elif outcome.result == "failed":
            ET.SubElement(case, "failure", message=outcome.reason)
    ET.ElementTree(suite).write(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="*", help="default: all")
    parser.add_argument("--junitxml", type=Path, metavar="FILE", help="write what became of each test")
    options = parser.parse_args()
    wanted = options.step
    names = [*(step.name for step in STEPS), "mpi", "guide"]
    if unknown := set(wanted) - set(names):
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "registration.json").unlink(missing_ok=True)
    outcomes: dict[str, Outcome] = {}
    steps: list[tuple[str, str, Callable[[], dict[str, Outcome]]]] = [
        (step.name, step.title, partial(run_step, step)) for step in STEPS
    ]
    steps.append(("mpi", "MPI programs between two hosts, by RDMA", run_mpi))
    steps.append(("guide", "lacuna guide between two machines", run_guide))
    for name, title, take in steps:
        if wanted and name not in wanted:
            continue
        print(f"==> {name}: {title}", flush=True)
        began = time.monotonic()
        try:
            outcomes |= take()
        except NoMachineError as error:
            print(f"lacuna: {error}", file=sys.stderr)
            outcomes[f"{name}: no machine"] = Outcome("failed")
            break
        print(f"    {time.monotonic() - began:.0f} s", flush=True)
    print_registration(RESULTS / "registration.json")
    print_notes(outcomes)
    print_listed(outcomes, "skipped")
    print_listed(outcomes, "failed")
    if options.junitxml:
        write_junit(options.junitxml, outcomes)
    counts = {result: sum(o.result == result for o in outcomes.values()) for result in ("passed", "failed", "skipped")}
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or counts["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
