"""Table 4 of the paper, and how far the model is from it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from lacuna.paper.profiles import Profile
from lacuna.paper.simulator import Parameters, Simulator, Trial, grid

METHODS = {"sgrs": "sgrs", "copy": "pack", "umr_sr": "umr_send", "umr_w": "umr_write"}
"""The paper's names and ours."""

COUNTS = (16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Cell:
    block_bytes: int
    method: str
    """The paper's name."""
    blocks: int
    paper_us: float

    @property
    def row(self) -> tuple[int, str]:
        """A row of the printed table: one method at one block size."""
        return self.block_bytes, self.method

    @property
    def trial(self) -> Trial:
        return Trial(grid(self.block_bytes, self.blocks), METHODS[self.method])


@cache
def cells() -> tuple[Cell, ...]:
    text = resources.files("lacuna.paper").joinpath("table4.csv").read_text()
    return tuple(
        Cell(int(line["block_bytes"]), line["method"], n, float(line[str(n)]))
        for line in csv.DictReader(text.splitlines())
        for n in COUNTS
    )


def modelled_us(
    simulator: Simulator,
    profile: Profile,
    overrides: Parameters | None = None,
    which: Sequence[Cell] | None = None,
    *,
    verify: bool = False,
) -> NDArray[np.float64]:
    """The model's latency of each cell. A fit asks for it hundreds of times, so bytes move only if they shall."""
    rows = simulator.transfers(profile.path, [c.trial for c in which or cells()], overrides, verify=verify)
    return np.array([row["latency_us"] for row in rows])


@dataclass(frozen=True)
class Errors:
    """Relative errors, as fractions of the paper's value."""

    median: float
    p90: float
    max: float

    @classmethod
    def of(cls, relative: NDArray[np.float64]) -> Errors:
        size = np.abs(relative)
        return cls(float(np.median(size)), float(np.quantile(size, 0.9)), float(size.max()))

    def text(self) -> str:
        return f"median {self.median:.1%}, 90th percentile {self.p90:.1%}, maximum {self.max:.1%}"
