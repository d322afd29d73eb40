"""What programs of `lacuna bench mpi` come to: a row of each of their cases, with ratios over pairs of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lacuna.bench.result import ratios_of
from lacuna.medians import median_of

COLLECTIVES = "collectives"


@dataclass(frozen=True)
class ProgramRow:
    """One exchange of a program. Times are of the slowest rank, or of a node with fewer CPUs than ranks from the first
    rank's start to the last one's end, in microseconds: medians of the medians of runs."""

    mpi: str
    program: str
    case: str
    ranks: int
    hosts: int
    payload_bytes: int
    """What a rank sends at most."""
    hand_us: float
    """Packed by hand, without Lacuna."""
    host_us: float
    """By the MPI's own datatypes."""
    lacuna_us: float
    """By datatypes, with Lacuna preloaded."""
    ratio_vs_hand: float
    """lacuna_us over hand_us, of two runs one after the other; the median of pairs. Below 1 it is faster."""
    ratio_vs_hand_low: float
    ratio_vs_hand_high: float
    ratio_vs_host: float
    """The same over host_us."""
    ratio_vs_host_low: float
    ratio_vs_host_high: float
    pairs: int

    @property
    def group(self) -> str:
        """How the summary calls rows like this one: "collectives_2_ranks", "applications_two_hosts"."""
        kind = self.program if self.program in (COLLECTIVES, "pingpong") else "applications"
        return f"{kind}_two_hosts" if self.hosts > 1 else f"{kind}_{self.ranks}_ranks"


Line = Mapping[str, Any]
"""What a program prints of a case."""


def rows_from(
    mpi: str, program: str, hosts: int, pairs: Sequence[tuple[Sequence[Line], Sequence[Line]]]
) -> list[ProgramRow]:
    """`pairs`: what a run without Lacuna printed, and one with it. Raises ValueError where they are not alike."""
    rows = []
    for lines in zip(*(side for pair in pairs for side in pair), strict=True):
        first = lines[0]
        if any((line["case"], line["bytes"]) != (first["case"], first["bytes"]) for line in lines):
            raise ValueError(f"runs of {program} do not print the same cases")
        plain, preloaded = lines[::2], lines[1::2]
        hand, host = _medians(plain, "hand_us"), _medians(plain, "datatype_us")
        ours = _medians(preloaded, "datatype_us")
        rows.append(
            ProgramRow(
                mpi=mpi,
                program=program,
                case=str(first["case"]),
                ranks=int(first["ranks"]),
                hosts=hosts,
                payload_bytes=int(first["bytes"]),
                hand_us=median_of(hand).value,
                host_us=median_of(host).value,
                lacuna_us=median_of(ours).value,
                **ratios_of(ours, hand, host),
                pairs=len(pairs),
            )
        )
    return rows


def _medians(lines: Sequence[Line], key: str) -> list[float]:
    return [median_of(float(us) for us in line[key]).value for line in lines]
