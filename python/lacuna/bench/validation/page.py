"""What a validation shows: the choice beside simple rules, the worst pairs, all pairs, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from lacuna.bench.presentation import Picture, Presentation, table_of
from lacuna.bench.validation.validation import Judged, Validation
from lacuna.report.row_tables import RowTable
from lacuna.units import gain_text, us_text

_WORST = 8
_COLUMNS: dict[str, Callable[[Judged], str]] = {
    "layouts": lambda p: p.name,
    "chosen": lambda p: " ".join(p.chosen),
    "best": lambda p: " ".join(p.best),
    "chosen, µs": lambda p: us_text(p.chosen_us),
    "best, µs": lambda p: us_text(p.best_us),
    "over best": lambda p: gain_text(p.regret) if p.regret >= 1.05 else f"{p.regret:.2f}×",
}


class ValidationPresentation(Presentation[Validation]):
    name = "validation"
    subject = "Choices"
    heading = "What the choice loses, on random pairs of layouts"
    meanings = (
        "How many times as long as the best way the chosen one takes: geometric mean, 95th percentile, most. The best "
        "is picked on one half of a pair's visits and timed on the other. A rule takes whichever paths suit its "
        "methods best."
    )

    def figures(self) -> RowTable:
        summary = self.result.summary()
        rows: list[list[str | Text]] = []
        for name, found in ({"Lacuna": summary} | self.result.rules if self.result.pairs else {}).items():
            figures = (found["regret_geomean"], found["regret_p95"], found["regret_max"])
            style = "bold" if name == "Lacuna" else ""
            rows.append([Text(name, style), *(Text(f"{figure:.3f}", style) for figure in figures)])
        return RowTable(["over best", "average", "95 %", "most"], rows)

    def worst(self) -> Iterator[tuple[str, RowTable]]:
        yield "The worst", table_of(_COLUMNS, sorted(self.result.pairs, key=lambda p: -p.regret)[:_WORST], 3)

    def remarks(self) -> Iterator[str]:
        result = self.result
        if not result.pairs:
            yield "Nothing was measured."
            return
        error = result.summary()["prediction_error_median"]
        yield f"Predicted and measured times are {error:.1%} apart, median over all ways."
        if result.again:
            yield f"Measured again: {result.again}, since the processes moved nearer to one another or apart."
        yield from (f"warning: {warning}" for warning in result.profile)

    def pictures(self) -> Iterator[Picture]:
        from lacuna.bench.validation.picture import figure

        yield Picture("Choices and rules", "validation.png", figure(self.result), "Time over that of the best way")

    def tables(self) -> Iterator[tuple[str, str, RowTable]]:
        yield "Every pair", "", table_of(_COLUMNS, self.result.pairs, 3)
