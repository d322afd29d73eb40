"""Runs `lacuna bench interactions`: finds out what can be had here, races case by case, writes and shows."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.console import Console

from lacuna import __version__, clock, command
from lacuna._core import machine_name, nic_label
from lacuna.interactions import simulated, view
from lacuna.interactions.conditions import CONDITIONS, QUICK_SUBJECTS, SUBJECTS, Condition, Subject
from lacuna.interactions.race import Effort, Race
from lacuna.interactions.ranks import Busy, Ranks
from lacuna.interactions.rows import Interactions, Samples, effects_of, rows_from
from lacuna.lines import RowError
from lacuna.progress import Meter
from lacuna.worker import WorkerError

QUICK_SECONDS = 60.0
SECONDS = 300.0
_SIMULATED_SECONDS = 1.0
"""Of a case, about."""
_SILENCE = 60.0
_NODES = Path("/sys/devices/system/node")
_FEWEST = 6
"""Rounds: three to choose by, three to judge by."""
_SHARE = 0.7
"""Of a case's time, for its rounds: the last of them ends later, and everything is verified before and after."""


def run(*, quick: bool, nics: Sequence[str], data: Path | None, output: Path | None, budget: float | None) -> None:
    """The whole command; ends with the status that its help documents."""
    seconds = budget or (QUICK_SECONDS if quick else SECONDS)
    simulated_nics = {nic_label(nic): _platform(nic) for nic in nics if command.is_simulated(nic)}
    if others := [nic for nic in nics if nic != "local" and not command.is_simulated(nic)]:
        raise typer.BadParameter(f"{others[0]}: this measures local, model and model:PLATFORM", param_hint="--nic")
    if "local" in nics and len(os.sched_getaffinity(0)) < 2:
        command.fail("two CPUs are needed, and this process may use one; --nic model needs none")
    command.prepare_json(data)
    if output:
        command.prepare(output)
    console = command.console(to_stderr=command.is_stdout(data))
    subjects = QUICK_SUBJECTS if quick else SUBJECTS
    line = "lacuna bench interactions" + " --quick" * quick + "".join(f" --nic {nic}" for nic in nics)
    result = Interactions(
        __version__, command.created(), line + (f" --budget {budget:g}" if budget else ""), machine_name()
    )
    try:
        with command.terminable():
            for label, platform in simulated_nics.items():
                _simulate(console, label, platform, subjects, result)
            if "local" in nics:
                _measure(console, subjects, result, seconds)
    except KeyboardInterrupt:
        result.interrupted = True
    except (WorkerError, RowError) as e:
        result.errors.append(str(e))
    files = command.deliver(
        console, result.to_json(), data, output, "interactions.json", functools.partial(view.write, result)
    )
    view.show(console, result)
    command.show_written(console, files)
    command.end(result.errors, interrupted=result.interrupted)


def _platform(nic: str) -> Path:
    return Path(command.worker_nic(nic).removeprefix("model:"))


def _simulate(console: Console, nic: str, platform: Path, subjects: Sequence[Subject], result: Interactions) -> None:
    label = nic_label(nic)
    with Meter(console, len(subjects), _SIMULATED_SECONDS * len(subjects), "simulated cases") as meter:
        for done, subject in enumerate(subjects):
            meter.advance(done, len(subjects), _SIMULATED_SECONDS * (len(subjects) - done))
            times, refused = simulated.times(platform, subject, simulated.conditions())
            result.refused += [f"{label}: {why}" for why in refused]
            _add(result, label, subject, times)
        meter.advance(len(subjects), len(subjects), 0.0)


def _measure(console: Console, subjects: Sequence[Subject], result: Interactions, seconds: float) -> None:
    deadline = clock.now() + seconds
    cpus = sorted(os.sched_getaffinity(0))
    possible, result.skipped = conditions_here(cpus)
    with ExitStack() as stack:
        jobs = {
            place: stack.enter_context(Ranks(_cpus(cpus, *place), _SILENCE))
            for place in dict.fromkeys((c.ranks, c.apart) for c in possible)
        }
        busy = {
            what: stack.enter_context(Busy(what, _busy_cpu(cpus, what)))
            for what in dict.fromkeys(c.busy for c in possible if c.busy)
        }
        race = Race(jobs, busy, possible)
        meter = stack.enter_context(Meter(console, len(subjects), seconds, "cases"))
        try:
            for done, subject in enumerate(subjects):
                left = deadline - clock.now()
                meter.advance(done, len(subjects), left)
                if left <= 0:
                    result.left_out.append(subject.name)
                    continue
                try:
                    effort = Effort(_FEWEST, _SHARE * left / (len(subjects) - done))
                    _add(result, "local", subject, race.run(subject, effort))
                except RowError as e:
                    result.errors.append(f"{subject.name}: {e}")
            meter.advance(len(subjects), len(subjects), deadline - clock.now())
        finally:
            result.refused += race.refused
            if not race.huge:
                result.without("the kernel gave no pages of 2 MiB, or too few", [c.name for c in possible if c.huge])


def _busy_cpu(cpus: Sequence[int], what: str) -> int:
    """Whoever copies disturbs by the caches and by the memory, also from a CPU of its own."""
    return cpus[2] if what == "copies" and len(cpus) > 2 else cpus[1]


def _add(result: Interactions, nic: str, subject: Subject, times: Samples) -> None:
    rows = rows_from(nic, subject.name, subject.payload, times)
    result.rows += rows
    result.effects += effects_of(rows)


def conditions_here(cpus: Sequence[int]) -> tuple[list[Condition], dict[str, str]]:
    """Those that these CPUs allow; of the others why not."""
    skipped = {}
    for c in CONDITIONS:
        if c.ranks > len(cpus):
            skipped[c.name] = f"needs {c.ranks} CPUs, and this process may use {len(cpus)}"
        if c.apart and len(set(map(_node, cpus))) < 2:
            skipped[c.name] = "all CPUs that this process may use are of one NUMA node"
    return [c for c in CONDITIONS if c.name not in skipped], skipped


def _cpus(cpus: Sequence[int], ranks: int, apart: bool) -> list[int]:
    if not apart:
        return list(cpus[:ranks])
    return [cpus[0], next(cpu for cpu in cpus if _node(cpu) != _node(cpus[0]))]


def _node(cpu: int) -> str:
    found = [node.name for node in _NODES.glob("node[0-9]*") if (node / f"cpu{cpu}").exists()]
    return found[0] if found else ""
