"""One case under all conditions: in every round each way has turns under each of them, in another order each time."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from lacuna.interactions.conditions import Condition, Subject
from lacuna.interactions.rank import WAYS
from lacuna.interactions.ranks import Busy, Ranks
from lacuna.interactions.rows import Samples
from lacuna.lines import RowError, WrongBytesError

_BATCH_US = 3000.0
_BUSY_BATCH_US = 24_000.0
"""Some of the scheduler's slices."""
_TURNS = 4
"""In each round where nobody else wants a CPU: a turn beside somebody takes ten times as long as the others."""
_BEHIND = 2.5
"""So many times as long as the best one, under all conditions: it cannot be what is looked for, and has no more
turns."""
_PRESENT = 0.8
"""Of memory that was asked for in pages of 2 MiB, what has to be in such."""
_SEED = 1

Turn = tuple[Condition, int]
"""And the index of a way."""


@dataclass(frozen=True)
class Effort:
    fewest: int
    seconds: float
    """Of a case: rounds begin until then, so many of them at least."""


class Race:
    """`jobs`: by number of ranks, and whether they are apart. `busy`: by what it does. `conditions`: that there are."""

    def __init__(
        self, jobs: Mapping[tuple[int, bool], Ranks], busy: Mapping[str, Busy], conditions: Sequence[Condition]
    ) -> None:
        self._jobs = jobs
        self._busy = busy
        self._conditions = conditions
        self.huge = True
        """Whether memory that was to be in pages of 2 MiB was, at all ranks, in all cases so far."""
        self.refused: list[str] = []

    def run(self, subject: Subject, effort: Effort) -> Samples:
        """A time of each round. Raises WrongBytesError, RowError, and WorkerError where a rank is gone."""
        for place, job in self._jobs.items():
            here = [c for c in self._conditions if (c.ranks, c.apart) == place]
            kinds = sorted({(c.cold, c.huge) for c in here})
            for opened in job.ask("opened", {"open": asdict(subject), "kinds": kinds}):
                self.huge &= opened["huge_bytes"] >= _PRESENT * opened["huge_wanted"]
        trips = self._paced(self._possible(subject))
        chance = random.Random(_SEED)
        samples: dict[tuple[str, str], list[float]] = {(c.name, WAYS[way].name): [] for c, way in trips}
        order = [turn for turn in trips for _ in range(1 if turn[0].busy else _TURNS)]
        began = time.monotonic()
        rounds = 0
        while rounds < effort.fewest or time.monotonic() - began < effort.seconds:
            chance.shuffle(order)
            times: dict[Turn, list[float]] = {turn: [] for turn in trips}
            for turn in order:
                times[turn].append(self._turn(*turn, trips=trips[turn]))
            for (c, way), of_round in times.items():
                samples[c.name, WAYS[way].name].append(median(of_round))
            rounds += 1
        for c, way in trips:
            self._turn(c, way, verify=_SEED + 1)
        return samples

    def _possible(self, subject: Subject) -> list[Turn]:
        """What moves the right bytes."""
        found: list[Turn] = []
        for c in self._conditions:
            for way in range(len(WAYS)):
                try:
                    self._turn(c, way, verify=_SEED)
                except WrongBytesError:
                    raise
                except RowError as e:
                    self.refused.append(f"{subject.name}: {WAYS[way].name}, {c.name}: {e}")
                else:
                    found.append((c, way))
        return found

    def _paced(self, turns: Sequence[Turn]) -> dict[Turn, int]:
        """How many trips make a batch of each; without those that are hopeless under all conditions."""
        once = {turn: min(self._turn(*turn, trips=1) for _ in range(3)) for turn in turns}
        best = {c: min(us for (of, _), us in once.items() if of == c) for c, _ in turns}
        good = {way for (c, way), us in once.items() if us <= _BEHIND * best[c]}
        paced = {}
        for (c, way), us in once.items():
            if way in good or way == 0:
                batch = _BUSY_BATCH_US if c.busy else _BATCH_US
                trip = us if c.both_ways else 2 * us
                paced[c, way] = max(2 if c.cold else 1, min(1000, int(batch / trip)))
        return paced

    def _turn(self, c: Condition, way: int, *, trips: int = 1, verify: int | None = None) -> float:
        turn = {"way": way, "trips": trips, "both_ways": c.both_ways, "cold": c.cold, "huge": c.huge, "verify": verify}
        busy = self._busy[c.busy] if c.busy and verify is None else None
        if busy:
            busy.go()
        try:
            took = self._jobs[c.ranks, c.apart].ask("took", {"turn": turn})
        finally:
            if busy:
                busy.stop()
        for rank in took:
            if rank["wrong"]:
                raise WrongBytesError(f"{WAYS[way].name}, {c.name}: {rank['wrong']}")
        return float(took[0]["us"])
