"""How `lacuna bench kv` measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import typer
from rich.console import Console

from lacuna import clock
from lacuna._core import Guide, Layout
from lacuna.bench.kv.cases import CASES, Case, Sides
from lacuna.bench.kv.rows import DESCRIPTOR_BYTES, Described, KvRun, row_of
from lacuna.bench.race import cases_in_time
from lacuna.bench.validation.pair_measurement import SILENCE, measure_pair
from lacuna.guide.fitting import limits_text
from lacuna.guide.pairs import Pair
from lacuna.worker.client import Worker, find_worker
from lacuna.worker.process import WorkerError

NICS = ("local", "ofi:tcp", "model:what-if-400g")
PAYLOAD = 8 << 20
"""Bytes of a part that is moved: more than a cache of one CPU, and a tenth of a second by the slowest way."""
QUICK_PAYLOAD = 1 << 20
BUDGET_MS = 6000.0
QUICK_BUDGET_MS = 300.0
"""Of a case on a NIC."""
_TURNS = 9
_TRIES = 3
"""Of a case whose peers moved while it was measured."""


class KvRace:
    """Describes all cases, then moves a part of each on each NIC."""

    def __init__(
        self,
        result: KvRun,
        nics: Sequence[str],
        only: str,
        quick: bool,
        deadline: float,
        arguments: Callable[[str], str],
    ) -> None:
        self._result, self._nics, self._deadline, self._arguments = result, nics, deadline, arguments
        self._payload, self._budget_ms = (QUICK_PAYLOAD, QUICK_BUDGET_MS) if quick else (PAYLOAD, BUDGET_MS)
        self._cases = [case for case in CASES if only.lower() in case.name.lower()]
        if not self._cases:
            names = ", ".join(case.name for case in CASES)
            raise typer.BadParameter(f"no case has {only!r} in its name; there are: {names}", param_hint="--only")

    def __call__(self, console: Console) -> None:
        for case in self._cases:
            self._result.described.append(described(case))
        for nic in self._nics:
            try:
                with Worker(find_worker(), self._arguments(nic), SILENCE) as worker:
                    self._result.machine = self._result.machine or {"cpu": worker.hello.machine.cpu}
                    self._move_all(console, worker, nic)
            except WorkerError as e:
                self._result.errors.append(f"{nic} could not be measured: {e}")

    def _move_all(self, console: Console, worker: Worker, nic: str) -> None:
        limits = limits_text(worker.hello.nic)
        names = self._cases
        for case in cases_in_time(console, self._result, names, lambda c: f"{nic}: {c.name}", self._deadline, nic):
            pieces = case.within(self._payload)
            send, receive = parts(case, pieces, self._payload)
            pair = Pair(case.name, send, receive)
            for _ in range(_TRIES):
                found = measure_pair(worker, pair, 1, self._budget_ms, notifies=("imm", "flag"))
                if not found.moved or clock.now() > self._deadline:
                    break
            self._result.errors += [f"{nic}: {failure}" for failure in found.failures]
            choice = Guide(nic, message_us=found.message_us, limits=limits).choose(send, receive)
            try:
                way = (choice["method"], choice["path"], choice["notify"])
                self._result.rows.append(row_of(case.name, nic, pieces, way, found.rows))
            except ValueError as e:
                self._result.errors.append(f"{nic}: {e}")


def parts(case: Case, pieces: int, payload: int) -> Sides:
    """A part of the case; what is one piece is cut."""
    if case.pieces == 1:
        return Layout.bytes(payload), Layout.bytes(payload)
    return case.layouts(pieces, case.tables(pieces))


def described(case: Case) -> Described:
    tables = case.tables(case.pieces)
    sides = case.layouts(case.pieces, tables)
    plan = _median_us(lambda: case.layouts(case.pieces, tables))
    wires = [side.wire() for side in sides]
    told = _median_us(lambda: [Layout.from_wire(side.wire()) for side in sides])
    size = sum(map(len, wires))
    return Described(case.name, case.pieces, case.piece_bytes, size, DESCRIPTOR_BYTES * case.pieces, plan, told)


def _median_us(call: Callable[[], object]) -> float:
    times = []
    for _ in range(_TURNS):
        began = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - began))
    return median(times)
