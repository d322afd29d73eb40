"""What `lacuna bench ranks` finds: a row for each MPI and number of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from lacuna.bench.result import BenchResult


@dataclass(frozen=True)
class ManyRanks:
    """What one run of tools/bench/mpi/many.c says. Times in seconds, of the slowest rank."""

    ranks: int
    bytes: int
    """Of a block; each rank sends one to each."""
    init_s: float
    barrier_s: float
    alltoallw_s: float
    isend_s: float
    dissemination_s: float
    """Each rank sends a block 1, 2, 4, ... ranks further, as a barrier does."""
    comm_dup_s: float
    finalize_s: float
    """Of rank 0."""
    shared_after_init_kib: int
    """What the node's processes share, all of them."""
    shared_after_exchange_kib: int
    shared_after_idle_kib: int
    """Three seconds later, in which no rank called MPI."""


@dataclass(frozen=True)
class RanksRow:
    """Runs of one job without Lacuna and with it, by turns: medians of runs."""

    mpi: str
    ranks: int
    bytes: int
    runs: int
    plain: dict[str, float]
    """By member of ManyRanks; of shared memory what this job added."""
    preloaded: dict[str, float]

    def ratio(self, figure: str) -> float:
        """With Lacuna over without."""
        return self.preloaded[figure] / self.plain[figure]

    @property
    def shared_mib_of_rank(self) -> float:
        """What Lacuna adds to the memory that a rank shares, in MiB."""
        return self._shared_mib("shared_after_exchange_kib")

    @property
    def idle_mib_of_rank(self) -> float:
        """The same, once the ranks were idle."""
        return self._shared_mib("shared_after_idle_kib")

    def _shared_mib(self, figure: str) -> float:
        return (self.preloaded[figure] - self.plain[figure]) / self.ranks / 1024


def row_of(mpi: str, plain: list[ManyRanks], preloaded: list[ManyRanks], before_kib: int) -> RanksRow:
    """`before_kib`: what processes of this machine shared before."""

    def medians(runs: list[ManyRanks]) -> dict[str, float]:
        found = {name: float(median(getattr(run, name) for run in runs)) for name in _FIGURES}
        return {name: value - before_kib if name.endswith("_kib") else value for name, value in found.items()}

    first = plain[0]
    return RanksRow(mpi, first.ranks, first.bytes, len(plain), medians(plain), medians(preloaded))


_TIMES = ("init", "alltoallw", "isend", "dissemination", "comm_dup", "finalize")
_FIGURES = tuple(name for name in ManyRanks.__dataclass_fields__ if name not in ("ranks", "bytes"))


@dataclass
class RanksRun(BenchResult):
    """A run of the bench."""

    rows: list[RanksRow] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.rows

    def summary(self) -> dict[str, Any]:
        if not self.rows:
            return {}
        most = max(self.rows, key=lambda row: row.ranks)
        return {
            "ranks_most": most.ranks,
            **{f"{name}_ratio_worst": max(row.ratio(f"{name}_s") for row in self.rows) for name in _TIMES},
            "shared_mib_of_rank_worst": max(row.shared_mib_of_rank for row in self.rows),
            "idle_mib_of_rank_worst": max(row.idle_mib_of_rank for row in self.rows),
            "shared_mib_of_node_worst": max(row.shared_mib_of_rank * row.ranks for row in self.rows),
        }
