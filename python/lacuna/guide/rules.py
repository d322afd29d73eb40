"""The guide in plain words: "blocks up to 64 B: use X; from 256 B: use Y", as far as the measurements bear it out.

A rule splits the block sizes once at most, and each part once at most by the block count: the form of the guides that
people remember. All such rules are tried. A rule is judged by agreement: the fraction of cells in which what it names
is the best, or cannot be told from the best, or is within a few percent of it. More parts must earn their place, and
the reader is told the agreement and the worst loss, so that a rule which simplifies too much shows itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lacuna.guide.contests import Combo, Grid, overlap
from lacuna.units import gain_text

_CLOSE = 1.05
"""A pick within this factor of the best is as good as the best."""

_WORTH = 0.04
"""A further part of a rule must raise the agreement by this fraction of the cells, and by two cells at least."""

TRUSTED = 0.75
BEARABLE = 2.0
"""A rule that agrees less often, or is slower than the best by more than this anywhere, is not stated as a rule."""

_FEWEST_CELLS = 6


@dataclass(frozen=True)
class Part:
    """Within these bounds (inclusive, all of them measured) use this."""

    blocks: tuple[int, ...]
    counts: tuple[int, ...]
    combo: Combo


@dataclass(frozen=True)
class Rule:
    grid: Grid
    parts: tuple[Part, ...]
    agreed: int
    cells: int
    worst: float
    """The largest factor by which following the rule is slower than the best, over the measured cells."""

    @property
    def agreement(self) -> float:
        return self.agreed / self.cells

    @property
    def trusted(self) -> bool:
        return self.agreement >= TRUSTED and self.worst <= BEARABLE


@dataclass(frozen=True)
class _Verdict:
    """How well one combination serves one cell."""

    good: bool
    slowdown: float


class _Search:
    def __init__(self, grid: Grid) -> None:
        self._blocks, self._counts = grid.blocks, grid.counts
        self._verdicts: dict[tuple[int, int], dict[Combo, _Verdict]] = {}
        for key, contest in grid.cells.items():
            if best := contest.best:
                self._verdicts[key] = {
                    (row.method, row.path): _Verdict(
                        overlap(row, best) or row.latency_us <= _CLOSE * best.latency_us,
                        row.latency_us / best.latency_us,
                    )
                    for row in contest.ranking
                }

    @property
    def cells(self) -> int:
        return len(self._verdicts)

    def judge(self, part: Part) -> tuple[int, float]:
        """In how many cells the part's pick is good, and its worst slowdown. Where it has no time it is no good."""
        good, worst = 0, 1.0
        for verdicts in self._inside(part.blocks, part.counts):
            verdict = verdicts.get(part.combo)
            if verdict is None:
                worst = float("inf")
            else:
                good += verdict.good
                worst = max(worst, verdict.slowdown)
        return good, worst

    def best_part(self, blocks: Sequence[int], counts: Sequence[int]) -> Part | None:
        """The pick that is good in most cells of the area; of equals the one with the mildest worst case."""
        combos = {combo for verdicts in self._inside(blocks, counts) for combo in verdicts}
        parts = [Part(tuple(blocks), tuple(counts), combo) for combo in sorted(combos)]

        def merit(part: Part) -> tuple[int, float]:
            good, worst = self.judge(part)
            return good, -worst

        return max(parts, key=merit, default=None)

    def options(self, blocks: Sequence[int]) -> list[list[Part]]:
        """The rules for one range of block sizes: one pick for all counts, or two."""
        splits = [(self._counts,)] + [(self._counts[:i], self._counts[i:]) for i in range(1, len(self._counts))]
        found = [[self.best_part(blocks, counts) for counts in split] for split in splits]
        return [[part for part in parts if part] for parts in found]

    def _inside(self, blocks: Sequence[int], counts: Sequence[int]) -> list[dict[Combo, _Verdict]]:
        return [self._verdicts[b, n] for b in blocks for n in counts if (b, n) in self._verdicts]

    def best_rule(self) -> list[Part]:
        """The parts with the most agreement, less what each further part has to earn."""

        def merit(parts: list[Part]) -> tuple[float, float]:
            judged = [self.judge(part) for part in parts]
            agreed = sum(good for good, _ in judged) / self.cells
            return agreed - max(_WORTH, 1.5 / self.cells) * len(parts), -max(
                (worst for _, worst in judged), default=1.0
            )

        rules = self.options(self._blocks)
        for i in range(1, len(self._blocks)):
            low = max(self.options(self._blocks[:i]), key=merit)
            high = max(self.options(self._blocks[i:]), key=merit)
            rules.append(low + high)
        return max(rules, key=merit)


def derive(grid: Grid) -> Rule | None:
    """The best rule for one grid, or None if there is too little to derive one from."""
    search = _Search(grid)
    if search.cells < _FEWEST_CELLS:
        return None
    parts = search.best_rule()
    judged = [search.judge(part) for part in parts]
    return Rule(
        grid,
        tuple(parts),
        sum(good for good, _ in judged),
        search.cells,
        max((worst for _, worst in judged), default=1.0),
    )


def range_text(values: Sequence[int], whole: Sequence[int], show: Callable[[int], str]) -> str:
    """One bound of a part in words. The true crossover lies somewhere between "up to" and "from"."""
    if len(values) == len(whole):
        return "any"
    return f"up to {show(values[-1])}" if values[0] == whole[0] else f"from {show(values[0])}"


def honesty(rule: Rule) -> str:
    """How far a rule can be trusted, in words."""
    text = f"as good as the measured best in {rule.agreed} of {rule.cells} cells ({rule.agreement:.0%})"
    if rule.worst == float("inf"):
        return f"{text}; elsewhere what it names is censored or impossible."
    return f"{text}; at worst it takes {gain_text(rule.worst)} the time of the best."
