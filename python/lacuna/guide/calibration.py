"""From a run's rows to a profile, and the profile's file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from lacuna._core import (
    Layout,
    case_layouts,
    check_profile,
    machine_name,
    nic_label,
    pair_numbers,
    profile_file,
    same_class,
    speed_factor,
)
from lacuna.files import write_whole
from lacuna.guide.contests import is_told, told_methods
from lacuna.guide.fitting import MOST_ROWS, Fitted, Observation, fit
from lacuna.guide.noise_check import message_time, moved
from lacuna.guide.plan import Cell
from lacuna.guide.profile_merge import SeenPair, refined, seen_members
from lacuna.guide.run_record import Look, Run
from lacuna.worker.client import Worker
from lacuna.worker.grouping import grouped
from lacuna.worker.hardware import Nic
from lacuna.worker.records import BY_HAND, Row, Subject

SCHEMA = 3
_FEWEST_CELLS = 12
"""On either side of a gap between two classes."""
_PAIRS_WEIGHT, _COLD_WEIGHT = 1.5, 0.5
"""Random pairs are what most transfers are like, the grid is denser than it has to be; and few transfers are cold."""
_BOUND_ENTRIES = (16, 256, 2048)
_FEWEST_ROWS = 100
"""Of a class that is fitted beside a larger one, on average over the paths that there are. From a dozen pairs on a fit
of their own chooses better than the usual prices do."""


@dataclass(frozen=True)
class PeerClass:
    """Peers alike, as the scheduler places them."""

    message_us: float
    """What the worker's message takes between them; 0 where it is not measured."""
    paths: list[Fitted]
    seen: dict[SeenPair, dict[str, float]] = field(default_factory=dict)
    """Measured pairs, and the microseconds of each "method/path/notify". Near them the choice believes these more than
    prices."""

    def document(self) -> dict[str, Any]:
        paths = {f.path: f.to_json() for f in self.paths}
        seen = {pair: {way: _short(us) for way, us in times.items()} for pair, times in self.seen.items()}
        return {"message_us": round(self.message_us, 3), "paths": paths, **seen_members(seen)}


def _short(value: float) -> float | int:
    """Six digits of a fraction, all of a whole number."""
    return int(value) if value == int(value) else float(f"{value:.6g}")


@dataclass(frozen=True)
class Profile:
    lacuna_version: str
    created: str
    nic: Nic
    classes: list[PeerClass]
    between_machines: bool = False
    """Whether the receiver was on another machine."""
    unclassed: int = 0
    """Measured pairs of no class: the peers moved meanwhile, or they are too few."""
    messages: dict[str, Any] | None = None
    """Times of the ways of messages (`lacuna.worker.messages`); None where they were not measured."""
    exchanges: dict[str, float] | None = None
    """Prices of exchanges (`lacuna.worker.exchange_prices`), likewise."""

    @property
    def peers(self) -> str:
        simulated = self.simulated and any(p.mover == "device" for p in self.nic.paths)
        return "another machine" if self.between_machines or simulated else "same machine"

    @property
    def simulated(self) -> bool:
        return nic_label(self.nic.name).startswith("model:")

    def document(self) -> dict[str, Any]:
        between_ranks = {"messages": self.messages, "exchanges": self.exchanges}
        return {
            "schema": SCHEMA,
            "lacuna_version": self.lacuna_version,
            "created": self.created,
            "nic": nic_label(self.nic.name),
            "peers": self.peers,
            "machine": "simulated" if self.simulated else machine_name(),
            "classes": [c.document() for c in self.classes],
            **{name: measured for name, measured in between_ranks.items() if measured},
        }

    def store(self, nic: str) -> Path:
        """Writes it to where the library looks for it, and what it keeps of the profile that was there
        (profile_merge.py, and what was measured between ranks), if that was of the same machine, NIC and version.
        Returns the file."""
        file = Path(profile_file(nic))
        file.parent.mkdir(parents=True, exist_ok=True)
        document, before = self.document(), _before(file, self)
        document["classes"] = refined(document["classes"], before.get("classes", []))
        for name in ("messages", "exchanges"):
            if name in before:
                document.setdefault(name, before[name])
        write_whole(file, _compact(json.dumps(document, indent=1)) + "\n")
        return file


def _compact(text: str) -> str:
    """Lists of numbers on one line each."""
    return re.sub(r"\[[-+.\deE,\s]+\]", lambda found: " ".join(found[0].split()), text)


def _before(file: Path, new: Profile) -> dict[str, Any]:
    """The profile that is there, if it is of the same machine, NIC and version, and the library can read it."""
    try:
        check_profile(str(file))
        old = _renamed(json.loads(file.read_text(encoding="utf-8")))
        own = replace(new, classes=[]).document()
        same = all(old[key] == own[key] for key in ("schema", "nic", "machine", "lacuna_version"))
        return old if same else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # there was none, or none that can be read


def _renamed(old: dict[str, Any]) -> dict[str, Any]:
    """A profile of schema 2 as schema 3 has it: its biases had another name."""
    if old["schema"] != SCHEMA - 1:
        return old
    for one in old["classes"]:
        for path in one["paths"].values():
            path["biases"] = path.pop("leans")
    return {**old, "schema": SCHEMA}


def _known(file: Path) -> list[Any]:
    """The classes of a file, unchecked; none where it has none."""
    try:
        return list(json.loads(file.read_text(encoding="utf-8"))["classes"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def seen_before(nic: str) -> int:
    """How many measured pairs the profile has that is there."""
    try:
        return sum(len(c.get("seen", ())) for c in _known(Path(profile_file(nic))))
    except (TypeError, AttributeError):
        return 0


@dataclass(frozen=True)
class Stored:
    profile: Profile
    file: Path

    def notes(self) -> list[str]:
        """What a reader should know of its classes, where there is more than one, and of what is in none."""
        known = [float(c["message_us"]) for c in _known(self.file)]
        made = []
        if len(known) > 1:
            times = ", ".join(f"{us:.1f} µs" for us in known)
            made.append(f"It has prices for peers to which a message of 16 KiB takes {times}")
        if self.profile.unclassed:
            made.append(
                f"Of no use to it were {self.profile.unclassed} cells: the processes moved nearer to one another or "
                "apart meanwhile, or too few cells found them where they were. Another run may see more."
            )
        return made


def layouts_of(cells: Iterable[Cell]) -> dict[Subject, tuple[Layout, Layout]]:
    return {
        c.subject: case_layouts(json.dumps(c.spec), c.subject.shape, c.subject.cache == "cold")
        for c in cells
        if c.verb == "measure"
    }


def observations(
    rows: Sequence[Row], layouts: Mapping[Subject, tuple[Layout, Layout]]
) -> dict[Subject, list[Observation]]:
    """What is to be fitted: Lacuna's own methods, but not those that were given up after one transfer."""
    told = told_methods(rows)
    fitting = (r for r in rows if r.method not in BY_HAND and not r.censored and r.subject in layouts)
    made = {}
    for subject, own in grouped(fitting, lambda row: row.subject).items():
        send, receive = layouts[subject]
        weight = _PAIRS_WEIGHT if subject.experiment == "pairs" else _COLD_WEIGHT if subject.cache == "cold" else 1.0
        best = min((r.latency_us for r in own if is_told(r, told)), default=0.0)
        made[subject] = [Observation(r, send, receive, r.latency_us / best if best else 1.0, weight) for r in own]
    return made


def message_times(looks: Sequence[Look], *, still: bool = False) -> dict[Subject, float]:
    """What a message took around each cell, but not those during which the peers moved, unless all are such. `still`:
    they cannot move, and what differs is the network."""
    counted = [look for look in looks if look.counts]
    kept = [look for look in counted if still or not moved(look.conditions.probes)] or counted
    return {look.subject: message_time(look.conditions.probes) for look in kept}


def classes_of(times: Mapping[Subject, float]) -> list[set[Subject]]:
    """The cells of each class of peers, from the nearest on."""
    return [set(c) for c in _split(sorted(times, key=lambda s: times[s]), times)]


def _split(order: list[Subject], times: Mapping[Subject, float]) -> list[list[Subject]]:
    """Where the widest gap is, as long as both sides are many and far apart; then either side likewise."""
    if len(order) < 2 * _FEWEST_CELLS:
        return [order] if order else []
    gaps = [
        (log(times[b] / times[a]), i + 1)
        for i, (a, b) in enumerate(pairwise(order))
        if _FEWEST_CELLS <= i + 1 <= len(order) - _FEWEST_CELLS
    ]
    widest, at = max(gaps)
    near, far = order[:at], order[at:]
    if widest < log(1.1) or same_class(median(times[s] for s in near), median(times[s] for s in far)):
        return [order]
    return _split(near, times) + _split(far, times)


def measure_bindings(worker: Worker) -> list[tuple[int, float]]:
    """What binding an indirect key takes: entries, microseconds. Nothing on a NIC that has none. Raises WorkerError."""
    found = []
    for number, entries in enumerate(_BOUND_ENTRIES):
        payload = 64 * entries
        subject = Subject("keys", "list_64B", 64, entries, payload, "symmetric", "warm")
        request: dict[str, object] = {"id": number, "entries": entries, "max_samples": 50, "budget_ms": 50.0}
        rows = worker.measure(request, subject, verb="keys")
        found += [(entries, r.latency_us) for r in rows if isinstance(r, Row) and r.method == "bind_key"]
    return found


def _binding_prices(bindings: Sequence[tuple[int, float]]) -> dict[str, float]:
    """Of a binding, and of each entry of it, by the median of the slopes between any two."""
    if len(bindings) < 2:
        return {}
    slopes = [(t2 - t1) / (n2 - n1) for (n1, t1), (n2, t2) in combinations(bindings, 2)]
    entry = max(0.0, median(slopes))
    return {"bind": 1e3 * max(0.0, median(t - entry * n for n, t in bindings)), "bind_entry": 1e3 * entry}


def _seen(cells: Iterable[Sequence[Observation]]) -> dict[SeenPair, dict[str, float]]:
    """Of cells of the same two layouts the first."""
    found: dict[SeenPair, dict[str, float]] = {}
    for own in cells:
        first, times = own[0], {"/".join(r.row.way): r.row.latency_us for r in own}
        pair = tuple(map(_short, pair_numbers(first.send, first.receive)))
        found.setdefault((pair, first.row.subject.cache == "cold"), times)
    return found


def _at_usual_speed(rows: Sequence[Observation], factor: float) -> list[Observation]:
    """What they would have taken, had the peers been as quick as those of their class usually are."""

    def faster(row: Row) -> Row:
        times = (row.latency_us / factor, row.cpu_send_us / factor, row.cpu_recv_us / factor)
        return replace(row, latency_us=times[0], cpu_send_us=times[1], cpu_recv_us=times[2])

    return [replace(observed, row=faster(observed.row)) for observed in rows]


def calibrate(
    run: Run,
    cells: Sequence[Cell],
    bindings: Sequence[tuple[int, float]] = (),
    most_rows: int = MOST_ROWS,
) -> Profile | None:
    """The profile that a run's rows give; None where they are too few."""
    seen = observations(run.rows, layouts_of(cells))
    times = {s: t for s, t in message_times(run.looks, still=run.peer is not None).items() if s in seen}
    groups = classes_of(times) or [set(seen)]
    fewest = _FEWEST_ROWS * sum(path.available for path in run.nic.paths)
    made, unclassed = [], len(seen)
    for group in groups:
        message_us = median(times[s] for s in group if s in times) if times else 0.0
        own = {s: _at_usual_speed(seen[s], speed_factor(times.get(s, 0.0), message_us)) for s in seen if s in group}
        rows = [row for of_subject in own.values() for row in of_subject]
        if not rows or (len(groups) > 1 and len(rows) < fewest):
            continue
        fitted = fit(run.nic, rows, message_us, most_rows)
        for path in fitted:
            path.prices.update(_binding_prices(bindings))
        made.append((len(rows), PeerClass(message_us, fitted, _seen(own.values()))))
        unclassed -= len(own)
    if not made:
        return None
    made.sort(key=lambda c: -c[0])  # the first is taken where the class is not known
    return Profile(run.lacuna_version, run.created, run.nic, [c for _, c in made], run.peer is not None, unclassed)
