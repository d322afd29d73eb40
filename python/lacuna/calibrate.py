"""From a run's rows to a profile, and the profile's file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from lacuna._core import Layout, case_layouts, machine_name, nic_label, pair_numbers, profile_file
from lacuna.analysis import is_told, told_methods
from lacuna.fitting import MOST_ROWS, Fitted, Observation, fit
from lacuna.plan import Cell
from lacuna.quiet import SAME_CLASS, moved
from lacuna.record import Look, Run
from lacuna.schema import BY_HAND, Nic, Row, Subject
from lacuna.store import write_whole
from lacuna.worker import Worker

SCHEMA = 1
_FEWEST_CELLS = 12
"""On either side of a gap between two classes."""
_PAIRS_WEIGHT, _COLD_WEIGHT = 1.5, 0.5
"""Random pairs are what most transfers are like, the grid is denser than it has to be; and few transfers are cold."""
_BOUND_ENTRIES = (16, 256, 2048)
_FEWEST_ROWS = 100
"""Of each path of a class that is fitted beside a larger one. From a dozen pairs on a fit of their own chooses better
than the usual prices do."""


_FAR_MORE = 2
"""A fit of the same peers to so many times as many rows knows them better than a newer one."""
MOST_SEEN = 1000
"""Pairs of a class that a profile keeps, the newest: more make a choice slower and say little more."""


@dataclass(frozen=True)
class Seen:
    """A pair that was measured. Near it the choice believes this more than prices."""

    pair: list[float]
    """As pair_numbers() has it."""
    cold: bool
    us: dict[str, float]
    """By "method/path/notify"."""


@dataclass(frozen=True)
class PeerClass:
    """Peers alike, as the scheduler places them."""

    message_us: float
    """What the worker's message takes between them; 0 where it is not measured."""
    paths: list[Fitted]
    seen: tuple[Seen, ...] = ()

    def document(self) -> dict[str, Any]:
        ways = sorted({way for seen in self.seen for way in seen.us})
        return {
            "message_us": round(self.message_us, 3),
            "paths": {f.path: f.to_json() for f in self.paths},
            "ways": ways,
            "seen": [
                {
                    "pair": [_short(n) for n in s.pair],
                    "cold": s.cold,
                    "us": [_short(s.us.get(way, 0.0)) for way in ways],
                }
                for s in self.seen
            ],
        }


def _short(value: float) -> float | int:
    """Six digits of a fraction, all of a whole number."""
    return int(value) if value == int(value) else float(f"{value:.6g}")


@dataclass(frozen=True)
class Profile:
    lacuna_version: str
    created: str
    nic: Nic
    classes: list[PeerClass]
    far: bool = False
    """Whether the receiver was on another machine."""

    @property
    def peers(self) -> str:
        simulated = self.simulated and any(p.mover == "device" for p in self.nic.paths)
        return "another machine" if self.far or simulated else "same machine"

    @property
    def simulated(self) -> bool:
        return nic_label(self.nic.name).startswith("model:")

    def document(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "lacuna_version": self.lacuna_version,
            "created": self.created,
            "nic": nic_label(self.nic.name),
            "peers": self.peers,
            "machine": "simulated" if self.simulated else machine_name(),
            "classes": [c.document() for c in self.classes],
        }

    def store(self, nic: str) -> Path:
        """Writes it to where the library looks for it. Returns the file. What was there, of the same machine, NIC and
        version, is refined: classes that this run has not seen stay, pairs that it has not measured, and prices that
        were fitted to far more."""
        file = Path(profile_file(nic))
        file.parent.mkdir(parents=True, exist_ok=True)
        before = _classes_before(file, self)
        document = self.document()
        document["classes"] = [_refined(c, before) for c in self.classes]
        document["classes"] += [c for c in before if all(not _alike(c, own) for own in self.classes)]
        write_whole(file, _compact(json.dumps(document, indent=1)) + "\n")
        return file


def _compact(text: str) -> str:
    """Lists of numbers on one line each."""
    return re.sub(r"\[[-+.\deE,\s]+\]", lambda found: " ".join(found[0].split()), text)


def _classes_before(file: Path, new: Profile) -> list[dict[str, Any]]:
    """Of the profile that is there, if it is of the same machine, NIC and version."""
    try:
        old = json.loads(file.read_text(encoding="utf-8"))
        own = replace(new, classes=[]).document()
        same = all(old[key] == own[key] for key in ("schema", "nic", "machine", "lacuna_version"))
        return [c for c in old["classes"] if same and c["message_us"] >= 0 and c["paths"] is not None]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # there was none, or none that can be read


def seen_before(nic: str) -> int:
    """How many measured pairs the profile has that is there."""
    try:
        classes = json.loads(Path(profile_file(nic)).read_text(encoding="utf-8"))["classes"]
        return sum(len(c.get("seen", ())) for c in classes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


def _alike(old: Mapping[str, Any], new: PeerClass) -> bool:
    if old["message_us"] <= 0 or new.message_us <= 0:
        return True
    return abs(log(old["message_us"] / new.message_us)) <= log(SAME_CLASS)


def _refined(new: PeerClass, before: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Its own pairs, then those of the classes before that were alike; prices of the one that was fitted to more."""
    seen = {(*map(_short, s.pair), s.cold): s for s in new.seen}
    prices = new.document()
    for old in before:
        if _alike(old, new):
            with suppress(ValueError, KeyError, TypeError, AttributeError):  # of what cannot be read nothing is kept
                for s in old.get("seen", ()):
                    times = {way: us for way, us in zip(old["ways"], s["us"], strict=True) if us > 0}
                    seen.setdefault((*s["pair"], s["cold"]), Seen(s["pair"], s["cold"], times))
                if _rows_of(old) > _FAR_MORE * _rows_of(prices):
                    prices = dict(old)
    kept = replace(new, seen=tuple(seen.values())[:MOST_SEEN]).document()
    return kept | {key: prices[key] for key in ("message_us", "paths")}


def _rows_of(of_class: Mapping[str, Any]) -> int:
    return sum(path["rows"] for path in of_class["paths"].values())


@dataclass(frozen=True)
class Stored:
    profile: Profile
    file: Path


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
    found: dict[Subject, list[Row]] = {}
    for row in rows:
        if row.method not in BY_HAND and not row.censored and row.subject in layouts:
            found.setdefault(row.subject, []).append(row)
    made = {}
    for subject, own in found.items():
        send, receive = layouts[subject]
        weight = _PAIRS_WEIGHT if subject.experiment == "pairs" else _COLD_WEIGHT if subject.cache == "cold" else 1.0
        best = min((r.latency_us for r in own if is_told(r, told)), default=0.0)
        made[subject] = [
            Observation(
                r.method,
                r.path,
                r.notify,
                send,
                receive,
                subject.cache == "cold",
                r.latency_us,
                r.cpu_send_us,
                r.cpu_recv_us,
                r.latency_us / best if best else 1.0,
                weight,
            )
            for r in own
        ]
    return made


def message_times(looks: Sequence[Look]) -> dict[Subject, float]:
    """What a message took around each cell, but not those during which the peers moved."""
    times = {}
    for look in looks:
        if look.counts:
            probes = look.conditions.probes
            if not moved(probes):
                times[look.subject] = median(p.message_us for p in probes)
    return times


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
    apart = median(times[s] for s in far) / median(times[s] for s in near)
    if apart < SAME_CLASS or widest < log(1.1):
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


def _seen(rows: Sequence[Observation]) -> Seen:
    times = {f"{r.method}/{r.path}/{r.notify}": r.latency_us for r in rows}
    return Seen(pair_numbers(rows[0].send, rows[0].receive), rows[0].cold, times)


def calibrate(
    run: Run,
    cells: Sequence[Cell],
    bindings: Sequence[tuple[int, float]] = (),
    most_rows: int = MOST_ROWS,
) -> Profile | None:
    """The profile that a run's rows give; None where they are too few."""
    seen = observations(run.rows, layouts_of(cells))
    times = {s: t for s, t in message_times(run.looks).items() if s in seen}
    groups = classes_of(times) or [set(seen)]
    made = []
    for group in groups:
        rows = [row for subject in seen if subject in group for row in seen[subject]]
        if not rows or (len(groups) > 1 and len(rows) < _FEWEST_ROWS * len(run.nic.paths)):
            continue
        message_us = median(times[s] for s in group if s in times) if times else 0.0
        fitted = fit(run.nic, rows, message_us, most_rows)
        for path in fitted:
            path.prices.update(_binding_prices(bindings))
        made.append((len(rows), PeerClass(message_us, fitted, tuple(_seen(seen[s]) for s in seen if s in group))))
    if not made:
        return None
    made.sort(key=lambda c: -c[0])  # the first is taken where nobody knows the class
    return Profile(run.lacuna_version, run.created, run.nic, [c for _, c in made], run.peer is not None)
