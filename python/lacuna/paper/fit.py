"""The fit of a profile's calibrated parameters to Table 4.

Least squares of the logarithms' differences, so that 6 µs and 20 ms count alike, over the logarithms of the parameters.
Each is held to its prior by a regularisation so weak that a factor of e costs as much as one cell's being wrong by 4 %:
it decides only what the table leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna.paper import table4
from lacuna.paper.profiles import Profile
from lacuna.paper.simulator import Simulator
from lacuna.paper.table4 import Cell, Errors

Vector = NDArray[np.float64]
Step = Callable[[], None]
"""Called after each evaluation of the model, for a progress bar."""

REGULARISATION = 0.04
_DELTA = 0.02
"""Of a derivative, in the logarithm."""
_FARTHEST = 0.5
_ROUNDS = 20
_ENOUGH = 1e-5
"""A round that gains a smaller part of the loss ends the fit."""


@dataclass(frozen=True)
class FittedCell:
    """A cell of the table beside the model's; the errors are fractions of the paper's value."""

    block_bytes: int
    blocks: int
    method: str
    paper_us: float
    model_us: float
    error: float
    error_left_out: float


@dataclass(frozen=True)
class Fitted:
    values: dict[str, float]
    relative: Vector
    """Errors of the cells, in their order."""
    left_out: Vector
    """Errors of the cells when their row was not fitted."""

    def cells(self) -> list[FittedCell]:
        errors = zip(table4.cells(), self.relative.tolist(), self.left_out.tolist(), strict=True)
        return [
            FittedCell(c.block_bytes, c.blocks, c.method, c.paper_us, c.paper_us * (1 + e), e, left_out)
            for c, e, left_out in errors
        ]

    @property
    def errors(self) -> Errors:
        return Errors.of(self.relative)

    @property
    def leave_one_out(self) -> Errors:
        return Errors.of(self.left_out)


class Problem:
    """The model as a function of the logarithms of the calibrated parameters."""

    def __init__(self, simulator: Simulator, profile: Profile, step: Step = lambda: None) -> None:
        self._simulator = simulator
        self._profile = profile
        self._step = step
        self.names = [p.name for p in profile.calibrated]
        self.prior = np.log([p.prior if p.prior is not None else p.value for p in profile.calibrated])
        self.stored = np.log([p.value for p in profile.calibrated])

    def values(self, x: Vector) -> dict[str, float]:
        return dict(zip(self.names, map(float, np.exp(x)), strict=True))

    def residuals(self, x: Vector, which: Sequence[Cell] | None = None) -> Vector:
        """log(model / paper) of the cells."""
        which = which or table4.cells()
        model = table4.modelled_us(self._simulator, self._profile, self.values(x), which)
        self._step()
        return np.asarray(np.log(model / np.array([c.paper_us for c in which])))

    def jacobian(self, x: Vector, r: Vector) -> NDArray[np.float64]:
        columns = []
        for j in range(len(x)):
            moved = x.copy()
            moved[j] += _DELTA
            columns.append((self.residuals(moved) - r) / _DELTA)
        return np.stack(columns, axis=1)

    def held(self, x: Vector, r: Vector) -> Vector:
        """The residuals, and what holds the parameters to their priors."""
        return np.concatenate([r, REGULARISATION * (x - self.prior)])

    def held_jacobian(self, jacobian: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([jacobian, REGULARISATION * np.eye(jacobian.shape[1])])

    def step(self, x: Vector, r: Vector, jacobian: NDArray[np.float64]) -> Vector:
        """To the least loss, were the model linear."""
        found = np.linalg.lstsq(self.held_jacobian(jacobian), -self.held(x, r))[0]
        return np.asarray(np.clip(found, -_FARTHEST, _FARTHEST))


def solve(problem: Problem, start: Vector) -> tuple[Vector, Vector]:
    """The parameters of least loss, and their residuals."""
    # Imported here: scipy takes a third of a second, which other commands need not spend.
    from scipy.optimize import least_squares

    known: dict[bytes, Vector] = {}  # derivatives are asked for where residuals were

    def residuals(x: Vector) -> Vector:
        if x.tobytes() not in known:
            known[x.tobytes()] = problem.residuals(x)
        return known[x.tobytes()]

    found = least_squares(
        lambda x: problem.held(x, residuals(x)),
        start,
        jac=lambda x: problem.held_jacobian(problem.jacobian(x, residuals(x))),
        ftol=_ENOUGH,
        max_nfev=_ROUNDS,
    )
    return np.asarray(found.x), residuals(found.x)


def leave_one_out(problem: Problem, x: Vector, r: Vector, steps: int = 2) -> Vector:
    """The error of each row of the table by parameters that were fitted without it: steps from the whole fit with its
    derivatives, each from the model's own residuals."""
    jacobian = problem.jacobian(x, r)
    cells = table4.cells()
    out = np.empty(len(cells))
    for row in dict.fromkeys(c.row for c in cells):
        kept = np.array([c.row != row for c in cells])
        moved, residuals = x, r
        for _ in range(steps):
            moved = moved + problem.step(moved, residuals[kept], jacobian[kept])
            residuals = problem.residuals(moved)
        out[~kept] = np.expm1(residuals[~kept])
    return out


def evaluate(problem: Problem) -> Fitted:
    """The profile as it is stored: its errors, and what leaving rows out makes of them."""
    r = problem.residuals(problem.stored)
    return Fitted(problem.values(problem.stored), np.expm1(r), leave_one_out(problem, problem.stored, r))


def repeat(problem: Problem) -> Fitted:
    """The fit from the priors on."""
    x, r = solve(problem, problem.prior)
    return Fitted(problem.values(x), np.expm1(r), leave_one_out(problem, x, r))
