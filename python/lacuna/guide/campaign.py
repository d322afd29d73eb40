"""Drives the worker through a plan and keeps what it learns, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lacuna import clock
from lacuna.guide.contests import told_methods
from lacuna.guide.exploration import Explorer
from lacuna.guide.noise_check import check_noise, disturbance, usual_state
from lacuna.guide.plan import Cell
from lacuna.guide.run_record import LeftOut, Look, Run
from lacuna.guide.stopping_rule import Pruning, pooled, repeat_of, worth_another_look
from lacuna.guide.time_shares import Grant, Pacer
from lacuna.worker.client import Worker
from lacuna.worker.process import WorkerError, WorkerSilentError
from lacuna.worker.records import Conditions, Failure, Probe, Row, Skip, Subject

_GRACE_SECONDS = 2.0
"""How far the last cell may run over before it is cut off. The guess of its set-up can be wrong by so much."""

_CLOCKS_APART = 0.01
"""Seconds. The worker is waited for by the system's clock, which rounds otherwise than the one of budgets."""

_LEFT_BEHIND = 1.5
"""What was clearly so many times behind in the first look is not measured in the second."""

_RETHINK = 16
"""After so many cells the time for second looks is reckoned anew."""

_SPOILT = 0.5
"""The part of all time that is kept for second looks if every first one is disturbed, beyond what is kept anyway."""

_LULL_SECONDS = 0.2
"""How long to wait for a disturbance to pass."""

_DEARER = 1.3
"""A second look is taken to cost at most so many times what the first did."""

_START_SECONDS = 1.0
"""With less left it is not worth to start another worker."""


@dataclass(frozen=True)
class SecondLooks:
    """How second looks are made."""

    share: float
    """The part of the time that is kept for them, if no first look is disturbed."""
    most: int
    """Looks at one cell, the first counted."""
    fresh: Callable[[], Worker]
    """Starts another worker."""
    explorer: Explorer | None = None
    """Chooses further cells, beside the plan."""
    explored: float = 0.0
    """The part of the time that is kept for them."""


_EXPLORED_MS = 60.0
"""For measuring a cell that the explorer wants: twice as long tells little more than twice as many."""
_EXPLORED_CENSOR_MS = 100.0

Progress = Callable[[int, int, float], None]
"""Told after each cell, or pair: how many looks are done, how many there will be, and how many seconds are left."""


def measure(
    worker: Worker,
    cells: list[Cell],
    result: Run,
    deadline: float,
    max_samples: int,
    progress: Progress,
    again: SecondLooks | None = None,
) -> None:
    """Measures the cells until `deadline` on the clock of budgets and adds to the result what is learned, line by line,
    so that an exception (Ctrl-C, a dead worker) loses nothing that has arrived. `again`: what time is left goes to
    further cells, which are added to `cells`, and to second looks."""
    campaign = _Campaign(worker, result, deadline, max_samples, progress, again)
    try:
        campaign.first_looks(cells)
        if again:
            if again.explorer:
                campaign.explore(cells, again.explorer, again)
            campaign.look_again(cells, again)
    finally:
        result.seconds = clock.now() - campaign.started


class OutOfTimeError(Exception):
    """The run reached its end within a cell."""


@dataclass
class _Campaign:
    worker: Worker
    result: Run
    deadline: float
    max_samples: int
    progress: Progress
    again: SecondLooks | None
    started: float = field(default_factory=lambda: clock.now())
    hopeless: Pruning = field(default_factory=Pruning)
    requests: int = 0
    found: dict[Subject, list[list[Row]]] = field(default_factory=dict)
    """The rows of each cell, of each look that counts."""
    rows: dict[Subject, list[Row]] = field(default_factory=dict)
    """These joined: what the result has of each cell. By cell, since a run has twenty thousand."""

    @property
    def left(self) -> float:
        return self.deadline - clock.now()

    def first_looks(self, cells: Sequence[Cell]) -> None:
        pacer = Pacer(cells, self.deadline, clock.now)
        for i, planned in enumerate(cells):
            if self.again and i % _RETHINK == 0:
                pacer.kept = self._kept(self.again.share + self.again.explored)
            left_out = self.hopeless.leave_out(planned.subject)
            cell = planned.without(left_out) if left_out else planned
            grant = pacer.grant(cell)
            if grant is None:
                self.result.unmeasured.append(f"{cell.label}: no time left for it")
                continue
            before = len(self.result.rows)
            try:
                self._look(cell, grant, 1, self.result.rows)
            except OutOfTimeError as e:
                self.result.unmeasured.append(str(e))
                self.result.unmeasured += [f"{later.label}: no time left for it" for later in cells[i + 1 :]]
                return
            pacer.spent(cell)
            rows = self.rows[cell.subject] = self.result.rows[before:]
            self.found[cell.subject] = [rows]
            self.hopeless.learn(cell.subject, rows, left_out)
            self.progress(i + 1, len(cells), self.left)

    def _kept(self, share: float) -> float:
        """The seconds that second looks will want: the more, the more of the first ones were disturbed."""
        noise = check_noise(self.result.looks)
        disturbed = len(noise.disturbed) / len(self.result.looks) if noise else 0.0
        return (share + _SPOILT * disturbed) * (self.deadline - self.started)

    def explore(self, cells: list[Cell], explorer: Explorer, again: SecondLooks) -> None:
        """Measures what the explorer wants, until it wants nothing more or its share of the time is over: of what is
        left, as much as it has of what was kept."""
        others = self._kept(again.share) / (self.deadline - self.started)
        ends = clock.now() + self.left * again.explored / (again.explored + others)
        message_us = usual_state(self.result.looks).message_us if self.result.looks else 0.0
        if ends - clock.now() < _START_SECONDS or not explorer.begin(self.result.rows, cells, message_us):
            return
        while clock.now() < ends and (wanted := explorer.wanted()):
            before = len(self.result.rows)
            for i, cell in enumerate(wanted):
                if clock.now() >= ends:
                    wanted = wanted[:i]
                    break
                own = len(self.result.rows)
                try:
                    self._look(cell, Grant(_EXPLORED_MS, _EXPLORED_CENSOR_MS), 1, self.result.rows)
                except OutOfTimeError:
                    return
                cells.append(cell)
                rows = self.rows[cell.subject] = self.result.rows[own:]
                self.found[cell.subject] = [rows]
                self.progress(len(cells), len(cells), self.left)
            explorer.learn(self.result.rows[before:], wanted)

    def look_again(self, cells: Sequence[Cell], again: SecondLooks) -> None:
        """Second looks, then third ones, until the time is over or nothing is worth it. Each by another worker, for
        whose memory lies elsewhere: what one found by the chance of where its memory lay, the next does not repeat."""
        done = len(cells)
        told = told_methods(self.result.rows)
        for number in range(2, again.most + 1):
            noise = check_noise(self.result.looks)
            wanted = worth_another_look(cells, self.result, number) if noise else []
            if noise is None or not wanted or self.left < _START_SECONDS:
                return
            before = len(self.result.looks)
            with again.fresh() as self.worker:
                try:
                    done = self._round(number, wanted, noise.usual, told, done)
                except OutOfTimeError:
                    return
            if len(self.result.looks) == before:
                return

    def _round(self, number: int, wanted: list[Cell], usual: Probe, told: set[tuple[str, str]], done: int) -> int:
        costs = {look.subject: look.conditions for look in self.result.looks}
        while wanted:
            cell = wanted.pop(0)
            cost = costs[cell.subject]
            if _DEARER * (cost.setup_ms + cost.measuring_ms) / 1e3 > self.left:
                continue
            counted = [x for x in self.result.looks if x.counts and x.subject == cell.subject]
            disturbed = all(disturbance(x, usual) for x in counted)
            rows: list[Row] = []
            grant = Grant(max(20.0, cost.measuring_ms), 1e5)
            left_out = () if disturbed else _far_behind(self.rows[cell.subject])
            self._look(cell.without(left_out), grant, number, rows)
            looks = self.result.looks
            if disturbance(looks[-1], usual):
                looks[-1] = replace(looks[-1], counts=False)
                wanted.append(cell)  # it tells nothing now; its turn comes again, if there is time
                clock.sleep(_LULL_SECONDS)
                continue
            if disturbed:
                for i, earlier in enumerate(looks[:-1]):
                    if earlier.counts and earlier.subject == cell.subject:
                        looks[i] = replace(earlier, counts=False)
            self._join(cell.subject, rows, told, replaces=disturbed)
            done += 1
            self.progress(done, done + len(wanted), self.left)
        return done

    def _join(self, subject: Subject, rows: list[Row], told: set[tuple[str, str]], *, replaces: bool) -> None:
        """What becomes of a cell's rows. A disturbed look counts no more: mixed, the two would compare states."""
        earlier = self.found[subject]
        if not replaces and (repeat := repeat_of(subject, earlier[-1], rows, told)):
            self.result.repeats.append(repeat)
        self.found[subject] = [rows] if replaces else [*earlier, rows]
        self.rows[subject] = pooled(self.found[subject])
        self.result.rows = list(chain.from_iterable(self.rows.values()))

    def _look(self, cell: Cell, grant: Grant, number: int, rows: list[Row]) -> None:
        """Measures a cell once. Rows are added as they come."""
        self.requests += 1
        request: dict[str, object] = {
            "id": self.requests,
            **cell.ask(round(grant.censor_ms, 3)),
            "max_samples": self.max_samples,
            "budget_ms": round(grant.budget_ms, 3),
        }
        began = clock.now()
        latest = self.deadline + _GRACE_SECONDS
        result = self.result
        try:
            for answer in self.worker.measure(request, cell.subject, latest, cell.verb):
                match answer:
                    case Row():
                        rows.append(answer)
                    case Skip():
                        if number == 1:
                            result.skips[answer] = result.skips.get(answer, 0) + 1
                    case Failure():
                        failure = replace(answer, layout=cell.label)
                        if number == 1 or failure not in result.errors:  # told once
                            result.errors.append(failure)
                    case Conditions():
                        result.looks.append(
                            Look(cell.subject, number, round(began - self.started, 3), answer, cell.leave_out)
                        )
        except WorkerSilentError as e:
            if clock.now() > latest - _CLOCKS_APART:
                raise OutOfTimeError(f"{cell.label}: cut off at the end of the time") from e
            result.errors.append(Failure(str(e), cell.label))
            raise
        except WorkerError as e:
            result.errors.append(Failure(str(e), cell.label))
            raise


def _far_behind(rows: Sequence[Row]) -> tuple[LeftOut, ...]:
    """Methods on paths that no second look will bring back; all notifications of them have to be so."""
    least: dict[tuple[str, str], float] = {}
    for row in rows:
        times = row.behind_low if row.behind_low is not None and not row.censored else row.behind
        combo = (row.method, row.path)
        found = 1e9 if row.censored else (times or 1.0)
        least[combo] = min(least.get(combo, found), found)
    return tuple(LeftOut(m, p, round(b, 2)) for (m, p), b in least.items() if b > _LEFT_BEHIND)
